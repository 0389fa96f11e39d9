package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// DefaultAttributionFactTTL is how long a fact waits for the change it explains.
const DefaultAttributionFactTTL = 10 * time.Minute

// AuthorFact names the author of a change. See attribution.Fact for what lies beyond gitops-reverser's fields.
type AuthorFact = attribution.Fact

// AuthorResolution is the answer to a lookup.
type AuthorResolution = attribution.Resolution

// AttributionResult is the class of an answer.
type AttributionResult = attribution.Result

// The classes of an answer.
const (
	AttributionExactUser                 = attribution.ExactUser
	AttributionExactServiceAccount       = attribution.ExactServiceAccount
	AttributionWeak                      = attribution.Weak
	AttributionExactDeleteCollectionItem = attribution.ExactDeleteCollectionItem
	AttributionAbsent                    = attribution.Absent
)

// AttributionIndex keeps what audit events prove and answers who wrote a version. It is safe for
// concurrent use, and any number of processes may write and read the same keyspace at once: what is
// stored does not depend on the order of arrival, but for facts with equal stamps.
type AttributionIndex struct {
	client  redis.UniversalClient
	prefix  string
	ttl     time.Duration
	skew    time.Duration
	scripts *scriptLoader
	heard   *hearing
	writers *sync.Pool

	alreadyClaimed *atomic.Uint64
}

// AttributionIndex returns the index whose facts live for factTTL, or for DefaultAttributionFactTTL when
// that is not positive.
func (s *RedisStore) AttributionIndex(factTTL time.Duration) *AttributionIndex {
	if factTTL <= 0 {
		factTTL = DefaultAttributionFactTTL
	}
	return &AttributionIndex{
		client:  s.client,
		prefix:  s.prefix,
		ttl:     factTTL,
		scripts: &scriptLoader{},
		heard:   &hearing{},
		writers: &sync.Pool{New: func() any { return new(factWriter) }},

		alreadyClaimed: &atomic.Uint64{},
	}
}

// WithClockSkew returns an index that takes stamps of different API servers to be off by up to skew.
func (a *AttributionIndex) WithClockSkew(skew time.Duration) *AttributionIndex {
	out := *a
	out.skew = skew
	return &out
}

// RecordEvents applies the ingest gate to each event and stores what those that pass prove, weaker evidence
// too, in one round trip. The answer holds the fate of each event, in order; with an error nothing is known to be stored.
// An event is filed under route or, when that is empty, under its own.
func (a *AttributionIndex) RecordEvents(ctx context.Context, route string, events []attribution.Event) ([]attribution.Reason, error) {
	w := a.writer()
	defer a.release(w)
	reasons := make([]attribution.Reason, len(events))
	for i := range events {
		reasons[i] = w.addEvent(route, &events[i])
	}
	return reasons, w.flush(ctx)
}

// VersionsAlreadyClaimed is how many facts this process filed for a version that an earlier request had claimed: mostly
// requests that changed nothing, and posts that came twice.
func (a *AttributionIndex) VersionsAlreadyClaimed() uint64 { return a.alreadyClaimed.Load() }

// loaded is whether the scripts are known to be on the server.
type scriptLoader struct{ loaded atomic.Bool }
