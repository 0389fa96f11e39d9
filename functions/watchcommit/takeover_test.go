package watchcommit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// A replay that was made and is not in git yet is repeated as of its version by whoever takes over, so that what happened
// since has its authors: as if nothing had been in the way.
func TestWhatHappenedSinceAReplayThatIsNotInGitHasItsAuthors(t *testing.T) {
	refuse := func(w *world) {
		w.t.Helper()
		w.git.Inject(gittest.Pushes, 50, gittest.Refuse(http.StatusForbidden, ""))
		if status, r := post(w.t, w.function()); status != http.StatusServiceUnavailable {
			w.t.Fatalf("status %d, %+v, though nothing can be pushed", status, r)
		}
	}
	for _, c := range []struct {
		name string
		more string
		do   func(w *world)
		want []string
	}{
		{"the first replay", "", func(w *world) {
			refuse(w)
			w.at(4)
			w.facts()
		}, []string{first, "alice: create a", "bob: update old-0", "carol: delete old-1"}},
		{"the first replay, and the API server restarts", "", func(w *world) {
			refuse(w)
			w.at(2) // alice's change is seen and noted, and bob's and carol's are not
			refuse(w)
			w.at(4)
			w.api.Restart()
			w.facts()
		}, []string{first, "alice: create a", "Tidemark: update old-0"}},
		{"two replays wait for a push", "prune: Always", func(w *world) {
			refuse(w)
			w.at(2)
			w.api.Restart()
			refuse(w)
			w.at(4)
			w.facts()
		}, []string{first + " create a", "bob: update old-0", "carol: delete old-1"}},
		{"etcd has forgotten the first replay", "prune: Always", func(w *world) {
			refuse(w)
			w.at(2)
			w.api.Compact()
			refuse(w)
			w.at(4)
			w.facts()
		}, []string{"Tidemark: create a create old-0 create old-1", "bob: update old-0", "carol: delete old-1"}},
		{"a replay after an outage", "", func(w *world) {
			w.tick()
			w.at(2)
			w.api.Restart()
			refuse(w)
			w.at(4)
			w.facts()
		}, []string{first, "Tidemark: create a", "bob: update old-0", "carol: delete old-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc := newScenario(1, 2)
			cm := sc.watch("configmaps")
			sc.at = time.Second
			sc.create(cm, "a", "alice")
			sc.at = 3 * time.Second
			sc.update(cm, "old-0", "bob", "update")
			sc.remove(cm, "old-1", "carol")
			sc.post()
			w := newWorld(t, sc.session, valkeytest.Mini(t))
			w.target(smallTarget(c.more))
			c.do(w)
			w.git.ClearFaults()
			w.tick()
			time.Sleep(600 * time.Millisecond)
			w.tick()
			w.wantHistory(c.want...)
			w.tick()
			if n := len(w.history()); n != len(c.want) {
				t.Errorf("another tick made %d commits", n-len(c.want))
			}
		})
	}
}

// What a replay finds again as git has it is kept all the same when a replay before it, which is not in git yet, has it
// otherwise.
func TestAReplayThatFollowsAnotherOneGoesByIt(t *testing.T) {
	sc := newScenario(1, 1)
	cm := sc.watch("configmaps")
	sc.at = time.Second
	sc.remove(cm, "old-0", "alice")
	sc.at = 3 * time.Second
	sc.create(cm, "old-0", "bob") // the same content
	w := newWorld(t, sc.session, valkeytest.Mini(t))
	w.target(smallTarget("prune: Always"))
	w.tick()
	w.forgetCursors()
	for _, second := range []int{2, 4} { // a replay without the object, then one with it
		w.at(second)
		w.api.Restart()
		w.git.Inject(gittest.Pushes, 50, gittest.Refuse(http.StatusForbidden, ""))
		if status, r := post(t, w.function()); status != http.StatusServiceUnavailable {
			t.Fatalf("status %d, %+v, though nothing can be pushed", status, r)
		}
	}
	w.git.ClearFaults()
	w.tick()
	w.wantHistory("Tidemark: create old-0", "Tidemark: delete old-0", "Tidemark: create old-0")
	if strings.Contains(w.logs.String(), errContentGone.Error()) {
		t.Error("the replays had to begin anew")
	}
}

// What a replay writes ahead is of its own time. When another drain has gone beyond that meanwhile, it is not written.
func TestWritingAheadMovesNoFileBack(t *testing.T) {
	sc := newScenario(1, 2)
	sc.at = time.Second
	sc.update(sc.watch("configmaps"), "old-0", "alice", "update")
	sc.post()
	w := newWorld(t, sc.session, valkeytest.Mini(t))
	w.target(smallTarget(""))
	slow, other := w.function(), w.function()
	slow.leases, other.leases = rude{}, rude{}
	slow.replayBytes = 1
	w.git.Inject(gittest.Pushes, 1, gittest.Before(func() {
		w.at(2)
		w.facts()
		post(t, other)
	}))
	if status, r := post(t, slow); status != http.StatusOK {
		t.Fatalf("status %d, %+v", status, r)
	}
	w.wantHistory("Tidemark: create old-0 create old-1")
	if got := w.repo.Read("main", "p/shop/configmaps/old-0.yaml"); !strings.Contains(got, "step: \""+sc.live["configmaps/shop/old-0"].GetResourceVersion()) {
		t.Errorf("old-0 is not as the cluster has it:\n%s", got)
	}
}

// Several versions of an object are in one push, so that whoever does not know that it has landed would move the file
// back and forth once more.
func TestWhatCursorsCoverIsNotWrittenAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		push func(other func()) gittest.Fault
	}{
		{"the push has landed, and only its intent tells", func(other func()) gittest.Fault {
			return func(rw http.ResponseWriter, r *http.Request, git http.Handler) {
				gittest.LoseAnswer(rw, r, gittest.After(git, other))
			}
		}},
		{"another copy is faster, and further", gittest.Before},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
				sc.at = time.Second
				sc.create(cm, "a", "alice")
				sc.update(cm, "a", "bob", "update")
				sc.post()
				sc.at = 3 * time.Second
				sc.update(cm, "a", "carol", "update")
			})
			w.at(2)
			w.facts()
			f, other := w.function(), w.function()
			f.leases, other.leases = rude{}, rude{}
			w.git.Inject(gittest.Pushes, 1, c.push(func() {
				time.Sleep(1100 * time.Millisecond) // commits of the same second are the same
				w.at(4)
				w.facts()
				if status, r := post(t, other); status != http.StatusOK {
					t.Errorf("the other copy: status %d, %+v", status, r)
				}
			}))
			if status, r := post(t, f); status != http.StatusOK {
				t.Errorf("status %d, %+v", status, r)
			}
			w.wantHistory(first, "alice: create a", "bob: update a", "carol: update a")
		})
	}
}
