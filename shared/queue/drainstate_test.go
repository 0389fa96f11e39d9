package queue_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestNotesKeepTheFirstSightAndGoWithTheCursor(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store, counter := context.Background(), newStore(t, server), &valkeytest.Counter{}
		store.AddHook(counter)
		cm := queue.Shard{TargetUID: "t", GVR: configmaps, Namespace: "shop"}
		dep := queue.Shard{TargetUID: "t", GVR: deployments}
		first := time.Date(2026, 3, 1, 10, 0, 0, 123e6, time.UTC)
		sights := []queue.Sight{
			{Shard: cm, RV: "9", UID: "u1", Namespace: "shop", Name: "a", Type: "ADDED", SeenAt: first},
			{Shard: dep, RV: "11", UID: "u2", Namespace: "web", Name: "b", Type: "MODIFIED", SeenAt: first},
			{Shard: cm, RV: "10", UID: "u1", Namespace: "shop", Name: "a", Type: "MODIFIED", SeenAt: first},
		}
		if _, err := store.NoteSights(ctx, sights); err != nil {
			t.Fatal(err)
		}
		later := append([]queue.Sight(nil), sights...)
		for i := range later {
			later[i].SeenAt = first.Add(time.Minute)
		}
		later = append(later, queue.Sight{Shard: cm, RV: "12", UID: "u1", Namespace: "shop", Name: "a", Type: "DELETED", SeenAt: first.Add(time.Minute)})
		noted, err := store.NoteSights(ctx, later)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Time{first, first, first, first.Add(time.Minute)} {
			if !noted[i].SeenAt.Equal(want) || noted[i].Known != (queue.Object{}) {
				t.Errorf("note %d: got %+v, want seen at %v and nothing known", i, noted[i], want)
			}
		}
		if counter.Trips() != 2 {
			t.Errorf("noting twice took %d round trips, want 2", counter.Trips())
		}
		got, err := store.Sights(ctx, cm, "9")
		if err != nil {
			t.Fatal(err)
		}
		if want := []queue.Sight{sights[2], later[3]}; !cmp.Equal(got, want) {
			t.Errorf("sights after 9: %s", cmp.Diff(want, got))
		}
		if _, err := store.Pass(ctx, []queue.CursorMove{{Shard: cm, To: "10", Objects: map[string]queue.Object{"u1": {RV: "10", Blob: "b10"}}}}); err != nil {
			t.Fatal(err)
		}
		if got, err = store.Sights(ctx, cm, ""); err != nil || len(got) != 1 || got[0].RV != "12" {
			t.Errorf("after passing 10: got %+v %v, want only 12", got, err)
		}
		noted, err = store.NoteSights(ctx, later[3:])
		if err != nil || noted[0].Known != (queue.Object{RV: "10", Blob: "b10"}) {
			t.Errorf("known object: got %+v %v", noted, err)
		}
		// An older version never replaces a newer one; an empty blob forgets.
		for _, step := range []struct{ give, want queue.Object }{
			{queue.Object{RV: "9", Blob: "b9"}, queue.Object{RV: "10", Blob: "b10"}},
			{queue.Object{RV: "11", Blob: queue.ObjectRemoved, Trace: "11,,,"}, queue.Object{RV: "11", Blob: queue.ObjectRemoved, Trace: "11,,,"}},
			{queue.Object{RV: "12"}, queue.Object{}},
		} {
			if _, err := store.Pass(ctx, []queue.CursorMove{{Shard: cm, To: "11", Objects: map[string]queue.Object{"u1": step.give}}}); err != nil {
				t.Fatal(err)
			}
			if noted, err = store.NoteSights(ctx, later[3:]); err != nil || noted[0].Known != step.want {
				t.Errorf("after %+v: got %+v %v, want %+v", step.give, noted, err, step.want)
			}
		}
		// A replay comes behind the change that made its version, however it was noted.
		for rv := 20; rv < 40; rv++ {
			at := strconv.Itoa(rv)
			if _, err := store.NoteSights(ctx, []queue.Sight{{Shard: cm, RV: at, Type: queue.SightReplay}, {Shard: cm, RV: at, UID: "u1", Type: "MODIFIED"}}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err = store.Sights(ctx, cm, "19"); err != nil || len(got) != 40 {
			t.Fatalf("got %+v %v, want 40 notes", got, err)
		}
		for i, sight := range got {
			if replay := sight.Type == queue.SightReplay; sight.RV != strconv.Itoa(20+i/2) || replay != (i%2 == 1) {
				t.Errorf("note %d: %+v", i, sight)
			}
		}
		// A replay ends what was noted before it; who forgets a shard forgets all of it.
		if _, err := store.Pass(ctx, []queue.CursorMove{{Shard: cm, From: "11", To: "38", Replayed: true}}); err != nil {
			t.Fatal(err)
		}
		if got, err = store.Sights(ctx, cm, ""); err != nil || len(got) != 2 || got[0].RV != "39" {
			t.Errorf("after a replay: got %+v %v, want those of 39", got, err)
		}
		if err := store.ForgetShard(ctx, cm); err != nil {
			t.Fatal(err)
		}
		if _, ok := store.LookupWatchCursor(ctx, "t", configmaps, "shop"); ok {
			t.Error("a forgotten shard still has a cursor")
		}
		if got, err = store.Sights(ctx, cm, ""); err != nil || len(got) != 0 {
			t.Errorf("a forgotten shard still has notes: %+v %v", got, err)
		}
	})
}

