package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/prometheus/client_golang/prometheus"
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

// listFunc is a Lister.
type listFunc func(ctx context.Context, url string, auth transport.AuthMethod) (map[string]string, error)

func (f listFunc) List(ctx context.Context, url string, auth transport.AuthMethod) (map[string]string, error) {
	return f(ctx, url, auth)
}

// remote is a Lister over made-up repositories.
type remote struct {
	mu    sync.Mutex
	refs  map[string]map[string]string
	errs  map[string]error
	asked map[string]int
	auths []transport.AuthMethod
}

func (r *remote) List(_ context.Context, url string, auth transport.AuthMethod) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[url]++
	r.auths = append(r.auths, auth)
	if err := r.errs[url]; err != nil {
		return nil, err
	}
	return maps.Clone(r.refs[url]), nil
}

func (r *remote) used() []transport.AuthMethod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]transport.AuthMethod(nil), r.auths...)
}

func (r *remote) set(url, ref, sha string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs == nil {
		r.refs, r.errs = map[string]map[string]string{}, map[string]error{}
	}
	r.refs[url], r.errs[url] = map[string]string{ref: sha}, err
}

func (r *remote) count(url string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[url]
}

// secretsMap reads Secrets from a map and counts.
type secretsMap struct {
	mu    sync.Mutex
	data  map[string]map[string][]byte
	reads map[string]int
}

func (s *secretsMap) SecretData(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == nil {
		s.reads = map[string]int{}
	}
	s.reads[name.String()]++
	data, ok := s.data[name.String()]
	if !ok {
		return nil, errNoSecret
	}
	return data, nil
}

func (s *secretsMap) counts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.reads)
}

var errNoSecret = errors.New("no such secret")

type metrics struct {
	failures    *prometheus.CounterVec
	credentials prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "wavefront_ref_list_failures_total"}, []string{"host"}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "wavefront_credential_read_failures_total"}),
	}
}

func name(s string) types.NamespacedName { return types.NamespacedName{Namespace: "flux", Name: s} }

func target(source, url string) gitpoll.Target {
	return gitpoll.Target{Source: name(source), URL: url, TrackingRef: main}
}

// start runs a Poller until the test's bubble ends.
func start(t *testing.T, p *gitpoll.Poller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v, want nil", err)
		}
	}
}

// after lets the bubble's clock run.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

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

func TestSetTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		for _, url := range []string{"https://h/a", "https://h/b", "https://h/c", "https://h/d"} {
			r.set(url, main, shaA, nil)
		}
		p := gitpoll.NewPoller(nil, r, nil, nil, nil, nil)
		p.Configure(time.Second, 1)
		p.SetTargets([]gitpoll.Target{target("kept", "https://h/a"), target("gone", "https://h/b"), target("url", "https://h/c"), target("ref", "https://h/d")})
		defer start(t, p)()
		after(time.Second)
		other := target("ref", "https://h/d")
		other.TrackingRef = "refs/tags/v1"
		p.SetTargets([]gitpoll.Target{target("kept", "https://h/a"), target("url", "https://h/c2"), other})
		got := p.Observations()
		if _, ok := got[name("kept")]; !ok || len(got) != 1 {
			t.Errorf("observations %v, want that of the one target that stayed as it was", got)
		}
	})
}

func TestAListingOfOldPlumbingIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gitpoll.NewPoller(nil, listFunc(func(_ context.Context, url string, _ transport.AuthMethod) (map[string]string, error) {
			time.Sleep(10 * time.Second)
			return map[string]string{main: shaA, "refs/heads/next": shaB}, nil
		}), nil, nil, nil, nil)
		p.Configure(time.Second, 4)
		p.SetTargets([]gitpoll.Target{target("same", "https://h/a"), target("ref", "https://h/b"), target("gone", "https://h/c")})
		defer start(t, p)()
		after(5 * time.Second) // all three are under way
		moved := target("ref", "https://h/b")
		moved.TrackingRef = "refs/heads/next"
		p.SetTargets([]gitpoll.Target{target("same", "https://h/a"), moved, target("new", "https://h/d")})
		after(6500 * time.Millisecond)
		got := p.Observations()
		if len(got) != 1 || got[name("same")].SHA != shaA {
			t.Errorf("observations %v, want only that of the target that stayed as it was", got)
		}
		after(11 * time.Second)
		if o, _ := p.Observation(name("ref")); o.SHA != shaB || o.TrackingRef != "refs/heads/next" {
			t.Errorf("after the next sweep: %+v", o)
		}
	})
}

