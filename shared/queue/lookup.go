package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// AuthorQuery asks who made one change.
type AuthorQuery struct {
	AuditRoute string
	GVR        schema.GroupVersionResource
	UID        types.UID
	RV         string
	// ExactCapable is true for ADDED and MODIFIED, whose version a request's answer may hold, and false for
	// DELETED.
	ExactCapable bool
	// Sighting is what the watch saw. With it weaker evidence counts too, and strong evidence that does not
	// fit what was seen does not.
	Sighting *attribution.Sighting
}

// LookupAuthor returns the best fact for a version, or false when there is none or when the store cannot
// say; LookupAuthors tells these two apart.
func (a *AttributionIndex) LookupAuthor(ctx context.Context, auditRoute string, gvr schema.GroupVersionResource, uid types.UID, rv string, exactCapable bool) (AuthorFact, bool) {
	resolution := a.LookupAuthorResolution(ctx, auditRoute, gvr, uid, rv, exactCapable)
	return resolution.Fact, resolution.Result != AttributionAbsent
}

// LookupAuthorResolution is LookupAuthor with the class of the evidence.
func (a *AttributionIndex) LookupAuthorResolution(ctx context.Context, auditRoute string, gvr schema.GroupVersionResource, uid types.UID, rv string, exactCapable bool) AuthorResolution {
	query := AuthorQuery{AuditRoute: auditRoute, GVR: gvr, UID: uid, RV: rv, ExactCapable: exactCapable}
	answers, err := a.LookupAuthors(ctx, []AuthorQuery{query})
	if err != nil {
		return AuthorResolution{Result: AttributionAbsent}
	}
	return answers[0]
}

// LookupAuthors answers all queries, in order, in one round trip. An error means that nothing is known,
// which is not the same as that nobody is.
func (a *AttributionIndex) LookupAuthors(ctx context.Context, queries []AuthorQuery) ([]AuthorResolution, error) {
	r := reader{index: a, pipe: a.client.Pipeline(), gets: map[string]*redis.StringCmd{}}
	evidence := make([]evidenceCmds, len(queries))
	for i := range queries {
		evidence[i] = r.ask(ctx, &queries[i])
	}
	if len(r.gets) > 0 {
		if _, err := r.pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("look up authors: %w", err)
		}
	}
	for _, get := range r.gets {
		if err := get.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("look up authors: %w", err)
		}
	}
	out := make([]AuthorResolution, len(queries))
	for i := range queries {
		found := evidence[i].read()
		out[i] = attribution.Resolve(&found, a.skew)
	}
	return out, nil
}

// reader gathers the reads of one batch; equal keys are read once.
type reader struct {
	index *AttributionIndex
	pipe  redis.Pipeliner
	gets  map[string]*redis.StringCmd
	key   []byte
}

// evidenceCmds are the reads that concern one query; nil where there is nothing to read.
type evidenceCmds struct {
	exact, last, version *redis.StringCmd
}

func (r *reader) ask(ctx context.Context, q *AuthorQuery) evidenceCmds {
	gr, prefix, uid := groupResourceKey(q.GVR.GroupResource()), r.index.prefix, string(q.UID)
	var e evidenceCmds
	if uid != "" && q.RV != "" {
		e.exact = r.get(ctx, appendExactKey(r.key[:0], prefix, q.AuditRoute, gr, uid, q.RV))
	}
	if uid != "" && !q.ExactCapable {
		e.last = r.get(ctx, appendLastKey(r.key[:0], prefix, q.AuditRoute, gr, uid))
	}
	if q.RV != "" {
		e.version = r.get(ctx, appendVersionKey(r.key[:0], prefix, q.AuditRoute, gr, q.RV))
	}
	return e
}

func (r *reader) get(ctx context.Context, key []byte) *redis.StringCmd {
	r.key = key
	if cmd, asked := r.gets[string(key)]; asked {
		return cmd
	}
	name := string(key)
	cmd := r.pipe.Get(ctx, name)
	r.gets[name] = cmd
	return cmd
}

func (e *evidenceCmds) read() attribution.Evidence {
	return attribution.Evidence{Exact: record(e.exact), Last: record(e.last), Version: record(e.version)}
}

func record(cmd *redis.StringCmd) *attribution.Record {
	if cmd == nil || cmd.Err() != nil {
		return nil
	}
	if r, ok := attribution.ParseRecord(cmd.Val()); ok {
		return &r
	}
	return nil
}
