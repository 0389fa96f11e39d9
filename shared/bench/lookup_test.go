//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// lookupRows measures one lookup of 500 versions beside 500 lookups of one.
func lookupRows(t *testing.T) []Row {
	server := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	index := store.AttributionIndex(time.Hour)
	const size = 500
	events := make([]attribution.Event, size)
	queries := make([]queue.AuthorQuery, size)
	for i := range events {
		uid := fmt.Sprintf("0c1c2a6e-0000-4000-8000-%012d", i)
		events[i] = attribution.Event{
			AuditID: uid, Level: "RequestResponse", Stage: "ResponseComplete", Verb: "update", Code: 200,
			User: attribution.User{Username: "alice"}, Received: time.Now(), Staged: time.Now(),
			Object:   attribution.ObjectRef{Resource: "configmaps", Namespace: "shop", Name: fmt.Sprint("c-", i)},
			Response: attribution.Body{Kind: "ConfigMap", Name: fmt.Sprint("c-", i), Namespace: "shop", UID: uid, ResourceVersion: fmt.Sprint(i)},
		}
		queries[i] = queue.AuthorQuery{
			AuditRoute: "bench", GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			UID: types.UID(uid), RV: fmt.Sprint(i), ExactCapable: true,
		}
	}
	if _, err := index.RecordEvents(t.Context(), "bench", events); err != nil {
		t.Fatal(err)
	}
	look := func(step int) func() float64 {
		return func() float64 {
			begin, found := time.Now(), 0
			for from := 0; from < size; from += step {
				answers, err := index.LookupAuthors(t.Context(), queries[from:from+step])
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range answers {
					if a.Fact.Author == "alice" {
						found++
					}
				}
			}
			if found != size {
				t.Fatalf("%d of %d authors found", found, size)
			}
			return time.Since(begin).Seconds() * 1000
		}
	}
	rounds := 31
	if Quick() {
		rounds = 7
	}
	m := Interleave(rounds, look(size), look(1))
	return []Row{LessIsBetter("lookup of 500 authors", "ms", m[0], m[1], "one lookup after another")}
}
