package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
// which is not the same as that nobody is. The answer to a query without a Sighting holds what
// gitops-reverser's would and no more, so a program that compares whole answers finds what it expects.
func (a *AttributionIndex) LookupAuthors(ctx context.Context, queries []AuthorQuery) ([]AuthorResolution, error) {
	r := reader{index: a, pipe: a.client.Pipeline(), gets: make(map[string]*stored, 2*len(queries)), parsed: map[*stored][]attribution.Request{}}
	evidence := make([]evidenceCmds, len(queries))
	for i := range queries {
		evidence[i] = r.ask(&queries[i])
	}
	if err := r.fetch(ctx); err != nil {
		return nil, fmt.Errorf("look up authors: %w", err)
	}
	out := make([]AuthorResolution, len(queries))
	for i := range queries {
		found := r.read(&evidence[i])
		out[i] = attribution.Resolve(&found, a.skew)
		if queries[i].Sighting == nil {
			out[i] = AuthorResolution{Fact: out[i].Fact, Result: out[i].Result}
			out[i].Fact.ImpersonatedBy = ""
		}
	}
	return out, nil
}

// reader gathers the reads of one batch; equal keys are read once.
type reader struct {
	index *AttributionIndex
	pipe  redis.Pipeliner
	gets  map[string]*stored
	order []*stored // gets, as they were asked for
	key   []byte

	parsed map[*stored][]attribution.Request
}

// stored is the value of a key, once it is fetched.
type stored struct {
	key   string
	value string
	found bool
}

// evidenceCmds are the reads that concern one query; nil where there is nothing to read.
type evidenceCmds struct {
	resource             string
	seen                 *attribution.Sighting
	exact, last, version *stored
	gone                 *stored
	// Only with a Sighting.
	named, scoped, scopedAll, namespace, crd *stored
	owners                                   []ownerCmds
}

// ownerCmds are the reads that concern the deletion of an owner.
type ownerCmds struct {
	deletion *stored
	removal  *evidenceCmds
	owners   []ownerCmds
}

func (r *reader) ask(q *AuthorQuery) evidenceCmds {
	return r.askFor(subject{
		route: q.AuditRoute, resource: groupResourceKey(q.GVR.GroupResource()), uid: string(q.UID), version: q.RV,
		removal: !q.ExactCapable || q.Sighting != nil && q.Sighting.Removal(), seen: q.Sighting,
	})
}

// subject is the change that is asked about.
type subject struct {
	route, resource, uid, version string
	removal                       bool
	seen                          *attribution.Sighting
}

func (r *reader) askFor(q subject) evidenceCmds {
	gr, prefix, route, uid := q.resource, r.index.prefix, q.route, q.uid
	e := evidenceCmds{resource: gr, seen: q.seen}
	if uid != "" && q.version != "" {
		e.exact = r.get(appendExactKey(r.key[:0], prefix, route, gr, uid, q.version))
	}
	if uid != "" && q.removal {
		e.last = r.get(appendLastKey(r.key[:0], prefix, route, gr, uid))
	}
	if q.version != "" {
		e.version = r.get(appendVersionKey(r.key[:0], prefix, route, gr, q.version))
	}
	s := q.seen
	if s == nil {
		return e
	}
	e.named = r.get(appendNameKey(r.key[:0], prefix, route, gr, s.Namespace, s.Name))
	if !q.removal {
		return e
	}
	if next := s.Next; next != nil && next.Type == attribution.Deleted && uid != "" {
		e.gone = r.get(appendExactKey(r.key[:0], prefix, route, gr, uid, next.ResourceVersion))
	}
	e.scopedAll = r.get(appendScopeKey(r.key[:0], prefix, route, gr, ""))
	if s.Namespace != "" {
		e.scoped = r.get(appendScopeKey(r.key[:0], prefix, route, gr, s.Namespace))
		e.namespace = r.get(appendNameKey(r.key[:0], prefix, route, "namespaces", "", s.Namespace))
	}
	if group, resource, ok := strings.Cut(gr, "/"); ok {
		e.crd = r.get(appendNameKey(r.key[:0], prefix, route, "apiextensions.k8s.io/customresourcedefinitions", "", resource+"."+group))
	}
	e.owners = r.askOwners(route, s.Lineage())
	return e
}

func (r *reader) askOwners(route string, owners []attribution.Owner) []ownerCmds {
	var out []ownerCmds
	for _, o := range owners {
		cmds := ownerCmds{
			deletion: r.get(appendDeletionKey(r.key[:0], r.index.prefix, route, o.UID)),
			owners:   r.askOwners(route, o.Owners),
		}
		if o.Removal != nil {
			removal := r.askFor(subject{
				route: route, resource: o.GroupResource, uid: o.UID, version: o.Removal.ResourceVersion, removal: true, seen: o.Removal,
			})
			cmds.removal = &removal
		}
		out = append(out, cmds)
	}
	return out
}

func (r *reader) get(key []byte) *stored {
	r.key = key
	if get, asked := r.gets[string(key)]; asked {
		return get
	}
	get := &stored{key: string(key)}
	r.gets[get.key] = get
	r.order = append(r.order, get)
	return get
}

func (r *reader) read(e *evidenceCmds) attribution.Evidence {
	out := attribution.Evidence{
		GroupResource: e.resource,
		Exact:         record(e.exact),
		Last:          record(e.last),
		Version:       record(e.version),
		Gone:          record(e.gone),
		Sighting:      e.seen,
		Named:         r.requests(e.named),
		Scoped:        slices.Concat(r.requests(e.scoped), r.requests(e.scopedAll)),
		Namespaces:    r.requests(e.namespace),
		CRDs:          r.requests(e.crd),
	}
	for _, list := range []*stored{e.named, e.scoped, e.scopedAll} {
		if kept := r.requests(list); len(kept) >= maxRequests && kept[0].Received.After(out.Since) {
			out.Since = kept[0].Received
		}
	}
	out.Owners = r.readOwners(e.owners)
	return out
}

func (r *reader) readOwners(cmds []ownerCmds) []attribution.OwnerEvidence {
	var out []attribution.OwnerEvidence
	for _, cmd := range cmds {
		owner := attribution.OwnerEvidence{Deletion: record(cmd.deletion), Owners: r.readOwners(cmd.owners)}
		if cmd.removal != nil {
			removal := r.read(cmd.removal)
			owner.Removal = &removal
		}
		out = append(out, owner)
	}
	return out
}

// requests reads a list of them, the oldest first. Each list is read once in a batch.
func (r *reader) requests(get *stored) []attribution.Request {
	if get == nil || !get.found {
		return nil
	}
	out, known := r.parsed[get]
	if known {
		return out
	}
	for line := range strings.SplitSeq(get.value, "\n") {
		if request, ok := attribution.ParseRequest(line); ok {
			out = append(out, request)
		}
	}
	slices.SortStableFunc(out, func(a, b attribution.Request) int { return a.Received.Compare(b.Received) })
	r.parsed[get] = out
	return out
}

func record(get *stored) *attribution.Record {
	if get == nil || !get.found {
		return nil
	}
	if r, ok := attribution.ParseRecord(get.value); ok {
		return &r
	}
	return nil
}
