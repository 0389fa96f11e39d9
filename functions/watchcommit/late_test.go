package watchcommit

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

func TestAnAuthorWhoIsLateIsCounted(t *testing.T) {
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
	})
	w.at(2)
	f := w.function()
	tick := func() {
		t.Helper()
		f.unresolved.asked = time.Time{}
		if status, result := post(t, f); status != http.StatusOK {
			t.Fatalf("tick: %d %+v\n%s", status, result, w.logs)
		}
	}
	tick()
	time.Sleep(600 * time.Millisecond) // the grace of these tests
	tick()
	if got := f.unresolved.late("prod", f.now()); got != 0 || len(f.unresolved.open) != 1 {
		t.Fatalf("before the fact: late by %v, %d open, want one open", got, len(f.unresolved.open))
	}
	w.facts()
	tick()
	if got := f.unresolved.late("prod", f.now()); got <= 0 || got > time.Minute || len(f.unresolved.open) != 0 {
		t.Errorf("after the fact: late by %v, %d open, want late and none open", got, len(f.unresolved.open))
	}
	for _, want := range []string{"batch-max-wait", "ATTRIBUTION_GRACE"} {
		if !strings.Contains(w.logs.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, w.logs)
		}
	}
	if got := f.unresolved.late("prod", f.now().Add(2*time.Hour)); got != 0 {
		t.Errorf("two hours later: late by %v, want that to be forgotten", got)
	}
	f.unresolved.inTime("prod")
	if got := f.unresolved.late("prod", f.now()); got != 0 {
		t.Errorf("once facts are in time: late by %v, want that to be forgotten", got)
	}
}

func TestWhatNoFactCanComeForAnyMoreIsForgotten(t *testing.T) {
	var u unresolved
	now := time.Now()
	for range 2 {
		u.add(slices.Repeat([]openChange{{over: now}}, maxUnresolved-5))
	}
	if len(u.open) != maxUnresolved {
		t.Errorf("%d are remembered, want at most %d", len(u.open), maxUnresolved)
	}
	if due := u.due(now.Add(9*time.Minute), 10*time.Minute); len(due) != maxUnresolved {
		t.Errorf("%d are due after 9m, want all", len(due))
	} else {
		u.back(due)
	}
	if due := u.due(now.Add(9*time.Minute+time.Second), 10*time.Minute); due != nil {
		t.Errorf("%d are due a second later, want none", len(due))
	}
	if due := u.due(now.Add(11*time.Minute), 10*time.Minute); len(due) != 0 || len(u.open) != 0 {
		t.Errorf("%d are due after 11m and %d remembered, want none", len(due), len(u.open))
	}
}

// Branches are drained at the same time, and each looks up again what any of them committed without an author.
func TestOthersLookUpAgainOnlyWhatADrainIsDoneWith(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	f := w.function()
	of := &target{}
	observer := attribution.NewObserver("pods", attribution.NewFamily())
	pod := func(uid string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"name": "web", "uid": uid, "resourceVersion": "7", "ownerReferences": []any{map[string]any{"uid": "owner"}},
		}}
	}
	s := &shard{target: of}
	s.pending = []*change{{shard: s, uid: "u", seenAt: f.now(), sighting: observer.See(attribution.Deleted, pod("u"))}}
	of.shards = []*shard{s}
	d := &drain{Function: f, branch: &branch{targets: []*target{of}}}
	if err := d.lookUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := make(chan struct{})
	go func() {
		defer close(other)
		f.countLate(t.Context())
	}()
	for i := range 1000 {
		observer.See(attribution.Added, pod(strconv.Itoa(i)))
	}
	<-other
	if len(f.unresolved.open) != 0 {
		t.Errorf("others know %d changes while the drain goes on, want none", len(f.unresolved.open))
	}
	d.reportAll(t.Context())
	if len(f.unresolved.open) != 1 {
		t.Errorf("others know %d changes after the round, want 1", len(f.unresolved.open))
	}
}
