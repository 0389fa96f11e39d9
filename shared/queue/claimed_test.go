package queue

import (
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestFactsForAClaimedVersionAreCounted(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		store, err := NewRedisStore(RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		index := store.AttributionIndex(time.Minute)
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		write := func(user, rv string, at time.Time) attribution.Event {
			return attribution.Event{
				AuditID: user + rv, Level: "RequestResponse", Stage: "ResponseComplete", Verb: "update", Code: 200, User: attribution.User{Username: user}, Received: at, Staged: at,
				Object: attribution.ObjectRef{Resource: "configmaps", Namespace: "shop", Name: "c"}, Response: attribution.Body{Kind: "ConfigMap", UID: "u", ResourceVersion: rv, Name: "c"},
			}
		}
		for _, step := range []struct {
			name   string
			events []attribution.Event
			want   uint64
		}{
			{"two versions", []attribution.Event{write("alice", "1", at), write("bob", "2", at)}, 0},
			{"the same post again", []attribution.Event{write("alice", "1", at), write("bob", "2", at)}, 2},
			{"a later no-op, and a new version", []attribution.Event{write("carol", "2", at.Add(time.Second)), write("carol", "3", at.Add(time.Second))}, 3},
			{"an earlier claim wins", []attribution.Event{write("dave", "3", at)}, 3},
		} {
			if _, err := index.RecordEvents(t.Context(), "r", step.events); err != nil {
				t.Fatal(err)
			}
			if got := index.VersionsAlreadyClaimed(); got != step.want {
				t.Errorf("%s: %d facts for claimed versions, want %d", step.name, got, step.want)
			}
		}
	})
}
