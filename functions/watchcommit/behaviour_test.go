package watchcommit

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// small is a target of ConfigMaps; MORE is for what a test adds to the spec.
const small = `
metadata: {name: prod}
spec:
  repository: {url: REPO, path: p}
  attributionGrace: 500ms
  resources: [{resource: configmaps}]
  MORE
`

func smallTarget(more string) string { return strings.ReplaceAll(small, "MORE", more) }

// tale is a world of one story that a test tells: plan says what happens when, in seconds.
func tale(t *testing.T, more string, plan func(sc *scenario, cm *recorded.Watch)) *world {
	t.Helper()
	t.Parallel()
	sc := newScenario(1, 2)
	plan(sc, sc.watch("configmaps"))
	sc.post()
	w := newWorld(t, sc.session, valkeytest.Mini(t))
	w.target(smallTarget(more))
	w.tick() // the first replay
	return w
}

// at moves to a second of the tale.
func (w *world) at(second int) { w.clock.Set(time.Duration(second) * time.Second) }

// history is the branch, oldest first: who, and the changes.
func (w *world) history() []string {
	w.t.Helper()
	log, err := verdict.Log(context.Background(), w.repo.Dir, "main")
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range log {
		who, _, _ := strings.Cut(e.Author, " <")
		line := who + ":"
		for _, r := range e.Parsed.Changes {
			line += fmt.Sprintf(" %s %s", r.Verb, r.Name)
		}
		if !e.Ours {
			line += " " + strings.TrimSpace(e.Message)
		}
		out = append(out, line)
	}
	return out
}

func (w *world) wantHistory(want ...string) {
	w.t.Helper()
	if got := w.history(); !cmp.Equal(got, want) {
		w.t.Errorf("history (-want +got)\n%s\n%s", cmp.Diff(want, got), w.logs)
	}
}

// names are the files of the branch below the target's folder, without their folders.
func (w *world) names() string {
	var out []string
	for _, name := range strings.Fields(w.repo.Git("ls-tree", "-r", "--name-only", "main")) {
		out = append(out, path.Base(name))
	}
	return strings.Join(out, " ")
}

const first = "Tidemark: create old-0 create old-1"

func TestAnotherOwnersFolderIsLeftAlone(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	w.target(strings.Replace(smallTarget(""), "name: prod", "name: rival", 1), smallTarget(""))
	w.tick()
	w.wantHistory(first)
	if !strings.Contains(w.logs.String(), "PathOwned") {
		t.Errorf("nothing is said: %s", w.logs)
	}
}

func TestIgnoredActorsHaveNoCommitsOfTheirOwn(t *testing.T) {
	w := tale(t, "ignoreActors: [flux]", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "flux")
		sc.create(cm, "b", "alice")
		sc.remove(cm, "old-0", "flux")
	})
	w.at(2)
	w.facts()
	w.tick()
	time.Sleep(600 * time.Millisecond)
	w.tick()
	w.wantHistory(first, "Tidemark: create a", "alice: create b", "Tidemark: delete old-0")
}

func TestAForeignCommitStaysAndAForeignChangeGivesWayToANewerOne(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.status(cm, "old-0")
		sc.create(cm, "a", "alice")
		sc.at = 3 * time.Second
		sc.update(cm, "old-0", "bob", "update")
	})
	w.repo.Commit("main", "foreign", map[string]string{"README": "hello\n", "p/shop/configmaps/old-0.yaml": "mine: true\n"})
	w.at(2)
	w.facts()
	w.tick()
	if got := w.repo.Read("main", "p/shop/configmaps/old-0.yaml"); got != "mine: true\n" {
		t.Errorf("a status update replaced a foreign change: %s", got)
	}
	w.at(4)
	w.facts()
	w.tick()
	w.wantHistory(first, "bob: foreign", "alice: create a", "bob: update old-0")
	if got := w.repo.Read("main", "README"); got != "hello\n" {
		t.Errorf("README: %q", got)
	}
	if !strings.Contains(w.logs.String(), "had been changed in git by somebody else") {
		t.Error("the drift is not said")
	}
}