func TestLease(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store := context.Background(), newStore(t, server)
		branch := queue.BranchID("git.example.com/cfg", "main")
		first, err := store.AcquireLease(ctx, branch, time.Minute)
		if err != nil || first == 0 {
			t.Fatalf("first lease: %d %v", first, err)
		}
		if token, err := store.AcquireLease(ctx, branch, time.Minute); err != nil || token != 0 {
			t.Fatalf("a held lease was given out again: %d %v", token, err)
		}
		if r, err := store.ReleaseLease(ctx, branch, first, time.Minute); err != nil || r != queue.ReleaseDirty {
			t.Fatalf("release after a wake: %v %v, want refused", r, err)
		}
		if token, err := store.TakeLease(ctx, branch, time.Minute); err != nil || token != 0 {
			t.Fatalf("a held lease was given to one who waits for it: %d %v", token, err)
		}
		if r, err := store.ReleaseLease(ctx, branch, first, time.Minute); err != nil || r != queue.Released {
			t.Fatalf("release without a wake: %v %v", r, err)
		}
		if r, err := store.ReleaseLease(ctx, branch, first, time.Minute); err != nil || r != queue.ReleaseLost {
			t.Fatalf("release of what is not ours: %v %v", r, err)
		}
		second, err := store.AcquireLease(ctx, branch, time.Minute)
		if err != nil || second <= first {
			t.Fatalf("second token %d after %d: %v", second, first, err)
		}
		if ours, err := store.RenewLease(ctx, branch, second, 30*time.Millisecond); err != nil || !ours {
			t.Fatalf("renew: %v %v", ours, err)
		}
		pass(server, 60*time.Millisecond)
		if ours, err := store.RenewLease(ctx, branch, second, time.Minute); err != nil || ours {
			t.Fatalf("renew after it ran out: %v %v", ours, err)
		}
		intent := queue.Intent{Old: "a", New: "b"}
		if err := store.StoreIntent(ctx, branch, second, intent); err != nil {
			t.Fatalf("an intent while nobody took over: %v", err)
		}
		third, err := store.AcquireLease(ctx, branch, time.Minute)
		if err != nil || third <= second {
			t.Fatalf("third token %d after %d: %v", third, second, err)
		}
		if err := store.StoreIntent(ctx, branch, second, queue.Intent{New: "c"}); !errors.Is(err, queue.ErrLeaseLost) {
			t.Fatalf("an intent after another drain took over: got %v, want ErrLeaseLost", err)
		}
		if got, err := store.Intents(ctx, branch); err != nil || !cmp.Equal(got, []queue.Intent{intent}) {
			t.Fatalf("intents: %+v %v", got, err)
		}
		if err := store.DropIntents(ctx, branch, "b", "never there"); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Intents(ctx, branch); err != nil || len(got) != 0 {
			t.Fatalf("intents after dropping: %+v %v", got, err)
		}
		if token, err := store.AcquireLease(ctx, branch, time.Minute); err != nil || token != 0 {
			t.Fatalf("wake: %d %v", token, err)
		}
		if err := store.YieldLease(ctx, branch, third); err != nil {
			t.Fatal(err)
		}
		if token, err := store.AcquireLease(ctx, branch, time.Minute); err != nil || token <= third {
			t.Fatalf("after yielding: %d %v", token, err)
		}
	})
}

