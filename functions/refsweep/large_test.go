package refsweep

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// Ten thousand sources cost three round trips to Redis and a bounded amount of memory.
func TestTenThousandSources(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxMoves, w.cfg.PerHost = 500, 16
	const sources, hosts, shaA = 10_000, 20, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	list := fmt.Sprintf("003d%s refs/heads/main\n0000", shaA)
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-result\r\nContent-Length: %d\r\n\r\n%s", len(list), list)
	var targets []gitpoll.Target
	for h := range hosts {
		url := gittest.Replay(t, []byte(answer))
		for i := range sources / hosts {
			tg := gitpoll.Target{URL: fmt.Sprintf("%s/team-%02d/repository-%04d.git", url, h, i), TrackingRef: "refs/heads/main"}
			tg.Source.Namespace, tg.Source.Name = "flux", fmt.Sprintf("team-%02d-repository-%04d", h, i)
			targets = append(targets, tg)
		}
	}
	w.deps.Targets = targetsFunc(func(context.Context) ([]gitpoll.Target, []gitpoll.Result, error) { return targets, nil, nil })
	w.start()
	for round, trips := range []int{3, 3} {
		w.counter.Reset()
		stop := peakHeap()
		s := w.tick()
		peak := stop()
		if s.Listed != sources || len(s.Appeared) != 500 || s.MoreMoves != sources-500*(round+1) {
			t.Errorf("sweep %d: %d listed, %d appeared, %d more", round, s.Listed, len(s.Appeared), s.MoreMoves)
		}
		if n := w.counter.Trips(); n != trips {
			t.Errorf("sweep %d: %d round trips (%s), want %d; the budget is %d", round, n, strings.Join(w.counter.Commands(), " "), trips, 5+sources/1000)
		}
		if limit := uint64(96 << 20); peak > limit {
			t.Errorf("sweep %d: %d MiB of heap at its peak, want at most %d", round, peak>>20, limit>>20)
		}
		t.Logf("sweep %d: %d ms, %d MiB of heap at its peak", round, s.TookMS, peak>>20)
	}
	if n := len(w.observed()); n != sources {
		t.Errorf("%d observations", n)
	}
}

// peakHeap watches the heap, over what is live now, until the returned function is called.
func peakHeap() func() uint64 {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, done, peak := heap(), make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			if now := heap(); now > before {
				most = max(most, now-before)
			}
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-peak }
}