func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := &secretsMap{data: map[string]map[string][]byte{"flux/shared": {"username": []byte("alice"), "password": []byte("pw")}}}
		r, m := &remote{}, newMetrics()
		var targets []gitpoll.Target
		for i := range 6 {
			tg := target(fmt.Sprint("ok", i), fmt.Sprint("https://h/ok", i))
			ref := name("shared")
			tg.SecretRef = &ref
			targets = append(targets, tg)
			r.set(tg.URL, main, shaA, nil)
		}
		for i := range 3 {
			tg := target(fmt.Sprint("bad", i), fmt.Sprint("https://h/bad", i))
			ref := name("missing")
			tg.SecretRef = &ref
			targets = append(targets, tg)
		}
		p := gitpoll.NewPoller(secrets, r, nil, nil, m.failures, m.credentials)
		p.Configure(time.Second, 4)
		p.SetTargets(targets)
		defer start(t, p)()
		after(time.Second)
		if got := secrets.counts(); got != "map[flux/missing:1 flux/shared:1]" {
			t.Errorf("reads in the first sweep: %v, want one per Secret", got)
		}
		o, _ := p.Observation(name("bad1"))
		if !errors.Is(o.Err, errNoSecret) || !strings.HasPrefix(o.Err.Error(), "getting secret flux/missing: ") {
			t.Errorf("a missing Secret: %v", o.Err)
		}
		if r.count("https://h/bad1") != 0 {
			t.Error("listed without its Secret")
		}
		if n := testutil.ToFloat64(m.credentials); n != 1 {
			t.Errorf("credential failures: %v, want 1 for the one reference", n)
		}
		if n := testutil.CollectAndCount(m.failures); n != 0 {
			t.Error("a Secret's failure counts against the host")
		}
		if o, _ := p.Observation(name("ok5")); o.SHA != shaA || o.Err != nil {
			t.Errorf("a target with its Secret: %+v", o)
		}
		for _, auth := range r.used() {
			if basic, ok := auth.(*githttp.BasicAuth); !ok || basic.Username != "alice" || basic.Password != "pw" {
				t.Errorf("listed with %T", auth)
			}
		}
		after(time.Second)
		if got := secrets.counts(); got != "map[flux/missing:2 flux/shared:2]" {
			t.Errorf("reads after two sweeps: %v, want a fresh one in each", got)
		}
	})
}

func TestASecretRefWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		r.set("https://h/a", main, shaA, nil)
		p := gitpoll.NewPoller(nil, r, nil, nil, nil, nil)
		p.Configure(time.Second, 1)
		tg, ref := target("a", "https://h/a"), name("s")
		tg.SecretRef = &ref
		p.SetTargets([]gitpoll.Target{tg})
		defer start(t, p)()
		after(time.Second)
		if o, ok := p.Observation(name("a")); !ok || o.Err == nil || o.SHA != "" || r.count("https://h/a") != 0 {
			t.Errorf("observation %+v, listed %d times", o, r.count("https://h/a"))
		}
	})
}

func TestShutdownLeavesNoTrace(t *testing.T) {
	for title, end := range map[string]error{
		"the listing ends with the context's error": context.Canceled,
		"or with what go-git makes of it":           io.EOF,
		"or even well":                              nil,
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMetrics()
				p := gitpoll.NewPoller(nil, listFunc(func(ctx context.Context, _ string, _ transport.AuthMethod) (map[string]string, error) {
					<-ctx.Done()
					return map[string]string{main: shaA}, end
				}), nil, nil, m.failures, m.credentials)
				p.Configure(time.Second, 1)
				p.SetTargets([]gitpoll.Target{target("a", "https://h/a"), target("b", "https://h/b")})
				stop := start(t, p)
				after(2 * time.Second)
				stop()
				if got := p.Observations(); len(got) != 0 {
					t.Errorf("observations %v, want none", got)
				}
				if n := testutil.CollectAndCount(m.failures); n != 0 {
					t.Error("the shutdown counts as a failure")
				}
			})
		})
	}
	t.Run("also of a Secret's read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMetrics()
			p := gitpoll.NewPoller(blockedSecrets{}, &remote{}, nil, nil, m.failures, m.credentials)
			p.Configure(time.Second, 1)
			tg, ref := target("a", "https://h/a"), name("s")
			tg.SecretRef = &ref
			p.SetTargets([]gitpoll.Target{tg})
			stop := start(t, p)
			after(2 * time.Second)
			stop()
			if n := testutil.ToFloat64(m.credentials); n != 0 || len(p.Observations()) != 0 {
				t.Errorf("credential failures %v, observations %v", n, p.Observations())
			}
		})
	})
}

type blockedSecrets struct{}

func (blockedSecrets) SecretData(ctx context.Context, _ types.NamespacedName) (map[string][]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestStartWithoutTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gitpoll.NewPoller(nil, &remote{}, nil, nil, nil, nil)
		stop := start(t, p)
		after(time.Hour)
		stop()
	})
}

// upper is a strategy of a user's own: it sees every ref.
type upper struct{ selection.Strategy }

func (upper) TrackingRef(*sourcev1.GitRepositoryRef) (string, error) { return "", nil }

func (upper) Candidate(advertised map[string]string, trackingRef string) (string, bool) {
	sha, ok := advertised[trackingRef]
	return strings.ToUpper(sha), ok
}

func TestAnotherStrategy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		r.set("https://h/a", main, shaA, nil)
		p := gitpoll.NewPoller(nil, r, nil, upper{}, nil, nil)
		p.Configure(time.Second, 1)
		p.SetTargets([]gitpoll.Target{target("a", "https://h/a")})
		defer start(t, p)()
		after(time.Second)
		if o, _ := p.Observation(name("a")); o.SHA != strings.ToUpper(shaA) {
			t.Errorf("observation %+v", o)
		}
	})
}
