package gitpoll

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

const (
	// firstPause is how long a host is left alone that asks for it without saying until when; it doubles with every
	// further time, up to maxPause, and is spread by a fifth either way.
	firstPause = 30 * time.Second
	maxPause   = time.Hour
)

// Throttle is one host that asked to be left alone.
type Throttle struct {
	Until   time.Time
	Strikes int // how often in a row
}

// Throttles remembers hosts that asked to be left alone. A nil *Throttles remembers nothing. It is safe for
// concurrent use.
type Throttles struct {
	// OnlyStated remembers only what a host stated with a time.
	OnlyStated bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu    sync.Mutex
	hosts map[string]Throttle
}

// NewThrottles begins with what was remembered before.
func NewThrottles(hosts map[string]Throttle) *Throttles {
	return &Throttles{hosts: hosts}
}

// Hosts is a copy of what is remembered.
func (t *Throttles) Hosts() map[string]Throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	hosts := make(map[string]Throttle, len(t.hosts))
	for host, h := range t.hosts {
		hosts[host] = h
	}
	return hosts
}

func (t *Throttles) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// until returns the time until which the host must be left alone.
func (t *Throttles) until(host string) (time.Time, bool) {
	if t == nil {
		return time.Time{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[host]
	return h.Until, t.now().Before(h.Until)
}

// note learns from the end of a listing. A 503 without a time is no request of the host's: it may be about one
// repository.
func (t *Throttles) note(host string, err error) {
	if t == nil {
		return
	}
	var status *gitwire.StatusError
	asked := errors.As(err, &status) && status.Throttled && (!status.RetryAt.IsZero() || status.Code < http.StatusInternalServerError)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	h, known := t.hosts[host]
	switch {
	case err == nil && known && !now.Before(h.Until):
		delete(t.hosts, host)
	case !asked || t.OnlyStated && status.RetryAt.IsZero():
	case !status.RetryAt.IsZero():
		// Answers to listings that were under way together count once.
		if !now.Before(h.Until) {
			h.Strikes++
		}
		if status.RetryAt.After(h.Until) {
			h.Until = status.RetryAt
		}
		t.set(host, h)
	case !now.Before(h.Until):
		h.Strikes++
		pause := min(maxPause, firstPause<<min(h.Strikes-1, 10))
		h.Until = now.Add(pause*4/5 + rand.N(pause*2/5))
		t.set(host, h)
	}
}

func (t *Throttles) set(host string, h Throttle) {
	if t.hosts == nil {
		t.hosts = map[string]Throttle{}
	}
	t.hosts[host] = h
}
