package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

// byName sorts a sweep's results.
func byName(results []gitpoll.Result) map[string]gitpoll.Result {
	found := map[string]gitpoll.Result{}
	for _, r := range results {
		found[r.Target.Source.Name] = r
	}
	return found
}

func wireSweeper(t *testing.T, timeout time.Duration) *gitpoll.Sweeper {
	t.Helper()
	lister := gitpoll.NewWireLister(timeout)
	t.Cleanup(lister.Close)
	return &gitpoll.Sweeper{Lister: lister, Strategy: selection.SemverTag(), Throttles: gitpoll.NewThrottles(nil)}
}

func TestTargetsOfOneRepositoryShareAListing(t *testing.T) {
	server := gittest.NewServer(t)
	server.RequirePassword("alice", "pw")
	r := server.Repository("r.git")
	commit := r.Commit("main", "first", map[string]string{"f": "x"})
	r.Git("tag", "v1.2.0", "main")
	next := r.Commit("next", "second", map[string]string{"f": "y"})
	r.Git("tag", "-a", "-m", "x", "v1.10.0", "next")
	s := wireSweeper(t, 10*time.Second)
	basic := map[string][]byte{"username": []byte("alice"), "password": []byte("pw")}
	secrets := &secretsMap{data: map[string]map[string][]byte{"flux/one": basic, "flux/two": basic, "flux/other": {"bearerToken": []byte("x")}}}
	s.Secrets = secrets
	one, two, other := name("one"), name("two"), name("other")
	results := byName(s.Sweep(t.Context(), []gitpoll.Target{
		{Source: name("main"), URL: r.URL, SecretRef: &one, TrackingRef: main},
		{Source: name("next"), URL: r.URL, SecretRef: &two, TrackingRef: "refs/heads/next"}, // another Secret with the same in it
		{Source: name("range"), URL: r.URL, SecretRef: &one, TrackingRef: "semver:1.x"},
		{Source: name("none"), URL: r.URL, SecretRef: &one, TrackingRef: "refs/heads/none"},
		{Source: name("odd"), URL: r.URL, SecretRef: &one, TrackingRef: "refs/heads/a b"},
		{Source: name("other"), URL: r.URL, SecretRef: &other, TrackingRef: main},
	}))
	for source, want := range map[string]string{"main": commit, "next": next, "range": next} {
		if got := results[source]; got.SHA != want || got.Err != nil {
			t.Errorf("%s: %q, %v, want %s", source, got.SHA, got.Err, want)
		}
	}
	for source, want := range map[string]gitpoll.Kind{"none": gitpoll.KindNotAdvertised, "odd": gitpoll.KindConfiguration, "other": gitpoll.KindAuthorization} {
		if got := gitpoll.KindOf(results[source].Err); got != want {
			t.Errorf("%s: %s (%v), want %s", source, got, results[source].Err, want)
		}
	}
	if n := len(server.Records()); n != 2 {
		t.Errorf("%d requests for two credentials, want 2", n)
	}
}

func TestBadHostsCostTheirOwnTargetsOnly(t *testing.T) {
	server := gittest.NewServer(t)
	r := server.Repository("r.git")
	commit := r.Commit("main", "first", map[string]string{"f": "x"})
	const timeout = 5 * time.Second // for the good host on a busy machine; the bad ones are many at once
	s := wireSweeper(t, timeout)
	s.PerHost = 4
	bad := map[string]string{
		"silent":              "http://" + gittest.Silent(t),
		"silent over TLS":     "https://" + gittest.Silent(t),
		"dead":                "http://" + gittest.Dead(t),
		"flood of refs":       gittest.Flood(t, 200, "003e"+shaA+" refs/heads/main2\n"),
		"flood of one packet": gittest.Flood(t, 200, "fff0"+strings.Repeat("a", 0xfff0-4)),
		"flood of errors":     gittest.Flood(t, 500, "go away "),
		"flood of a page":     gittest.Flood(t, 404, "<html>"),
	}
	var targets []gitpoll.Target
	for title, url := range bad {
		for i := range 2 {
			targets = append(targets, target(fmt.Sprint(title, i), fmt.Sprint(url, "/", i, ".git")))
		}
	}
	for i := range 5 {
		targets = append(targets, target(fmt.Sprint("good", i), r.URL))
	}
	results := byName(s.Sweep(t.Context(), targets))
	if len(results) != len(targets) {
		t.Errorf("%d results for %d targets", len(results), len(targets))
	}
	for source, got := range results {
		if strings.HasPrefix(source, "good") {
			if got.SHA != commit || got.Err != nil {
				t.Errorf("%s: %q, %v", source, got.SHA, got.Err)
			}
			continue
		}
		if got.Err == nil || len(got.Err.Error()) > 400 {
			t.Errorf("%s: %v, want an error of bounded length", source, got.Err)
		}
	}
}

