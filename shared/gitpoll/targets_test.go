package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
)

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

func TestASlowSecretIsReadOnceForAllThatWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets, r := &slowSecrets{}, &remote{}
		p := gitpoll.NewPoller(secrets, r, nil, nil, nil, nil)
		p.Configure(time.Second, 4)
		ref := name("slow")
		var targets []gitpoll.Target
		for _, host := range []string{"g", "h"} {
			for _, repo := range []string{"a", "b"} {
				tg := target(host+repo, "https://"+host+"/"+repo)
				tg.SecretRef = &ref
				targets = append(targets, tg)
				r.set(tg.URL, main, shaA, nil)
			}
		}
		p.SetTargets(targets)
		defer start(t, p)()
		after(3500 * time.Millisecond)
		if n := secrets.reads.Load(); n != 1 {
			t.Errorf("%d reads for 4 targets, want 1", n)
		}
		for _, tg := range targets {
			if o, _ := p.Observation(tg.Source); o.SHA != shaA || !o.ObservedAt.Equal(time.Now().Add(-500*time.Millisecond)) {
				t.Errorf("%s: %+v, want a look when the Secret was there", tg.Source, o)
			}
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

func TestStartWithoutTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gitpoll.NewPoller(nil, &remote{}, nil, nil, nil, nil)
		stop := start(t, p)
		after(time.Hour)
		stop()
	})
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
