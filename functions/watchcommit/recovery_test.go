package watchcommit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kube"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestWhatWasSeenBeforeARestartKeepsItsAuthor(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
		sc.update(cm, "a", "bob", "update")
		sc.update(cm, "a", "erin", "patch")
		sc.remove(cm, "old-0", "carol")
		sc.late = 9 * time.Second
		sc.post()
		sc.at = 5 * time.Second
		sc.create(cm, "b", "dave") // while nobody looks
	})
	w.at(2)
	if r := w.tick(func(c *Config) { c.Grace = time.Minute }); r.Waiting != 4 {
		t.Fatalf("%+v, want 4 changes that wait", r)
	}
	w.at(6)
	w.api.Restart()
	w.at(20)
	w.facts()
	w.now = func() time.Time { return time.Now().Add(2 * time.Minute) } // a patch is asked for until the grace is over
	w.tick()
	w.wantHistory(first, "alice: create a", "bob: update a", "erin: update a", "carol: delete old-0", "Tidemark: create b")
	w.tick()
	if n := len(w.history()); n != 6 {
		t.Errorf("another tick made %d commits", n-6)
	}
}

func TestWhatEtcdForgotIsReconciled(t *testing.T) {
	w := tale(t, "prune: Always", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
		sc.remove(cm, "old-0", "carol")
		sc.late = 9 * time.Second
	})
	w.at(2)
	w.tick()
	w.at(3)
	w.api.Compact()
	w.api.Disconnect()
	w.tick()
	w.at(20)
	w.facts()
	w.tick()
	// The removal needs no content, so its author is known; what was created has to be taken as it is.
	w.wantHistory(first, "carol: delete old-0", "Tidemark: create a")
}

func TestACursorFromTheFutureReplays(t *testing.T) {
	w := tale(t, "prune: Always", func(sc *scenario, cm *recorded.Watch) {
		sc.at = 2 * time.Second
		sc.create(cm, "a", "alice")
	})
	ctx := context.Background()
	gvr := w.session.Watches[0].GroupVersionResource
	uid := w.targetUID("prod")
	if err := w.store.RecordWatchCursor(ctx, uid, gvr, "", "99999"); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("main", "somebody removes a file", map[string]string{"p/shop/configmaps/old-0.yaml": ""})
	w.tick()
	w.at(3)
	w.facts()
	time.Sleep(600 * time.Millisecond)
	w.tick()
	w.wantHistory(first, "bob: somebody removes a file", "Tidemark: create old-0", "alice: create a")
	if rv, _ := w.store.LookupWatchCursor(ctx, uid, gvr, ""); rv == "99999" {
		t.Error("the cursor is still in the future")
	}
}

