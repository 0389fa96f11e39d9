package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

const (
	main = "refs/heads/main"
	shaA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	shaB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestNoSweepBeforeTheFirstInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		r.set("https://h/a", main, shaA, nil)
		notified := 0
		p := gitpoll.NewPoller(nil, r, func() { notified++ }, nil, nil, nil)
		p.SetTargets([]gitpoll.Target{target("a", "https://h/a")})
		defer start(t, p)()
		after(gitpoll.DefaultInterval - time.Nanosecond)
		if n := r.count("https://h/a"); n != 0 {
			t.Fatalf("listed %d times before the first interval", n)
		}
		if _, ok := p.Observation(name("a")); ok {
			t.Fatal("observed before the first interval")
		}
		after(time.Nanosecond)
		o, ok := p.Observation(name("a"))
		if !ok || o.SHA != shaA || o.Err != nil || o.URL != "https://h/a" || o.TrackingRef != main || !o.ObservedAt.Equal(o.FirstObserved) {
			t.Errorf("observation %+v, %v", o, ok)
		}
		if notified != 1 || r.count("https://h/a") != 1 {
			t.Errorf("notified %d times, listed %d times, want once each", notified, r.count("https://h/a"))
		}
	})
}

func TestIntervalCountsFromTheEndOfTheLastSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Duration
		begin := time.Now()
		p := gitpoll.NewPoller(nil, listFunc(func(context.Context, string, transport.AuthMethod) (map[string]string, error) {
			mu.Lock()
			starts = append(starts, time.Since(begin))
			mu.Unlock()
			time.Sleep(7 * time.Second)
			return map[string]string{main: shaA}, nil
		}), nil, nil, nil, nil)
		p.Configure(10*time.Second, 0)
		p.SetTargets([]gitpoll.Target{target("a", "https://h/a")})
		defer start(t, p)()
		after(50 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(starts); got != "[10s 27s 44s]" {
			t.Errorf("sweeps began at %s, want [10s 27s 44s]", got)
		}
	})
}

func TestConfigure(t *testing.T) {
	sweeps := func(t *testing.T) (*gitpoll.Poller, func() int) {
		var mu sync.Mutex
		n := 0
		p := gitpoll.NewPoller(nil, &remote{}, func() { mu.Lock(); n++; mu.Unlock() }, nil, nil, nil)
		return p, func() int { mu.Lock(); defer mu.Unlock(); return n }
	}
	t.Run("a shorter interval counts at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, count := sweeps(t)
			p.Configure(time.Hour, 1)
			defer start(t, p)()
			after(time.Minute)
			p.Configure(time.Second, 1)
			after(0)
			if n := count(); n != 1 {
				t.Errorf("%d sweeps right after the interval had become shorter than the time passed, want 1", n)
			}
		})
	})
	t.Run("the same value again and again starves nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, count := sweeps(t)
			p.Configure(time.Second, 1)
			defer start(t, p)()
			for range 100 {
				after(100 * time.Millisecond)
				p.Configure(time.Second, 1)
			}
			if n := count(); n != 10 {
				t.Errorf("%d sweeps in 10 s, want 10", n)
			}
		})
	})
	t.Run("nor do values that alternate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, count := sweeps(t)
			p.Configure(time.Second, 1)
			defer start(t, p)()
			for i := range 100 {
				after(100 * time.Millisecond)
				p.Configure(time.Second+time.Duration(i%2), 1)
			}
			if n := count(); n < 9 {
				t.Errorf("%d sweeps in 10 s, want 9 or 10", n)
			}
		})
	})
	t.Run("what is not positive becomes the default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, count := sweeps(t)
			p.Configure(time.Second, 1)
			p.Configure(-1, 0)
			defer start(t, p)()
			after(gitpoll.DefaultInterval - 1)
			if n := count(); n != 0 {
				t.Errorf("%d sweeps before the default interval", n)
			}
			after(1)
			if n := count(); n != 1 {
				t.Errorf("%d sweeps after the default interval, want 1", n)
			}
		})
	})
}

func TestConcurrencyPerHost(t *testing.T) {
	for perHost, want := range map[int]int{1: 1, 3: 3, 0: gitpoll.DefaultPerHostConcurrency} {
		t.Run(fmt.Sprint(perHost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most, all := map[string]int{}, map[string]int{}, 0
				p := gitpoll.NewPoller(nil, listFunc(func(_ context.Context, url string, _ transport.AuthMethod) (map[string]string, error) {
					host := strings.Split(url, "/")[2]
					mu.Lock()
					now[host]++
					most[host] = max(most[host], now[host])
					all = max(all, now["one"]+now["two:8443"])
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now[host]--
					mu.Unlock()
					return map[string]string{main: shaA}, nil
				}), nil, nil, nil, nil)
				p.Configure(time.Second, perHost)
				var targets []gitpoll.Target
				for i := range 12 {
					targets = append(targets, target(fmt.Sprint("one", i), "https://one/same"), target(fmt.Sprint("two", i), fmt.Sprint("https://two:8443/", i)))
				}
				p.SetTargets(targets)
				defer start(t, p)()
				after(2*time.Second + time.Duration(12/want)*time.Second)
				mu.Lock()
				defer mu.Unlock()
				if most["one"] != want || most["two:8443"] != want || all != 2*want {
					t.Errorf("at most %v at a time and %d in all, want %d per host and both hosts side by side", most, all, want)
				}
				if n := len(p.Observations()); n != len(targets) {
					t.Errorf("%d observations, want %d", n, len(targets))
				}
			})
		})
	}
}

func TestASweepIsPublishedInOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sha := shaA
		var mu sync.Mutex
		notified := 0
		p := gitpoll.NewPoller(nil, listFunc(func(_ context.Context, url string, _ transport.AuthMethod) (map[string]string, error) {
			if url == "https://slow/r" {
				time.Sleep(5 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			return map[string]string{main: sha}, nil
		}), func() { notified++ }, nil, nil, nil)
		p.Configure(10*time.Second, 2)
		p.SetTargets([]gitpoll.Target{target("fast", "https://fast/r"), target("slow", "https://slow/r")})
		defer start(t, p)()
		after(12 * time.Second)
		if got := p.Observations(); len(got) != 0 {
			t.Fatalf("%d observations while the first sweep runs, want none", len(got))
		}
		after(4 * time.Second)
		if notified != 1 {
			t.Fatalf("notified %d times, want once", notified)
		}
		mu.Lock()
		sha = shaB
		mu.Unlock()
		after(10 * time.Second) // 26 s: the second sweep began at 25 s, and the fast host has answered
		for source, o := range p.Observations() {
			if o.SHA != shaA {
				t.Errorf("%s already at the next sweep's %s", source, o.SHA)
			}
		}
		after(5 * time.Second)
		got := p.Observations()
		if got[name("fast")].SHA != shaB || got[name("slow")].SHA != shaB || notified != 2 {
			t.Errorf("after the second sweep: %v, notified %d times", got, notified)
		}
		delete(got, name("fast"))
		if _, ok := p.Observations()[name("fast")]; !ok {
			t.Error("the map of Observations is not the caller's own")
		}
	})
}

func TestObservationsKeepTheLastGoodCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &remote{}, newMetrics()
		const url = "https://alice:s3cr3t@h:8443/r"
		r.set(url, main, shaA, nil)
		p := gitpoll.NewPoller(nil, r, nil, selection.TrackRef(), m.failures, m.credentials)
		p.Configure(time.Second, 1)
		p.SetTargets([]gitpoll.Target{target("a", url)})
		defer start(t, p)()
		look := func() gitpoll.Observation {
			after(time.Second)
			o, _ := p.Observation(name("a"))
			return o
		}
		first := look()
		second := look()
		if second.SHA != shaA || !second.FirstObserved.Equal(first.FirstObserved) || !second.ObservedAt.After(first.ObservedAt) {
			t.Errorf("an unchanged commit: %+v after %+v", second, first)
		}
		r.set(url, main, shaA, fmt.Errorf("listing: %w", io.ErrUnexpectedEOF))
		failed := look()
		if failed.SHA != shaA || !failed.FirstObserved.Equal(first.FirstObserved) || !errors.Is(failed.Err, io.ErrUnexpectedEOF) || !failed.ObservedAt.After(second.ObservedAt) {
			t.Errorf("a failure: %+v", failed)
		}
		r.set(url, "refs/heads/other", shaB, nil)
		gone := look()
		if gone.SHA != shaA || gone.Err == nil || gone.Err.Error() != `tracking ref "refs/heads/main" is not advertised` {
			t.Errorf("a ref that is gone: %+v", gone)
		}
		// A failure that wraps context.Canceled while nobody cancelled is a failure like others.
		r.set(url, main, shaA, fmt.Errorf("stream reset: %w", context.Canceled))
		if o := look(); !errors.Is(o.Err, context.Canceled) {
			t.Errorf("a failure that wraps context.Canceled: %+v", o)
		}
		if n := testutil.ToFloat64(m.failures.WithLabelValues("h:8443")); n != 3 {
			t.Errorf("failures of h:8443: %v, want 3", n)
		}
		r.set(url, main, shaB, nil)
		moved := look()
		if moved.SHA != shaB || moved.Err != nil || !moved.FirstObserved.Equal(moved.ObservedAt) {
			t.Errorf("a new commit: %+v", moved)
		}
		if n := testutil.CollectAndCount(m.failures); n != 1 {
			t.Errorf("%d hosts in the metric, want 1", n)
		}
	})
}

func TestFailuresWithoutAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics()
		p := gitpoll.NewPoller(nil, &remote{}, nil, nil, m.failures, m.credentials)
		p.Configure(time.Second, 1)
		p.SetTargets([]gitpoll.Target{target("a", "https://alice:s3cr3t@h:port/r"), target("b", "/srv/git/r")})
		defer start(t, p)()
		after(time.Second)
		if n := testutil.ToFloat64(m.failures.WithLabelValues("unknown")); n != 2 {
			t.Errorf("failures of an unknown host: %v, want 2", n)
		}
		for source, o := range p.Observations() {
			if o.Err == nil || strings.Contains(o.Err.Error(), "s3cr3t") {
				t.Errorf("%s: error %v, want one without the password", source, o.Err)
			}
		}
	})
}

func (blockedSecrets) SecretData(ctx context.Context, _ types.NamespacedName) (map[string][]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (upper) TrackingRef(*sourcev1.GitRepositoryRef) (string, error) { return "", nil }

func (upper) Candidate(advertised map[string]string, trackingRef string) (string, bool) {
	sha, ok := advertised[trackingRef]
	return strings.ToUpper(sha), ok
}