func pass(server valkeytest.Server, d time.Duration) {
	if server.Forward != nil {
		server.Forward(d)
		return
	}
	time.Sleep(d)
}

func TestIntentsKeepTheirMoves(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store := context.Background(), newStore(t, server)
		want := queue.Intent{Old: "a", New: "b", Moves: []queue.CursorMove{{
			Shard: queue.Shard{TargetUID: "t", GVR: deployments, Namespace: "shop"}, From: "1", To: "2", Replayed: true,
			Objects: map[string]queue.Object{"u": {RV: "2", Blob: "x"}},
		}}}
		if err := store.StoreIntent(ctx, "branch", 0, want); err != nil {
			t.Fatal(err)
		}
		got, err := store.Intents(ctx, "branch")
		if err != nil || !cmp.Equal(got, []queue.Intent{want}) {
			t.Fatalf("got %+v %v, want %+v", got, err, want)
		}
	})
}

func gitObject(kind, content string) (id string, raw []byte) {
	raw = []byte(fmt.Sprintf("%s %d\x00%s", kind, len(content), content))
	sum := sha1.Sum(raw)
	return hex.EncodeToString(sum[:]), raw
}

func TestObjectCache(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store, counter := context.Background(), newStore(t, server), &valkeytest.Counter{}
		cache := store.ObjectCache()
		id, raw := gitObject("tree", "some entries")
		other, _ := gitObject("tree", "other entries")
		bigID, big := gitObject("tree", strings.Repeat("x", queue.MaxObjectBytes))
		err := cache.Put(ctx, "repo", map[string][]byte{id: raw, other: []byte("forged"), bigID: big})
		if err != nil {
			t.Fatal(err)
		}
		store.AddHook(counter)
		got, err := cache.Get(ctx, "repo", []string{id, other, bigID, "not an id"})
		if err != nil || !cmp.Equal(got, map[string][]byte{id: raw}) {
			t.Errorf("got %d objects %v, want the intact small one only", len(got), err)
		}
		if counter.Trips() != 1 {
			t.Errorf("reading took %d round trips, want 1", counter.Trips())
		}
		if got, err := cache.Get(ctx, "another repo", []string{id}); err != nil || len(got) != 0 {
			t.Errorf("another repository sees the object: %v %v", got, err)
		}
	})
}

func TestAPoisonedObjectIsNotReturnedAndIsHealed(t *testing.T) {
	server := valkeytest.Mini(t)
	ctx, cache, raw := context.Background(), newStore(t, server).ObjectCache(), rawClient(t, server)
	id, content := gitObject("tree", "entries")
	if err := cache.Put(ctx, "repo", map[string][]byte{id: content}); err != nil {
		t.Fatal(err)
	}
	keys := raw.Keys(ctx, server.Prefix+":commit:v1:repo:*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys: %v", keys)
	}
	raw.HSet(ctx, keys[0], id, "forged")
	if got, err := cache.Get(ctx, "repo", []string{id}); err != nil || len(got) != 0 {
		t.Fatalf("got %q %v, want nothing", got, err)
	}
	if err := cache.Put(ctx, "repo", map[string][]byte{id: content}); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Get(ctx, "repo", []string{id}); err != nil || string(got[id]) != string(content) {
		t.Fatalf("after writing again: %q %v", got, err)
	}
}