// A target whose URL cannot be read costs itself only, also where it comes first.
func TestABrokenURLCostsItsOwnTargetOnly(t *testing.T) {
	server := gittest.NewServer(t)
	r := server.Repository("r.git")
	head := r.Commit("main", "first", map[string]string{"f": "x"})
	s := gitpoll.Sweeper{Lister: gitpoll.NewWireLister(0), Strategy: selection.TrackRef()}
	for _, broken := range []string{"git://h/r.git", "https://h:port/r.git", "", "ssh://h/"} {
		for _, result := range s.Sweep(t.Context(), []gitpoll.Target{target("broken", broken), target("good", r.URL)}) {
			want, kind := head, gitpoll.KindNone
			if result.Target.Source.Name == "broken" {
				want, kind = "", gitpoll.KindConfiguration
			}
			if result.SHA != want || gitpoll.KindOf(result.Err) != kind {
				t.Errorf("beside %q, %s: %q, %v", broken, result.Target.Source.Name, result.SHA, result.Err)
			}
		}
	}
}

func TestASweepEndsInTime(t *testing.T) {
	server := gittest.NewServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	m := newMetrics()
	s := wireSweeper(t, time.Minute)
	s.Failures, s.PerHost, s.Until = m.failures, 1, time.Now().Add(3*time.Second)
	var targets []gitpoll.Target
	silent := gittest.Silent(t)
	for i := range 4 {
		targets = append(targets, target(fmt.Sprint("silent", i), fmt.Sprintf("http://%s/%d.git", silent, i)))
	}
	targets = append(targets, target("good", server.URL+"/r.git"))
	results := byName(s.Sweep(t.Context(), targets))
	if got := results["good"]; got.SHA != commit {
		t.Errorf("good: %+v", got)
	}
	for i := range 4 {
		if got := results[fmt.Sprint("silent", i)]; !errors.Is(got.Err, gitpoll.ErrNotReached) {
			t.Errorf("silent%d: %v, want ErrNotReached", i, got.Err)
		}
	}
	if n := testutil.CollectAndCount(m.failures); n != 0 {
		t.Error("what was not reached counts against the host")
	}
}

func TestASweepEndsWhenTheProcessIsAskedTo(t *testing.T) {
	s := wireSweeper(t, time.Minute)
	ending := make(chan struct{})
	s.Until, s.Ending = time.Now().Add(time.Hour), ending
	time.AfterFunc(50*time.Millisecond, func() { close(ending) })
	results := s.Sweep(t.Context(), []gitpoll.Target{target("silent", "http://"+gittest.Silent(t)+"/r.git")})
	if len(results) != 1 || !errors.Is(results[0].Err, gitpoll.ErrNotReached) {
		t.Errorf("results %+v, want one that was not reached", results)
	}
}

