package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func rawClient(t *testing.T, server valkeytest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestCursorKeysAreTheSeeds(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store, raw := context.Background(), newStore(t, server), rawClient(t, server)
		for _, c := range []struct {
			gvr       schema.GroupVersionResource
			namespace string
			want      string
		}{
			{configmaps, "", ":watch:v1:target:uid-1:configmaps:cluster:last-rv"},
			{deployments, "shop", ":watch:v1:target:uid-1:apps/deployments:namespace:shop:last-rv"},
			{deployments, "a:b%", ":watch:v1:target:uid-1:apps/deployments:namespace:a%3Ab%25:last-rv"},
		} {
			if err := store.RecordWatchCursor(ctx, "uid-1", c.gvr, c.namespace, "42"); err != nil {
				t.Fatal(err)
			}
			got, err := raw.Get(ctx, server.Prefix+c.want).Result()
			if err != nil || got != "42" {
				t.Errorf("key %s: got %q, %v, want 42", c.want, got, err)
			}
			if ttl := raw.TTL(ctx, server.Prefix+c.want).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
				t.Errorf("key %s: TTL %v, want 1h", c.want, ttl)
			}
		}
		if err := store.RecordWatchCursor(ctx, "uid-1", configmaps, "", ""); err != nil {
			t.Fatal(err)
		}
		if rv, ok := store.LookupWatchCursor(ctx, "uid-1", configmaps, ""); !ok || rv != "42" {
			t.Errorf("an empty rv must change nothing, got %q %v", rv, ok)
		}
	})
}

func TestMovingCursors(t *testing.T) {
	for _, c := range []struct {
		name     string
		stored   string
		move     queue.CursorMove
		want     string
		wantDone bool
	}{
		{"forward", "99", queue.CursorMove{From: "99", To: "100"}, "100", true},
		{"numbers compare as numbers", "100", queue.CursorMove{From: "99", To: "99"}, "100", false},
		{"numbers longer than 64 bits", "99999999999999999999", queue.CursorMove{From: "9", To: "100000000000000000000"}, "100000000000000000000", true},
		{"never back", "200", queue.CursorMove{From: "100", To: "150"}, "200", false},
		{"again is done already", "150", queue.CursorMove{From: "100", To: "150"}, "150", true},
		{"a cursor that is gone stays gone", "", queue.CursorMove{From: "100", To: "150"}, "", false},
		{"a cursor that went behind from was replayed", "50", queue.CursorMove{From: "100", To: "150"}, "50", false},
		{"without from it is set", "", queue.CursorMove{To: "150"}, "150", true},
		{"a replay sets", "", queue.CursorMove{To: "410", Replayed: true}, "410", true},
		{"a replay may go back", "9000", queue.CursorMove{From: "9000", To: "410", Replayed: true}, "410", true},
		{"a replay that began from another cursor does not count", "500", queue.CursorMove{From: "100", To: "410", Replayed: true}, "500", false},
		{"a replay again is done already", "410", queue.CursorMove{From: "100", To: "410", Replayed: true}, "410", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
				ctx, store := context.Background(), newStore(t, server)
				c.move.Shard = queue.Shard{TargetUID: "t", GVR: configmaps, Namespace: "shop"}
				if err := store.RecordWatchCursor(ctx, "t", configmaps, "shop", c.stored); err != nil {
					t.Fatal(err)
				}
				done, err := store.Pass(ctx, []queue.CursorMove{c.move})
				if err != nil {
					t.Fatal(err)
				}
				got, _ := store.LookupWatchCursor(ctx, "t", configmaps, "shop")
				if got != c.want || done[0] != c.wantDone {
					t.Errorf("move %s → %s over %q: got %q done %v, want %q done %v", c.move.From, c.move.To, c.stored, got, done[0], c.want, c.wantDone)
				}
			})
		})
	}
}

func TestCursorsOfManyShardsTakeOneRoundTrip(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store, counter := context.Background(), newStore(t, server), &valkeytest.Counter{}
		var shards []queue.Shard
		var moves []queue.CursorMove
		for _, ns := range []string{"a", "b", "c", "d", "e"} {
			sh := queue.Shard{TargetUID: "t", GVR: deployments, Namespace: ns}
			shards, moves = append(shards, sh), append(moves, queue.CursorMove{Shard: sh, To: "7"})
		}
		store.AddHook(counter)
		if _, err := store.MoveWatchCursors(ctx, moves); err != nil {
			t.Fatal(err)
		}
		got, err := store.WatchCursors(ctx, append(shards, queue.Shard{TargetUID: "other", GVR: deployments}))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"7", "7", "7", "7", "7", ""}; !cmp.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if counter.Trips() != 2 {
			t.Errorf("moving and reading took %d round trips, want 2", counter.Trips())
		}
	})
}

func TestAnUnreachableStoreIsAnError(t *testing.T) {
	outage := valkeytest.NewOutage(t, valkeytest.Real(t).Addr)
	store := newStore(t, valkeytest.Server{Addr: outage.Addr, Prefix: "test-down"})
	outage.Set(valkeytest.Down)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	sh := queue.Shard{TargetUID: "t", GVR: configmaps}
	if _, err := store.WatchCursors(ctx, []queue.Shard{sh}); err == nil {
		t.Error("WatchCursors says there is no cursor")
	}
	if _, err := store.Intents(ctx, "b"); err == nil {
		t.Error("Intents says there is none")
	}
	if _, err := store.Sights(ctx, sh, "0"); err == nil {
		t.Error("Sights says there is none")
	}
	if _, err := store.NoteSights(ctx, []queue.Sight{{Shard: sh, RV: "1", UID: "u"}}); err == nil {
		t.Error("NoteSights says it noted")
	}
	if _, err := store.AcquireLease(ctx, "b", time.Second); err == nil {
		t.Error("AcquireLease says the lease is taken")
	}
	if _, err := store.ObjectCache().Get(ctx, "r", []string{"00"}); err == nil {
		t.Error("ObjectCache says the object is not there")
	}
}
