package refsweep

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestTicksDoNotOverlap(t *testing.T) {
	w := newWorld(t)
	block, began := make(chan struct{}), make(chan struct{}, 1)
	var calls atomic.Int64
	real := w.deps.Targets
	w.targets()
	w.deps.Targets = targetsFunc(func(ctx context.Context) ([]gitpoll.Target, []gitpoll.Result, error) {
		if calls.Add(1) == 1 {
			began <- struct{}{}
			<-block
		}
		return real.Targets(ctx)
	})
	w.start()
	done := make(chan Summary)
	go func() { done <- w.tick() }()
	<-began
	if code, body := w.post(t.Context(), ""); code != http.StatusOK || !strings.Contains(string(body), `"skipped":"another sweep of this fleet is running"`) {
		t.Errorf("a tick during a sweep: %d %s", code, body)
	}
	close(block)
	if s := <-done; s.Sweep != 1 {
		t.Errorf("the first tick: %+v", s)
	}
	if s := w.tick(); s.Sweep != 2 {
		t.Errorf("the next tick: %+v", s)
	}
}

type targetsFunc func(context.Context) ([]gitpoll.Target, []gitpoll.Result, error)

func (f targetsFunc) Targets(ctx context.Context) ([]gitpoll.Target, []gitpoll.Result, error) {
	return f(ctx)
}

func TestACancelledTickWritesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain), document("silent", "http://"+gittest.Silent(t)+"/r.git", onMain))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	w.post(ctx, "")
	if got := w.observed(); len(got) != 0 {
		t.Errorf("observations of a cancelled tick: %+v", got)
	}
	w.targets(document("a", r.URL, onMain))
	if s := w.tick(); s.Listed != 1 {
		t.Errorf("the next tick, whose lease the cancelled one gave back: %+v", s)
	}
}

func TestASweepThatRunsOutOfTimePublishesWhatItHas(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	head := commit(r, "1")
	w.targets(document("a", r.URL, onMain), document("silent", "http://"+gittest.Silent(t)+"/r.git", onMain))
	w.cfg.ListingTimeout = time.Minute
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the platform's deadline
	defer cancel()
	if code, body := w.post(ctx, ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	o := w.observed()
	if o["a"].SHA != head || o["silent"].Kind != gitpoll.KindNotReached || o["silent"].Error != "not reached" {
		t.Errorf("observations: %+v", o)
	}
}

func TestASourceThatIsRepointedDuringTheSweep(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	r.Commit("next", "2", map[string]string{"f": "2"})
	var calls atomic.Int64
	real := w.deps.Targets
	w.deps.Targets = targetsFunc(func(ctx context.Context) ([]gitpoll.Target, []gitpoll.Result, error) {
		if calls.Add(1) == 2 { // the sweep is over, and its results are about to be published
			w.targets(document("same", r.URL, onMain), document("moved", r.URL, "  ref: {branch: next}\n"))
		}
		return real.Targets(ctx)
	})
	w.targets(document("same", r.URL, onMain), document("moved", r.URL, onMain), document("removed", r.URL, onMain))
	w.start()
	if s := w.tick(); s.Repointed != 2 || names(s.Appeared) != "same" {
		t.Errorf("summary: %+v", s)
	}
	if o := w.observed(); len(o) != 1 || o["same"].SHA == "" {
		t.Errorf("observations: %+v", o)
	}
}