// The cursor may be older than the backup and the notes newer: then they are of versions that the cluster uses again.
func TestNotesFromTheFutureAreNotReadBack(t *testing.T) {
	w := tale(t, "prune: Always", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	shard := queue.Shard{TargetUID: w.targetUID("prod"), GVR: w.session.Watches[0].GroupVersionResource}
	old := w.session.Watches[0].Initial[0].Object
	if _, err := w.store.NoteSights(context.Background(), []queue.Sight{
		{Shard: shard, RV: "99998", UID: string(old.GetUID()), Namespace: "shop", Name: "old-0", Type: "MODIFIED", SeenAt: time.Now()},
		{Shard: shard, RV: "99999", UID: string(old.GetUID()), Namespace: "shop", Name: "old-0", Type: "DELETED", SeenAt: time.Now()},
	}); err != nil {
		t.Fatal(err)
	}
	w.at(2)
	w.api.Restart()
	w.facts()
	w.tick()
	time.Sleep(600 * time.Millisecond)
	w.tick()
	w.wantHistory(first, "Tidemark: create a")
	if sights, err := w.store.Sights(context.Background(), shard, ""); err != nil || len(sights) != 0 {
		t.Errorf("notes that are left: %+v %v", sights, err)
	}
	if !strings.Contains(w.logs.String(), "the cluster was set back") {
		t.Error("nothing is said")
	}
}

func (w *world) targetUID(name string) string {
	w.t.Helper()
	targets, err := w.function().targets(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range targets {
		if t.spec.Name == name {
			return string(t.spec.UID)
		}
	}
	w.t.Fatalf("no target %s", name)
	return ""
}

func (w *world) forgetCursors() {
	w.t.Helper()
	for _, watch := range w.session.Watches {
		if err := w.store.ForgetShard(context.Background(), queue.Shard{TargetUID: w.targetUID("prod"), GVR: watch.GroupVersionResource}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestASecondReplayMakesNoCommit(t *testing.T) {
	w := tale(t, "prune: Always", func(*scenario, *recorded.Watch) {})
	w.forgetCursors()
	w.tick()
	w.wantHistory(first)
	if got := w.names(); got != ".tidemark old-0.yaml old-1.yaml" {
		t.Errorf("files: %s", got)
	}
}

func TestAReplayThatIsTooLargeIsWrittenAhead(t *testing.T) {
	t.Parallel()
	sc := newScenario(1, 4)
	w := newWorld(t, sc.session, valkeytest.Mini(t))
	w.target(smallTarget("prune: Always"))
	w.repo.Commit("main", "stale", map[string]string{"p/shop/configmaps/gone.yaml": "x: y\n"})
	f := w.function()
	f.replayBytes = 1
	if status, r := post(t, f); status != http.StatusOK {
		t.Fatalf("status %d, %+v", status, r)
	}
	w.wantHistory("bob: stale", "Tidemark: create old-0", "Tidemark: create old-1", "Tidemark: create old-2", "Tidemark: create old-3", "Tidemark: delete gone")
	w.forgetCursors()
	w.tick()
	if n := len(w.history()); n != 6 {
		t.Errorf("a second replay made %d commits", n-6)
	}
}

func TestWhatWasMadeAgainWhileNobodyLookedIsThere(t *testing.T) {
	w := tale(t, "prune: Always", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.remove(cm, "old-0", "carol")
		sc.at = 5 * time.Second
		sc.create(cm, "old-0", "dave") // with the content that git has, as carol's removal is not in git yet
		sc.late = 9 * time.Second
	})
	w.at(2)
	w.tick(func(c *Config) { c.Grace = time.Minute })
	w.at(6)
	w.api.Restart()
	w.at(20)
	w.facts()
	w.tick()
	w.wantHistory(first, "carol: delete old-0", "Tidemark: create old-0")
}

func TestPrune(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   string
	}{
		{"Never", ".tidemark gone.yaml old-0.yaml old-1.yaml"},
		{"OnEvent", ".tidemark gone.yaml old-1.yaml"},
		{"Always", ".tidemark old-1.yaml"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			w := tale(t, "prune: "+c.policy, func(sc *scenario, cm *recorded.Watch) {
				sc.at = time.Second
				sc.remove(cm, "old-0", "alice")
			})
			w.repo.Commit("main", "a file without an object", map[string]string{"p/shop/configmaps/gone.yaml": "x: y\n"})
			w.at(2)
			w.facts()
			w.tick()
			time.Sleep(600 * time.Millisecond)
			w.tick()
			w.forgetCursors()
			w.tick()
			if got := w.names(); got != c.want {
				t.Errorf("files: %s, want %s\n%s", got, c.want, strings.Join(w.history(), "\n"))
			}
		})
	}
}

func TestAReplayThatDoesNotCompleteSweepsNothing(t *testing.T) {
	w := tale(t, "prune: Always", func(*scenario, *recorded.Watch) {})
	w.forgetCursors()
	w.api.Inject(recorded.Fault{Path: "configmaps", Watch: true, Times: 50, AfterEvents: 1})
	if status, r := post(t, w.function()); status != http.StatusOK || r.Commits != 0 {
		t.Errorf("status %d, %+v", status, r)
	}
	w.wantHistory(first)
	w.api.Inject(recorded.Fault{Path: "configmaps", Times: 50, Status: http.StatusForbidden})
	w.tick()
	w.wantHistory(first)
}

func TestTroubleOfTheGitServerLosesNothing(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	w.at(2)
	w.facts()
	w.repo.Hook("pre-receive", "#!/bin/sh\necho 'ask the owners' >&2\nexit 1\n")
	if status, r := post(t, w.function()); status != http.StatusServiceUnavailable || r.Failed != 1 {
		t.Errorf("status %d, %+v", status, r)
	}
	if logs := w.logs.String(); !strings.Contains(logs, "BranchProtected") || !strings.Contains(logs, "ask the owners") {
		t.Errorf("the hook's words are not said: %s", logs)
	}
	w.repo.RemoveHook("pre-receive")
	w.git.Inject(gittest.Pushes, 1, gittest.LoseAnswer)
	w.tick()
	w.wantHistory(first, "alice: create a")
	w.tick()
	w.wantHistory(first, "alice: create a")
}

// A push that got no answer may land after the next one was refused: its intent outlives the refusal, or the versions in
// it would be written once more.
func TestARefusalTakesNoEarlierPushBack(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
		sc.update(cm, "a", "bob", "update")
	})
	w.at(2)
	w.facts()
	var late func()
	w.git.Inject(gittest.Pushes, 1, func(rw http.ResponseWriter, r *http.Request, git http.Handler) {
		r = r.Clone(context.WithoutCancel(r.Context()))
		late = func() { git.ServeHTTP(httptest.NewRecorder(), r) }
		rw.WriteHeader(http.StatusGatewayTimeout)
	})
	w.git.Inject(gittest.Pushes, 50, gittest.Refuse(http.StatusForbidden, ""))
	if status, r := post(t, w.function()); status != http.StatusServiceUnavailable {
		t.Fatalf("status %d, %+v, though the push was refused", status, r)
	}
	w.git.ClearFaults()
	late()
	w.wantHistory(first, "alice: create a", "bob: update a")
	time.Sleep(1100 * time.Millisecond) // commits made anew have another time, and so another id
	w.tick()
	w.wantHistory(first, "alice: create a", "bob: update a")
}

