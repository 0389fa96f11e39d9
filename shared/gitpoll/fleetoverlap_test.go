package gitpoll_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestOneSweepAtATime(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		f, _ := newFleet(t, server)
		one, err := f.Begin(t.Context(), 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Begin(t.Context(), time.Minute); !errors.Is(err, gitpoll.ErrSweepRunning) {
			t.Fatalf("a second sweep: %v, want ErrSweepRunning", err)
		}
		if server.Forward != nil {
			server.Forward(4 * time.Second)
		} else {
			time.Sleep(3100 * time.Millisecond)
		}
		two := begin(t, f) // the first has taken longer than it said
		if two.Number != one.Number+1 {
			t.Errorf("sweep %d after %d", two.Number, one.Number)
		}
	})
}

// Every interleaving of two sweeps' steps leaves the state of one of them, whole, and a sweep that began before the
// other never overwrites it.
func TestOverlappingSweepsNeverMix(t *testing.T) {
	server := valkeytest.Real(t)
	var orders []string
	var build func(done string, a, b int)
	build = func(done string, a, b int) {
		if a == 0 && b == 0 {
			orders = append(orders, done)
			return
		}
		if a > 0 {
			build(done+"A", a-1, b)
		}
		if b > 0 {
			build(done+"B", a, b-1)
		}
	}
	build("", 3, 3)
	for i, order := range orders {
		t.Run(order, func(t *testing.T) {
			server := server
			server.Prefix = fmt.Sprintf("%s-%d", server.Prefix, i)
			f, _ := newFleet(t, server)
			var targets []gitpoll.Target
			for i := range 20 {
				targets = append(targets, target(fmt.Sprint(i), fmt.Sprint("https://h/", i)))
			}
			sweeps := map[rune]*gitpoll.FleetSweep{}
			step, newest, published := map[rune]int{}, 'A', ""
			for _, who := range order {
				switch step[who]++; step[who] {
				case 1:
					s, err := f.Begin(t.Context(), time.Millisecond)
					for errors.Is(err, gitpoll.ErrSweepRunning) { // wait until the other's lease is over
						time.Sleep(time.Millisecond)
						s, err = f.Begin(t.Context(), time.Millisecond)
					}
					if err != nil {
						t.Fatal(err)
					}
					sweeps[who], newest = s, who
				case 2:
					var results []gitpoll.Result
					for _, tg := range targets {
						results = append(results, found(tg, "sha of "+string(who), 1))
					}
					_, err := sweeps[who].Publish(t.Context(), results, targets, nil, 100)
					if stale := who != newest; errors.Is(err, gitpoll.ErrSuperseded) != stale || err != nil && !stale {
						t.Fatalf("%c publishes: %v; is it the newest: %v", who, err, !stale)
					}
					if err == nil {
						published = string(who)
					}
				case 3:
					if err := sweeps[who].End(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
				}
				s := snapshot(t, f)
				if (published == "") != (s.Sweep == 0) {
					t.Fatalf("sweep %d after %q was published", s.Sweep, published)
				}
				for source, stored := range s.Sources {
					if stored.SHA != "sha of "+published || s.Sweep != sweeps[rune(published[0])].Number {
						t.Fatalf("after %s: %s is at %q in sweep %d", order, source, stored.SHA, s.Sweep)
					}
				}
			}
		})
	}
}

// Readers meet one sweep or the next while sweeps publish.
func TestSnapshotsNeverMixSweeps(t *testing.T) {
	f, _ := newFleet(t, valkeytest.Real(t))
	var targets []gitpoll.Target
	for i := range 600 { // more than one chunk of the script
		targets = append(targets, target(fmt.Sprint(i), fmt.Sprint("https://h/", i)))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s, err := f.Snapshot(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if s.Sweep > 0 && len(s.Sources) != len(targets) {
					t.Errorf("sweep %d has %d sources", s.Sweep, len(s.Sources))
					return
				}
				for source, stored := range s.Sources {
					if stored.SHA != fmt.Sprint("sha", s.Sweep) {
						t.Errorf("%s is at %q in sweep %d", source, stored.SHA, s.Sweep)
						return
					}
				}
			}
		})
	}
	for range 15 {
		s := begin(t, f)
		var results []gitpoll.Result
		for _, tg := range targets {
			results = append(results, found(tg, fmt.Sprint("sha", s.Number), 1))
		}
		if p := publish(t, s, results...); p.AllMoves != len(targets) {
			t.Errorf("%d moves, want %d", p.AllMoves, len(targets))
		}
		if err := s.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}
