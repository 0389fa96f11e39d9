// Package accuracy measures how well authors are named: it replays a recorded session into the functions that take
// audit events and reviews, asks for the author of every change that the session's watches saw, and holds the
// answers against the session's truth.
package accuracy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

// Index answers who made changes.
type Index interface {
	LookupAuthors(ctx context.Context, queries []queue.AuthorQuery) ([]queue.AuthorResolution, error)
}

// Options say what a session is replayed into.
type Options struct {
	Ingest    http.Handler // takes POST /audit-webhook/<route>
	Admission http.Handler // takes POST /validate-operator-types; nil leaves the reviews out
	Index     Index
	// Grace is how long a change waits for its author, in the time of the session.
	Grace time.Duration
	// Route is where every POST goes: all API servers of a session are one cluster's.
	Route string
}

// Outcome is what became of one change.
type Outcome struct {
	Truth replay.Truth
	Found queue.AuthorResolution
}

// Verdict is how an answer stands against the truth.
type Verdict int

// The verdicts.
const (
	Right             Verdict = iota
	Unresolved                // though knowable
	Wrong                     // a name, and not the right one
	RightlyUnresolved         // there was nothing to know
	verdicts                  // how many there are
)

// Verdict holds the answer against the truth. Whose a removal is, is its initiator's.
func (o *Outcome) Verdict() Verdict {
	want := o.Truth.Owner()
	switch {
	case o.Found.Result != attribution.Absent && o.Found.Fact.Author == want:
		return Right
	case o.Found.Result != attribution.Absent:
		return Wrong
	case want == "" || o.Truth.Knowable == "no":
		return RightlyUnresolved
	}
	return Unresolved
}

// change is one change on its way to an author.
type change struct {
	truth replay.Truth
	gvr   schema.GroupVersionResource
	seen  *attribution.Sighting
	until time.Duration
}

// run is a replay under way.
type run struct {
	Options
	waiting []*change
	done    []Outcome
}

// moment is one thing that arrives.
type moment struct {
	at time.Duration
	do func(ctx context.Context) error
}

// Replay plays the session in the order of arrival, without waiting in between, and returns an Outcome for each
// line of its truth.
func Replay(ctx context.Context, session *replay.Session, o Options) ([]Outcome, error) {
	r := &run{Options: o}
	truth := map[string]replay.Truth{}
	for _, t := range session.Truth {
		truth[key(t.Group, t.Resource, t.UID, t.RV, t.Type)] = t
	}
	var moments []moment
	family := attribution.NewFamily()
	for _, w := range session.Watches {
		observer := attribution.NewObserver(attribution.GroupResource(w.Group, w.Resource), family)
		for _, e := range w.Initial {
			moments = append(moments, moment{e.At, func(context.Context) error {
				if e.Type != "BOOKMARK" {
					observer.Initial(e.Object.Object)
				}
				return nil
			}})
		}
		for _, e := range w.Live {
			moments = append(moments, moment{e.At, func(context.Context) error {
				switch e.Type {
				case "BOOKMARK":
					return nil
				case "ERROR":
					observer.Forget()
					return nil
				}
				seen := observer.See(e.Type, e.Object.Object)
				id := key(w.Group, w.Resource, seen.UID, seen.ResourceVersion, e.Type)
				t, known := truth[id]
				if !known {
					return nil
				}
				delete(truth, id)
				r.waiting = append(r.waiting, &change{truth: t, gvr: w.GroupVersionResource, seen: seen, until: e.At + o.Grace})
				return nil
			}})
		}
	}
	for _, p := range session.Audit {
		if p.Answered >= http.StatusMultipleChoices {
			continue // it comes again
		}
		moments = append(moments, moment{p.At, func(ctx context.Context) error {
			if err := post(ctx, o.Ingest, "/audit-webhook/"+url.PathEscape(o.Route), p.Body); err != nil {
				return err
			}
			return r.settle(ctx, p.At)
		}})
	}
	if o.Admission != nil {
		for _, a := range session.Admission {
			moments = append(moments, moment{a.At, func(ctx context.Context) error {
				return post(ctx, o.Admission, "/validate-operator-types", a.Body)
			}})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	for _, m := range moments {
		if err := r.expire(ctx, m.at); err != nil {
			return nil, err
		}
		if err := m.do(ctx); err != nil {
			return nil, fmt.Errorf("session %s at %v: %w", session.Name, m.at, err)
		}
	}
	if err := r.expire(ctx, 1<<62); err != nil {
		return nil, err
	}
	if len(truth) > 0 {
		for _, t := range truth {
			return nil, fmt.Errorf("session %s: %d lines of its truth are of no live event, such as %s %s/%s rv %s", session.Name, len(truth), t.Resource, t.Namespace, t.Name, t.RV)
		}
	}
	return r.done, nil
}

func key(group, resource, uid, rv, event string) string {
	return group + "/" + resource + " " + uid + " " + rv + " " + event
}

func post(ctx context.Context, handler http.Handler, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	if answer.Code != http.StatusOK {
		return fmt.Errorf("POST %s: %d %.200s", path, answer.Code, answer.Body)
	}
	return nil
}

// settle asks for the authors of everything that waits. An answer that an event on its way could change waits on.
func (r *run) settle(ctx context.Context, now time.Duration) error {
	if len(r.waiting) == 0 {
		return nil
	}
	queries := make([]queue.AuthorQuery, len(r.waiting))
	for i, c := range r.waiting {
		queries[i] = queue.AuthorQuery{
			AuditRoute: r.Route, GVR: c.gvr, UID: types.UID(c.seen.UID), RV: c.seen.ResourceVersion,
			ExactCapable: c.seen.Type != attribution.Deleted, Sighting: c.seen,
		}
	}
	answers, err := r.Index.LookupAuthors(ctx, queries)
	if err != nil {
		return err
	}
	var still []*change
	for i, c := range r.waiting {
		settled := answers[i].Result != attribution.Absent && !answers[i].Provisional
		if settled || c.until <= now {
			r.done = append(r.done, Outcome{Truth: c.truth, Found: answers[i]})
			continue
		}
		still = append(still, c)
	}
	r.waiting = still
	return nil
}

// expire settles what has waited long enough by now, each change with what had arrived by then.
func (r *run) expire(ctx context.Context, now time.Duration) error {
	for {
		next := time.Duration(1 << 62)
		for _, c := range r.waiting {
			next = min(next, c.until)
		}
		if len(r.waiting) == 0 || next > now {
			return nil
		}
		if err := r.settle(ctx, next); err != nil {
			return err
		}
	}
}