func TestTheObjectCacheIsBounded(t *testing.T) {
	server := valkeytest.Real(t)
	ctx, cache, raw := context.Background(), newStore(t, server).ObjectCache(), rawClient(t, server)
	var last string
	for i := range 4 * queue.MaxCachedBytes / queue.MaxObjectBytes {
		id, content := gitObject("tree", fmt.Sprintf("%d%s", i, strings.Repeat("x", queue.MaxObjectBytes-64)))
		if err := cache.Put(ctx, "repo", map[string][]byte{id: content}); err != nil {
			t.Fatal(err)
		}
		last = id
	}
	var total int64
	for _, key := range raw.Keys(ctx, server.Prefix+":commit:v1:repo:*").Val() {
		total += raw.MemoryUsage(ctx, key, 0).Val()
		if ttl := raw.TTL(ctx, key).Val(); ttl <= 0 {
			t.Errorf("%s has no TTL", key)
		}
	}
	if total > queue.MaxCachedBytes*3/2 {
		t.Errorf("the cache holds %d bytes, want about %d at most", total, queue.MaxCachedBytes)
	}
	if got, err := cache.Get(ctx, "repo", []string{last}); err != nil || len(got) != 1 {
		t.Errorf("the newest object is gone: %v", err)
	}
}

func TestTipMemory(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx, tips := context.Background(), newStore(t, server).TipMemory()
		if tip, err := tips.RememberedTip(ctx, "repo", "main"); err != nil || tip != "" {
			t.Fatalf("a tip that nobody remembered: %q %v", tip, err)
		}
		if err := tips.RememberTip(ctx, "repo", "main", "abc"); err != nil {
			t.Fatal(err)
		}
		if tip, err := tips.RememberedTip(ctx, "repo", "main"); err != nil || tip != "abc" {
			t.Fatalf("got %q %v, want abc", tip, err)
		}
		if tip, err := tips.RememberedTip(ctx, "repo", "other"); err != nil || tip != "" {
			t.Fatalf("another branch: %q %v", tip, err)
		}
	})
}

func TestShardsThatLeaveOrServeAnotherPurposeAreForgotten(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store := context.Background(), newStore(t, server)
		cm, dep := queue.Shard{TargetUID: "t", GVR: configmaps, Namespace: "shop"}, queue.Shard{TargetUID: "t", GVR: deployments}
		settle := func(want int, purposes map[queue.Shard]string, absent ...schema.GroupResource) {
			t.Helper()
			if n, err := store.SettleShards(ctx, "t", purposes, absent...); err != nil || n != want {
				t.Fatalf("forgot %d %v, want %d", n, err, want)
			}
		}
		settle(0, map[queue.Shard]string{cm: "a", dep: "a"})
		if _, err := store.Pass(ctx, []queue.CursorMove{{Shard: cm, To: "5"}, {Shard: dep, To: "6"}}); err != nil {
			t.Fatal(err)
		}
		settle(0, map[queue.Shard]string{cm: "a", dep: "a"})
		settle(1, map[queue.Shard]string{cm: "a", dep: "b"})
		if got, err := store.WatchCursors(ctx, []queue.Shard{cm, dep}); err != nil || !cmp.Equal(got, []string{"5", ""}) {
			t.Fatalf("cursors %v %v, want the one of another purpose gone", got, err)
		}
		settle(0, map[queue.Shard]string{dep: "b"}, configmaps.GroupResource())
		if got, err := store.WatchCursors(ctx, []queue.Shard{cm}); err != nil || got[0] != "5" {
			t.Fatalf("cursor %v %v of a resource that is absent for a moment", got, err)
		}
		settle(1, map[queue.Shard]string{dep: "b"})
		if got, err := store.WatchCursors(ctx, []queue.Shard{cm}); err != nil || got[0] != "" {
			t.Fatalf("cursor %v %v of a shard that left", got, err)
		}
		settle(1, nil)
		settle(0, nil)
	})
}

func TestLastCommits(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store := context.Background(), newStore(t, server)
		if err := store.RememberCommits(ctx, "b", map[string]string{"alice": "1", "bob": "2"}); err != nil {
			t.Fatal(err)
		}
		if err := store.RememberCommits(ctx, "b", map[string]string{"alice": "3"}); err != nil {
			t.Fatal(err)
		}
		for author, want := range map[string]string{"alice": "3", "bob": "2", "carol": ""} {
			if id, err := store.LastCommit(ctx, "b", author); err != nil || id != want {
				t.Errorf("%s: %q %v, want %q", author, id, err, want)
			}
		}
	})
}
