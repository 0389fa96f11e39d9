package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// RouteHeardTTL is how long it is remembered that facts arrived on a route.
const RouteHeardTTL = 30 * 24 * time.Hour

const (
	// heardEvery is how often a process notes that facts arrive on a route.
	heardEvery = time.Minute
	// maxHeard bounds what a process remembers about routes, as their names may come from events.
	maxHeard = 1000
)

// routeHeardKey: string, when RecordEvents last stored facts on the route, to the minute.
func routeHeardKey(prefix, route string) string {
	return prefix + ":commit:v1:route:" + escapeKeyPart(route) + ":heard"
}

// RoutesHeard says when facts last arrived on each route, to the minute, in one round trip. A route that no fact has
// arrived on for RouteHeardTTL is left out.
func (s *RedisStore) RoutesHeard(ctx context.Context, routes []string) (map[string]time.Time, error) {
	if len(routes) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	gets := make([]*redis.StringCmd, len(routes))
	for i, route := range routes {
		gets[i] = pipe.Get(ctx, routeHeardKey(s.prefix, route))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read when facts last arrived: %w", err)
	}
	out := make(map[string]time.Time, len(routes))
	for i, get := range gets {
		text, err := get.Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read when facts last arrived: %w", err)
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("read when facts last arrived: %w", err)
		}
		out[routes[i]] = at
	}
	return out, nil
}

// hearing is when this process last noted each route. It only saves writes.
type hearing struct {
	mu    sync.Mutex
	noted map[string]time.Time
}

func (h *hearing) due(route string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.noted[route]) >= heardEvery
}

func (h *hearing) note(routes []string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noted == nil || len(h.noted) >= maxHeard {
		h.noted = map[string]time.Time{}
	}
	for _, route := range routes {
		h.noted[route] = now
	}
}

// hear adds the route to those that the next flush notes, when it is time. It keeps a copy: a route may be part of an
// event's text, which the caller uses again.
func (w *factWriter) hear(route string) {
	if !slices.Contains(w.routes, route) && w.index.heard.due(route, time.Now()) {
		w.routes = append(w.routes, strings.Clone(route))
	}
}

// noteRoutes queues the notes.
func (w *factWriter) noteRoutes(ctx context.Context, pipe redis.Pipeliner) {
	now := time.Now().UTC().Truncate(time.Minute).Format(time.RFC3339)
	for _, route := range w.routes {
		pipe.Set(ctx, routeHeardKey(w.index.prefix, route), now, RouteHeardTTL)
	}
}
