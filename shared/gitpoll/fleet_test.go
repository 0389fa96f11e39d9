package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func newFleet(t testing.TB, server valkeytest.Server) (*gitpoll.Fleet, *queue.RedisStore) {
	t.Helper()
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	fleet, err := gitpoll.NewFleet(store.Client(), store.KeyPrefix(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	return fleet, store
}

func begin(t testing.TB, f *gitpoll.Fleet) *gitpoll.FleetSweep {
	t.Helper()
	s, err := f.Begin(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func publish(t testing.TB, s *gitpoll.FleetSweep, results ...gitpoll.Result) *gitpoll.Publication {
	t.Helper()
	p, err := s.Publish(t.Context(), results, targetsOf(results), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func targetsOf(results []gitpoll.Result) []gitpoll.Target {
	var targets []gitpoll.Target
	for _, r := range results {
		targets = append(targets, r.Target)
	}
	return targets
}

func snapshot(t testing.TB, f *gitpoll.Fleet) *gitpoll.Snapshot {
	t.Helper()
	s, err := f.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at is a time in whole milliseconds, as they are stored.
func at(second int) time.Time { return time.Unix(1_800_000_000+int64(second), 0).UTC() }

func found(tg gitpoll.Target, sha string, second int) gitpoll.Result {
	return gitpoll.Result{Target: tg, SHA: sha, At: at(second)}
}

func failed(tg gitpoll.Target, err error, second int) gitpoll.Result {
	return gitpoll.Result{Target: tg, Err: err, At: at(second)}
}

func TestFleetCarriesWhatIsKnown(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		f, _ := newFleet(t, server)
		if s := snapshot(t, f); s.Sweep != 0 || len(s.Sources) != 0 {
			t.Fatalf("before the first sweep: %+v", s)
		}
		a, b := target("a", "https://alice:s3cr3t-pw@h/a?private_token=s3cr3t-pw"), target("b", "https://h/b")
		one := begin(t, f)
		publish(t, one, found(a, shaA, 1), failed(b, io.ErrUnexpectedEOF, 1))
		if err := one.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		two := begin(t, f)
		publish(t, two, found(a, shaA, 2), found(b, shaB, 2))
		if err := two.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		three := begin(t, f)
		publish(t, three, failed(a, fmt.Errorf("two\nlines: %w", gitpoll.ErrNotReached), 3), found(b, shaB, 3))
		want := map[string]gitpoll.Stored{
			"flux/a": {URL: "https://h/a", TrackingRef: main, SHA: shaA, FirstObserved: at(1), ObservedAt: at(3), Kind: gitpoll.KindNotReached, Error: "two lines: not reached"},
			"flux/b": {URL: "https://h/b", TrackingRef: main, SHA: shaB, FirstObserved: at(2), ObservedAt: at(3)},
		}
		got := map[string]gitpoll.Stored{}
		s := snapshot(t, f)
		for source, stored := range s.Sources {
			got[source.String()] = stored
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sources (-want +got):\n%s", diff)
		}
		if s.Sweep != three.Number || s.At.IsZero() {
			t.Errorf("sweep %d at %v, want %d", s.Sweep, s.At, three.Number)
		}
	})
}

func TestFleetDropsWhatIsNoTarget(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		f, _ := newFleet(t, server)
		a, b, c := target("a", "https://h/a"), target("b", "https://h/b"), target("c", "https://h/c")
		one := begin(t, f)
		publish(t, one, found(a, shaA, 1), found(b, shaA, 1), found(c, shaA, 1))
		if err := one.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		two := begin(t, f)
		repointed := b
		repointed.TrackingRef = "refs/tags/v1"
		// While the sweep ran, b was re-pointed and c removed.
		p, err := two.Publish(t.Context(), []gitpoll.Result{found(a, shaB, 2), found(b, shaB, 2), found(c, shaB, 2)}, []gitpoll.Target{a, repointed}, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		s := snapshot(t, f)
		if len(s.Sources) != 1 || s.Sources[name("a")].SHA != shaB || p.Repointed != 2 || p.Dropped != 2 {
			t.Errorf("sources %v, publication %+v; want a alone", s.Sources, p)
		}
		if err := two.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		// With its new tracking ref it starts from nothing, also if the first look fails.
		three := begin(t, f)
		publish(t, three, failed(repointed, io.EOF, 3))
		if got := snapshot(t, f).Sources[name("b")]; got.SHA != "" || got.TrackingRef != "refs/tags/v1" || got.Error == "" {
			t.Errorf("a re-pointed source: %+v", got)
		}
	})
}

func TestFleetNotifiesUntilItIsNoted(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		f, _ := newFleet(t, server)
		a, b := target("a", "https://h/a"), target("b", "https://h/b")
		one := begin(t, f)
		p := publish(t, one, found(a, shaA, 1), found(b, shaA, 1))
		if p.AllMoves != 2 || len(p.Moves) != 2 || p.Moves[0].Previous != "" {
			t.Fatalf("first sight: %+v", p)
		}
		if err := one.End(t.Context(), p.Moves); err != nil {
			t.Fatal(err)
		}
		two := begin(t, f)
		p = publish(t, two, found(a, shaB, 2), found(b, shaA, 2))
		want := []gitpoll.Move{{Source: name("a"), URL: "https://h/a", TrackingRef: main, Previous: shaA, SHA: shaB, FirstObserved: at(2)}}
		if diff := cmp.Diff(want, p.Moves); diff != "" {
			t.Errorf("moves (-want +got):\n%s", diff)
		}
		// The process dies before it sends. The next sweep names the move again, even if its listing fails.
		if err := two.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		three := begin(t, f)
		p = publish(t, three, failed(a, io.EOF, 3), found(b, shaA, 3))
		if diff := cmp.Diff(want, p.Moves); diff != "" {
			t.Errorf("moves after a crash (-want +got):\n%s", diff)
		}
		if err := three.End(t.Context(), p.Moves); err != nil {
			t.Fatal(err)
		}
		four := begin(t, f)
		if p = publish(t, four, found(a, shaB, 4), found(b, shaA, 4)); p.AllMoves != 0 {
			t.Errorf("moves after they were noted: %+v", p.Moves)
		}
		// A sweep with nothing to notify gives its lease back itself.
		five := begin(t, f)
		if p, err := five.Publish(t.Context(), []gitpoll.Result{found(a, "1", 5), found(b, "2", 5)}, []gitpoll.Target{a, b}, nil, 1); err != nil || p.AllMoves != 2 || len(p.Moves) != 1 {
			t.Errorf("at most one move at a time: %+v, %v", p, err)
		} else if err := five.End(t.Context(), p.Moves); err != nil {
			t.Fatal(err)
		}
		six := begin(t, f)
		if p = publish(t, six, found(a, "1", 6), found(b, "2", 6)); p.AllMoves != 1 {
			t.Errorf("the other move comes with the next sweep: %+v", p)
		}
	})
}

func TestNotedLateIsNotNotedForANewerCommit(t *testing.T) {
	f, _ := newFleet(t, valkeytest.Mini(t))
	a := target("a", "https://h/a")
	one := begin(t, f)
	p := publish(t, one, found(a, shaA, 1))
	if err := one.End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	two := begin(t, f)
	publish(t, two, found(a, shaB, 2))
	if err := one.End(t.Context(), p.Moves); err != nil { // the first sweep's send took that long
		t.Fatal(err)
	}
	if got := snapshot(t, f).Sources[name("a")]; got.Notified != "" {
		t.Errorf("notified %q, want nothing: %s was not", got.Notified, shaB)
	}
	if _, err := f.Begin(t.Context(), time.Minute); !errors.Is(err, gitpoll.ErrSweepRunning) {
		t.Errorf("the second sweep's lease was given back by the first: %v", err)
	}
}

func TestNothingIsWrittenAfterCancellation(t *testing.T) {
	f, store := newFleet(t, valkeytest.Mini(t))
	a := target("a", "https://h/a")
	s := begin(t, f)
	counter := &valkeytest.Counter{}
	store.AddHook(counter)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Publish(ctx, []gitpoll.Result{found(a, shaA, 1)}, []gitpoll.Target{a}, nil, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("publish after cancellation: %v", err)
	}
	if counter.Trips() != 0 {
		t.Errorf("%q were sent", counter.Commands())
	}
}

func TestFleetRemembersHostsAndProtocols(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		f, _ := newFleet(t, server)
		a := target("a", "https://h/a")
		one := begin(t, f)
		learned := map[string]gitwire.Knowledge{
			"d1": {Protocol: gitwire.ProtocolOld},
			"d2": {Protocol: gitwire.ProtocolV2, ObjectFormat: "sha256"},
		}
		one.Throttles = gitpoll.NewThrottles(map[string]gitpoll.Throttle{"slow:8443": {Until: time.Now().Add(time.Minute).Truncate(time.Millisecond), Strikes: 3}, "old": {Until: time.Now().Add(-2 * time.Hour)}})
		if _, err := one.Publish(t.Context(), []gitpoll.Result{found(a, shaA, 1)}, []gitpoll.Target{a}, learned, 1); err != nil {
			t.Fatal(err)
		}
		if err := one.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		two := begin(t, f)
		if diff := cmp.Diff(learned, two.Known); diff != "" {
			t.Errorf("known (-want +got):\n%s", diff)
		}
		hosts := two.Throttles.Hosts()
		if h := hosts["slow:8443"]; len(hosts) != 1 || h.Strikes != 3 || !h.Until.Equal(one.Throttles.Hosts()["slow:8443"].Until) {
			t.Errorf("throttles %v", hosts)
		}
	})
}

func TestFleetNames(t *testing.T) {
	for _, bad := range []string{"", "a b", "a}:{b", "A", strings.Repeat("a", 65)} {
		if _, err := gitpoll.NewFleet(nil, "p", bad); err == nil {
			t.Errorf("fleet name %q was accepted", bad)
		}
	}
}
