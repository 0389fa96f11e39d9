package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// seenPod follows one pod: a version for each deletionTimestamp, in seconds after noon, 0 for none. The last is of its removal.
func seenPod(deletions ...int) []*attribution.Sighting {
	observer := attribution.NewObserver("pods", attribution.NewFamily())
	var out []*attribution.Sighting
	for i, deletion := range deletions {
		meta := map[string]any{
			"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": fmt.Sprint(i + 1), "creationTimestamp": noon.Format(time.RFC3339),
		}
		if deletion > 0 {
			meta["deletionTimestamp"] = noon.Add(time.Duration(deletion) * time.Second).Format(time.RFC3339)
			meta["deletionGracePeriodSeconds"] = int64(0)
		}
		event := attribution.Modified
		switch i {
		case 0:
			event = attribution.Added
		case len(deletions) - 1:
			event = attribution.Deleted
		}
		out = append(out, observer.See(event, map[string]any{"metadata": meta}))
	}
	return out
}

func removal(user, verb string, at int, answer attribution.Body) attribution.Event {
	received := noon.Add(time.Duration(at)*time.Second + 100*time.Millisecond)
	e := attribution.Event{
		AuditID: fmt.Sprint(user, at), Stage: "ResponseComplete", Verb: verb, Code: 200, User: attribution.User{Username: user},
		Object:   attribution.ObjectRef{Resource: "pods", Namespace: "shop", Name: "web"},
		Received: received, Staged: received.Add(10 * time.Millisecond), Response: answer,
	}
	if verb == "deletecollection" {
		e.Object.Name = ""
	}
	return e
}

func TestRemovalsOfPods(t *testing.T) {
	gone := func(rv string) attribution.Body {
		return attribution.Body{Kind: "Pod", Namespace: "shop", Name: "web", UID: "u", ResourceVersion: rv, Deleting: true}
	}
	crowd := []attribution.Event{removal("alice", "deletecollection", 3, attribution.Body{})}
	for i := range 200 {
		crowd = append(crowd, removal("bob", "deletecollection", 10+i, attribution.Body{}))
	}
	for _, c := range []struct {
		name string
		seen *attribution.Sighting
		in   []attribution.Event
		want string
	}{
		{
			"a forced delete makes a version on the way, which only the next one's record explains", seenPod(0, 3, 9, 9)[2],
			[]attribution.Event{removal("alice", "delete", 3, gone("2")), removal("bob", "delete", 9, gone("4"))},
			"bob weak deleted-uid",
		},
		{"one collection delete fits", seenPod(0, 3)[1], crowd[:20], "alice weak collection-scope"},
		{"it may have been dropped, as there were too many", seenPod(0, 3)[1], crowd, "absent crowded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
				index := newStore(t, server).AttributionIndex(0)
				if _, err := index.RecordEvents(context.Background(), "default", c.in); err != nil {
					t.Fatal(err)
				}
				answers, err := index.LookupAuthors(context.Background(), []queue.AuthorQuery{{
					AuditRoute: "default", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, UID: types.UID(c.seen.UID),
					RV: c.seen.ResourceVersion, ExactCapable: c.seen.Type != attribution.Deleted, Sighting: c.seen,
				}})
				if err != nil {
					t.Fatal(err)
				}
				if got := named(answers[0]); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// A no-op that began after a write was done and was answered before it has the earlier stamp.
func TestAWriteIsToldFromANoOpThatOverlapsIt(t *testing.T) {
	observer := attribution.NewObserver("configmaps", attribution.NewFamily())
	version := func(rv string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "prices", "uid": "u", "resourceVersion": rv, "creationTimestamp": noon.Format(time.RFC3339)}}
	}
	observer.See(attribution.Added, version("6"))
	seen := observer.See(attribution.Modified, version("7"))
	write := request{user: "alice", verb: "update", received: 1, staged: 50, request: object("u", "6"), answer: object("u", "7")}
	noop := request{user: "flux", verb: "patch", received: 10, staged: 20, answer: object("u", "7")}
	for name, in := range map[string][]request{"the write comes first": {write, noop}, "the no-op comes first": {noop, write}} {
		t.Run(name, func(t *testing.T) {
			valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
				index := newStore(t, server).AttributionIndex(0)
				for _, r := range in {
					if err := index.RecordFact(context.Background(), "default", r.event()); err != nil {
						t.Fatal(err)
					}
				}
				answers, err := index.LookupAuthors(context.Background(), []queue.AuthorQuery{{
					AuditRoute: "default", GVR: configmaps, UID: types.UID(seen.UID), RV: seen.ResourceVersion, ExactCapable: true, Sighting: seen,
				}})
				if err != nil {
					t.Fatal(err)
				}
				if got := named(answers[0]); got != "alice exact_user" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}