func TestAStoreThatFailsSettlesNothing(t *testing.T) {
	sc := newScenario(1, 2)
	sc.at = time.Second
	sc.create(sc.watch("configmaps"), "a", "alice")
	sc.post()
	server := valkeytest.Real(t)
	outage := valkeytest.NewOutage(t, server.Addr)
	w := newWorld(t, sc.session, valkeytest.Server{Addr: outage.Addr, Prefix: server.Prefix})
	w.target(smallTarget(""))
	w.tick()
	w.at(2)
	w.facts()
	for _, weather := range []valkeytest.Weather{valkeytest.Down, valkeytest.LoseAnswers, valkeytest.Down} {
		outage.Set(weather)
		if status, _ := post(t, w.function()); status != http.StatusServiceUnavailable {
			t.Errorf("weather %v: status %d", weather, status)
		}
		w.wantHistory(first)
	}
	outage.Set(valkeytest.Fair)
	time.Sleep(1100 * time.Millisecond)
	w.tick(func(c *Config) { c.Lease = time.Second })
	if got := len(w.history()); got == 1 { // the lease that the lost answer took may still run
		time.Sleep(30 * time.Second)
		w.tick()
	}
	w.wantHistory(first, "alice: create a")
}

func TestAWakeDuringADrainIsNotLost(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	ctx := context.Background()
	targets, err := w.function().targets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	branch := branches(targets)[0]
	token, err := w.store.AcquireLease(ctx, branch.id, time.Minute)
	if err != nil || token == 0 {
		t.Fatalf("lease: %d %v", token, err)
	}
	w.at(2)
	w.facts()
	if r := w.tick(); r.Busy != 1 {
		t.Fatalf("%+v, want busy", r)
	}
	if r, err := w.store.ReleaseLease(ctx, branch.id, token, time.Minute); err != nil || r != queue.ReleaseDirty {
		t.Fatalf("the drain that runs may leave: %v %v", r, err)
	}
}

// Whoever asks for a commit then is not told that nothing was waiting.
func TestAShardThatHasToReplayIsNotCaughtUp(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	f := w.function()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s := &shard{
		target: &target{}, key: queue.Shard{TargetUID: "t", GVR: gvr}, kube: kube.Shard{Resource: kube.Resource{GroupVersionResource: gvr}},
		cursor: "5", seen: "7", caught: true,
	}
	s.target.shards = []*shard{s}
	over, end := context.WithCancel(t.Context())
	end()
	c := &collector{drain: &drain{Function: f, branch: &branch{targets: []*target{s.target}}, log: f.log}, watching: over}
	if !c.caughtUp() {
		t.Fatal("it does not begin caught up")
	}
	if err := c.expired(t.Context(), s, kube.ErrForgotten); err != nil {
		t.Fatal(err)
	}
	if c.caughtUp() || s.target.allCaughtUp() {
		t.Error("it is caught up, and its replay has only begun")
	}
}
