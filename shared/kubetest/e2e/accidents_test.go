//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// TestAPIServerRestart: what a watch had delivered when the API server went down is in history under its author's
// name; what happened while nobody watched is in the reconcile commit.
func TestAPIServerRestart(t *testing.T) {
	w := newChaos(t, kubetest.Options{AuditMaxWait: 5 * time.Minute}, "WATCH_WINDOW=6s", "ATTRIBUTION_GRACE=45s")
	people := newCrowd(w)
	seen := w.whileTicking(func() { people.work(40, 50*time.Millisecond) })
	for ticks := 0; ticks < 5 && waiting(t, seen) < len(people.truth.done); ticks++ { // on a busy machine the tick was over first
		seen = w.watch.tick()
	}
	if n := countOf(w.records()); n != 0 {
		t.Fatalf("%d changes are in git before their facts can have come: %s", n, seen)
	}
	unseen := newCrowd(w)
	unseen.next = 1000
	unseen.work(20, 10*time.Millisecond)
	w.cluster.RestartAPIServer() // posts the facts that it has collected, and forgets what happened
	w.eventually("the delivered changes are in git", func() bool { return countOf(w.records()) >= len(people.truth.done) && w.settled() })

	w.wantTree("clusters/prod", listings()...)
	got := w.records()
	for name, want := range byObject(people.truth) {
		have := withoutRemovedVersions(got[name])
		if len(have) < len(want) || lines(have[:len(want)]) != lines(want) {
			t.Errorf("%s: history has\n%s\nwant it to begin with\n%s", name, lines(have), lines(want))
		}
		for _, d := range have[min(len(want), len(have)):] {
			if d.who != "(replay)" {
				t.Errorf("%s: %s at %s is by %s, want the reconcile commit", name, d.verb, d.rv, d.who)
			}
		}
	}
	reconciled := 0
	for _, c := range w.history() {
		if strings.HasPrefix(c.subject, "reconcile") {
			reconciled++
			if c.author != "Tidemark" {
				t.Errorf("a reconcile commit is by %s", c.author)
			}
		}
	}
	if reconciled == 0 {
		t.Error("no reconcile commit")
	}
}

// TestCompaction: when etcd has forgotten too, one drain makes the tree right, and what nobody can know any more is not
// pretended to be known.
func TestCompaction(t *testing.T) {
	w := newChaos(t, kubetest.Options{AuditMaxWait: 5 * time.Minute}, "WATCH_WINDOW=6s", "ATTRIBUTION_GRACE=45s")
	people := newCrowd(w)
	w.whileTicking(func() { people.work(30, 50*time.Millisecond) })
	w.cluster.Compact()
	// Without a window it ends when it has caught up, and not when the window does.
	start(t, "watchcommit", append(w.settings, "WATCH_WINDOW=0")...).tick()
	w.wantTree("clusters/prod", listings()...)
	w.wantNoWrongName(people.truth)
	w.wantReconcile()
}

// TestRestoredBackup: the cursors are ahead of a cluster that was set back. One drain makes the tree right and says so.
func TestRestoredBackup(t *testing.T) {
	w := newChaos(t, kubetest.Options{}, "WATCH_WINDOW=0", "ATTRIBUTION_GRACE=20s")
	before := newCrowd(w)
	before.work(30, 10*time.Millisecond)
	w.eventually("the first changes are in git", func() bool { return countOf(w.records()) >= len(before.truth.done) && w.settled() })
	backup := w.cluster.Backup()
	w.watch.tick() // the API server has forgotten what was before the backup
	lost := newCrowd(w)
	lost.next = 1000
	lost.work(30, 10*time.Millisecond)
	w.eventually("the second changes are in git", func() bool {
		return countOf(w.records()) >= len(before.truth.done)+len(lost.truth.done) && w.settled()
	})
	w.cluster.Restore(backup)
	w.watch.tick()
	w.wantTree("clusters/prod", listings()...)
	w.wantReconcile()
}

// whileTicking does something while one tick listens, and returns the tick's answer.
func (w *world) whileTicking(do func()) string {
	w.t.Helper()
	answer := make(chan string, 1)
	go func() {
		code, said, err := w.watch.post(context.Background(), "/", "")
		if err != nil || code/100 != 2 {
			w.t.Errorf("tick: %d %s %v", code, said, err)
		}
		answer <- said
	}()
	time.Sleep(2 * time.Second) // until it listens; a change before that is delivered all the same
	do()
	return <-answer
}

// waiting is how many changes a tick's answer says that were seen and are not in git.
func waiting(t *testing.T, answer string) int {
	t.Helper()
	var result struct{ Waiting int }
	if err := json.Unmarshal([]byte(answer), &result); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	return result.Waiting
}

// wantReconcile wants the newest commit to say that it sets git right after a gap.
func (w *world) wantReconcile() {
	w.t.Helper()
	all := w.history()
	if len(all) == 0 || !strings.HasPrefix(all[len(all)-1].subject, "reconcile") {
		w.t.Errorf("the newest of %d commits does not say that it reconciles", len(all))
	}
}

// wantNoWrongName wants every name in history to be the right one, whether or not all are there.
func (w *world) wantNoWrongName(tr *truth) {
	w.t.Helper()
	right := map[string]string{}
	for _, d := range tr.done {
		right[d.object+" "+d.rv] = d.who
	}
	for name, have := range w.records() {
		for _, d := range withoutRemovedVersions(have) {
			if who, known := right[name+" "+d.rv]; known && d.rv != "" && d.who != who && !strings.HasPrefix(d.who, "(") {
				w.t.Errorf("%s at %s is by %s, and %s did it", name, d.rv, d.who, who)
			}
		}
	}
}

func byObject(tr *truth) map[string][]did {
	out := map[string][]did{}
	for _, d := range tr.done {
		out[d.object] = append(out[d.object], d)
	}
	return out
}