func TestHoldKeepsChangesBack(t *testing.T) {
	w := tale(t, "commit: {hold: 3s}", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	w.at(2)
	w.facts()
	if r := w.tick(); r.Waiting != 1 {
		t.Errorf("%+v, want one that waits", r)
	}
	w.wantHistory(first)
	time.Sleep(3 * time.Second)
	w.tick()
	w.wantHistory(first, "alice: create a")
}

func TestWhoeverCannotBeNamedIsVisiblyNobody(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	w.at(2)
	w.tick()
	w.wantHistory(first)
	time.Sleep(600 * time.Millisecond)
	w.tick()
	log, err := verdict.Log(context.Background(), w.repo.Dir, "main")
	if err != nil || len(log) != 2 {
		t.Fatalf("%v %v", log, err)
	}
	if r := log[1].Parsed.Changes[0]; r.By != "absent" || log[1].Parsed.Actor != "" {
		t.Errorf("%+v", log[1])
	}
}

func TestTwoTargetsOfABranchTakeOnePush(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
		sc.create(cm, "b", "alice")
	})
	second := strings.NewReplacer("name: prod", "name: second", "path: p", "path: q").Replace(smallTarget("commit: {grouping: PerChange}"))
	w.target(smallTarget(""), second)
	w.tick()
	w.pushes()
	w.at(2)
	w.facts()
	w.tick()
	if n := w.pushes(); n != 1 {
		t.Errorf("%d pushes, want 1", n)
	}
	w.wantHistory(first, first, "alice: create a create b", "alice: create a", "alice: create b")
}

// pushes counts those since the last time.
func (w *world) pushes() int {
	n := 0
	for _, r := range w.git.Records() {
		if strings.Contains(r.Path, "/git-receive-pack") {
			n++
		}
	}
	return n
}

func TestSecretsAreNotEvenWatched(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	w.target(strings.Replace(smallTarget(""), "{resource: configmaps}", "{resource: configmaps}, {resource: secrets}", 1))
	w.tick()
	for request := range w.api.Requests() {
		if strings.Contains(request, "secrets") {
			t.Errorf("request %q", request)
		}
	}
}

func TestListeningDeliversWhatHappensMeanwhile(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = 2 * time.Second
		sc.create(cm, "a", "alice")
		sc.post()
		sc.at = 3 * time.Second
		sc.update(cm, "a", "alice", "update")
	})
	go func() {
		for second := range 4 {
			time.Sleep(700 * time.Millisecond)
			w.at(second)
			w.facts()
		}
	}()
	w.tick(func(c *Config) { c.Window = 5 * time.Second })
	w.wantHistory(first, "alice: create a", "alice: update a")
}

// What a drain costs, when nothing happens and when something does.
func TestRoundTrips(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		for i := range 20 {
			sc.create(cm, fmt.Sprintf("a-%d", i), "alice")
		}
	})
	counter := &valkeytest.Counter{}
	w.store.AddHook(counter)
	cost := func() (trips, requests, git int) {
		before := w.api.Requests()
		counter.Reset()
		w.git.Records()
		w.tick()
		for what, n := range w.api.Requests() {
			requests += n - before[what]
		}
		return counter.Trips(), requests, len(w.git.Records())
	}
	cost()
	if trips, requests, git := cost(); trips > 9 || requests > 5 || git > 1 {
		t.Errorf("a quiet drain: %d round trips, %d API requests, %d git requests", trips, requests, git)
	}
	w.at(2)
	w.facts()
	if trips, requests, git := cost(); trips > 25 || requests > 5 || git > 3 {
		t.Errorf("a drain of 20 changes: %d round trips %v, %d API requests, %d git requests", trips, counter.Commands(), requests, git)
	} else {
		t.Logf("a drain of 20 changes: %d round trips, %d API requests, %d git requests", trips, requests, git)
	}
	if n := len(w.history()); n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	for _, command := range counter.Commands() {
		if command == "scan" || command == "keys" {
			t.Errorf("command %s", command)
		}
	}
}

func TestAnotherFolderIsWrittenAnew(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	w.target(strings.Replace(smallTarget(""), "path: p", "path: q", 1))
	w.tick()
	w.at(2)
	w.facts()
	w.tick()
	w.wantHistory(first, first, "alice: create a")
	for _, file := range []string{"p/shop/configmaps/old-0.yaml", "q/shop/configmaps/old-0.yaml", "q/shop/configmaps/a.yaml"} {
		if _, there := w.repo.Files("main")[file]; !there {
			t.Errorf("%s is not there: %v", file, w.repo.Files("main"))
		}
	}
}