func TestACancelledSweepHasNoResults(t *testing.T) {
	s := wireSweeper(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if results := s.Sweep(ctx, []gitpoll.Target{target("silent", "http://"+gittest.Silent(t)+"/r.git")}); len(results) != 0 {
		t.Errorf("results %+v, want none", results)
	}
}

func TestAHostThatDoesNotAnswerIsGivenUp(t *testing.T) {
	var asked atomic.Int64
	s := &gitpoll.Sweeper{
		Strategy: selection.TrackRef(), PerHost: 2, Until: time.Now().Add(time.Hour),
		Lister: listFunc(func(_ context.Context, url string, _ transport.AuthMethod) (map[string]string, error) {
			if strings.HasPrefix(url, "https://down/") {
				asked.Add(1)
				return nil, fmt.Errorf("dial: %w", context.DeadlineExceeded)
			}
			return map[string]string{main: shaA}, nil
		}),
	}
	var targets []gitpoll.Target
	for i := range 50 {
		targets = append(targets, target(fmt.Sprint("down", i), fmt.Sprint("https://down/", i)), target(fmt.Sprint("up", i), fmt.Sprint("https://up/", i)))
	}
	kinds := map[gitpoll.Kind]int{}
	for _, r := range s.Sweep(t.Context(), targets) {
		kinds[gitpoll.KindOf(r.Err)]++
	}
	if n := asked.Load(); n < 4 || n > 5 {
		t.Errorf("asked the host %d times, want 4 (or 5, with one under way)", n)
	}
	if kinds[gitpoll.KindNone] != 50 || kinds[gitpoll.KindHostDown] < 45 || kinds[gitpoll.KindHostDown]+kinds[gitpoll.KindTimeout] != 50 {
		t.Errorf("results by kind: %v", kinds)
	}
}

func TestThrottledHosts(t *testing.T) {
	var c struct {
		Now       time.Time
		Targets   int `json:"targets_on_host"`
		PerHost   int `json:"per_host_concurrency"`
		Responses []struct {
			Status  int
			Headers map[string]string
			Until   time.Time `json:"expect_until"`
			Class   string    `json:"expect_class"`
			Capped  bool      `json:"expect_capped"`
		}
		Expect struct {
			Max int `json:"max_requests_to_host_after_first_429"`
		}
	}
	gittest.Case(t, "12-rate-limits", &c)
	other := gittest.NewServer(t)
	commit := other.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	for _, response := range c.Responses {
		t.Run(fmt.Sprint(response.Status, response.Headers), func(t *testing.T) {
			// The case's clock stands still at its now; the server's dates are moved to ours.
			shift := time.Since(c.Now)
			var mu sync.Mutex
			var asked, afterFirst int
			refused := make(chan struct{})
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked++
				select {
				case <-refused:
					afterFirst++
				default:
				}
				if asked == c.PerHost {
					close(refused) // as many as may are under way; none has an answer yet
				}
				mu.Unlock()
				<-refused
				for name, value := range response.Headers {
					if date, err := http.ParseTime(value); err == nil {
						value = date.Add(shift).UTC().Format(http.TimeFormat)
					} else if strings.HasSuffix(name, "-Reset") {
						unix, _ := strconv.ParseInt(value, 10, 64)
						value = fmt.Sprint(unix + int64(shift/time.Second))
					}
					w.Header().Set(name, value)
				}
				w.WriteHeader(response.Status)
			}))
			defer host.Close()
			s := wireSweeper(t, 10*time.Second)
			s.PerHost, s.Until = c.PerHost, time.Now().Add(time.Hour)
			targets := []gitpoll.Target{target("good", other.URL+"/r.git")}
			for i := range c.Targets {
				targets = append(targets, target(fmt.Sprint("t", i), fmt.Sprint(host.URL, "/", i, ".git")))
			}
			results := byName(s.Sweep(t.Context(), targets))
			if got := results["good"]; got.SHA != commit {
				t.Errorf("another host: %+v", got)
			}
			kinds := map[gitpoll.Kind]int{}
			for _, r := range results {
				kinds[gitpoll.KindOf(r.Err)]++
			}
			if response.Class == "authorization" {
				if kinds[gitpoll.KindAuthorization] != c.Targets || len(s.Throttles.Hosts()) != 0 {
					t.Errorf("results by kind %v, throttles %v: a plain 403 is about permissions", kinds, s.Throttles.Hosts())
				}
				return
			}
			if kinds[gitpoll.KindThrottled] != c.Targets {
				t.Errorf("results by kind: %v, want %d throttled", kinds, c.Targets)
			}
			if afterFirst > c.Expect.Max || asked > c.PerHost+c.Expect.Max {
				t.Errorf("%d requests, %d of them after the first refusal, want at most %d", asked, afterFirst, c.Expect.Max)
			}
			hosts := s.Throttles.Hosts()
			until := hosts[strings.TrimPrefix(host.URL, "http://")].Until
			switch {
			case len(hosts) != 1 || !until.After(time.Now()):
				t.Fatalf("throttles %v, want the host's", hosts)
			case response.Capped && until.After(time.Now().Add(time.Hour)):
				t.Errorf("left alone until %v: not capped", until)
			case !response.Until.IsZero():
				if off := until.Sub(response.Until.Add(shift)); off < -2*time.Second || off > 10*time.Second {
					t.Errorf("left alone until %v, %v off", until, off)
				}
			}
			// The next sweep, in another process, does not ask.
			before := asked
			next := wireSweeper(t, 10*time.Second)
			next.Throttles = gitpoll.NewThrottles(hosts)
			for _, r := range next.Sweep(t.Context(), targets[1:]) {
				var skipped *gitpoll.ThrottledError
				if !errors.As(r.Err, &skipped) {
					t.Errorf("next sweep: %v, want ThrottledError", r.Err)
					break
				}
			}
			if asked != before {
				t.Errorf("asked %d times before the time had come", asked-before)
			}
		})
	}
}

