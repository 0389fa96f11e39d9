package watchcommit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/queue"
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
	for range maxUnresolved + 5 {
		u.add("t", queue.AuthorQuery{}, now)
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