func TestPausesGrowWhileAHostThrottles(t *testing.T) {
	now := time.Now()
	throttles := gitpoll.NewThrottles(nil)
	throttles.Now = func() time.Time { return now }
	fail := true
	s := &gitpoll.Sweeper{
		Strategy: selection.TrackRef(), Throttles: throttles,
		Lister: listFunc(func(context.Context, string, transport.AuthMethod) (map[string]string, error) {
			if fail {
				return nil, &gitwire.StatusError{Code: 429, Throttled: true}
			}
			return map[string]string{main: shaA}, nil
		}),
	}
	for strike, about := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		s.Sweep(t.Context(), []gitpoll.Target{target("a", "https://h/a"), target("b", "https://h/b")})
		h := throttles.Hosts()["h"]
		pause := h.Until.Sub(now)
		if h.Strikes != strike+1 || pause < about*4/5 || pause > about*6/5 {
			t.Errorf("strike %d: %+v, a pause of %v, want about %v", strike+1, h, pause, about)
		}
		now = h.Until
	}
	fail = false
	s.Sweep(t.Context(), []gitpoll.Target{target("a", "https://h/a")})
	if hosts := throttles.Hosts(); len(hosts) != 0 {
		t.Errorf("throttles %v after a success, want none", hosts)
	}
}

func TestEmptyRepositoriesKeepTheLastGoodCommit(t *testing.T) {
	var c struct{ Expect struct{ Class string } }
	gittest.Case(t, "08-empty-repository", &c)
	server := gittest.NewServer(t)
	empty := server.Repository("empty.git")
	s := wireSweeper(t, 10*time.Second)
	s.Strategy = upper{} // sees all refs, so an empty repository is known as one
	for _, strategy := range []selection.Strategy{upper{}, selection.TrackRef()} {
		s.Strategy = strategy
		results := s.Sweep(t.Context(), []gitpoll.Target{target("a", empty.URL)})
		if len(results) != 1 || results[0].SHA != "" || gitpoll.KindOf(results[0].Err) != gitpoll.KindNotAdvertised {
			t.Errorf("%T: %+v", strategy, results)
		}
	}
	_, err := gitpoll.NewGoGitLister(0).List(t.Context(), empty.URL, nil)
	if string(gitpoll.KindOf(err)) != c.Expect.Class {
		t.Errorf("List: %s, want %s", gitpoll.KindOf(err), c.Expect.Class)
	}
}
