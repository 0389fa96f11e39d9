package gitpoll

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

const (
	// maxInFlight bounds the listings of a sweep over all hosts, and with them its memory and connections.
	maxInFlight = 256
	// unknownHost stands for a URL without a host.
	unknownHost = "unknown"
	// giveUpAfter is how many listings in a row, per place at the host, may find it dead, silent or failing before
	// the rest of its targets is left for the next sweep.
	giveUpAfter = 2
)

// ErrNotReached is a target whose turn did not come before the sweep had to end.
var ErrNotReached = errors.New("not reached")

// ErrHostDown is a target that was not listed because its host had answered none of the several before it.
var ErrHostDown = errors.New("host answered none of the listings before")

// ErrSuspended is a source that is not to be looked at.
var ErrSuspended = errors.New("suspended")

// Target is one source to watch.
type Target struct {
	Source      types.NamespacedName  // the GitRepository
	URL         string                // of the repository
	SecretRef   *types.NamespacedName // credentials, if any
	TrackingRef string                // what a selection.Strategy gave for the ref
	// ProxySecretRef names a Secret with the proxy's address, username and password, if any.
	ProxySecretRef *types.NamespacedName
}

// Result is how a sweep found one target.
type Result struct {
	Target Target
	SHA    string // empty if Err is not nil
	At     time.Time
	Err    error
	Host   string        // label of the host
	Took   time.Duration // of the listing; several targets may share one
}

// Sweeper lists targets. Secrets, Lister and Strategy as NewPoller takes them.
type Sweeper struct {
	Secrets  SecretReader
	Lister   Lister
	Strategy selection.Strategy
	// PerHost bounds the listings of one host at a time; not positive means DefaultPerHostConcurrency.
	PerHost int
	// Failures counts failed listings per host, CredentialFailures Secrets that could not be read. Nil counts nothing.
	Failures           *prometheus.CounterVec
	CredentialFailures prometheus.Counter
	// Throttles remembers hosts that asked to be left alone. Nil remembers nothing.
	Throttles *Throttles
	// Until ends the sweep: what is not listed by then is ErrNotReached. Zero means no end. A sweep that may run
	// out of time takes the targets in random order, so that no target is always the last, and leaves a host that
	// has stopped answering.
	Until time.Time
	// Ending, if not nil, ends a sweep that has an Until when it is closed.
	Ending <-chan struct{}
}

// Sweep lists every target once and returns what it found, in no particular order. Targets of one host run PerHost at
// a time, hosts side by side. A target whose listing ended after ctx did has no Result at all: it would tell of the
// shutdown, not of the repository. Only ctx itself says that it ended; a failure that merely wraps context.Canceled
// is a failure.
func (s *Sweeper) Sweep(ctx context.Context, targets []Target) []Result {
	run := &sweepRun{
		Sweeper: s,
		outer:   ctx,
		within:  ctx,
		perHost: s.PerHost,
		secrets: secretMemo{reader: s.Secrets, failures: s.CredentialFailures},
		trouble: map[string]int{},
		results: make([]Result, 0, len(targets)),
	}
	if run.perHost <= 0 {
		run.perHost = DefaultPerHostConcurrency
	}
	if !s.Until.IsZero() {
		within, cancel := context.WithDeadline(ctx, s.Until)
		defer cancel()
		run.within = within
		go func() {
			select {
			case <-s.Ending:
				cancel()
			case <-within.Done():
			}
		}()
	}
	hosts, jobs := run.plan(targets)
	work := newSchedule(run.perHost, hosts, jobs)
	each(maxInFlight, work.left, func() {
		for {
			q, j, ok := work.take()
			if !ok {
				return
			}
			run.do(q.host, j)
			work.done(q)
		}
	})
	return run.results
}

// each runs f in as many goroutines as there is work for, up to limit, and waits.
func each(limit, work int, f func()) {
	var workers sync.WaitGroup
	for range min(limit, work) {
		workers.Go(f)
	}
	workers.Wait()
}

// sweepRun is one sweep.
type sweepRun struct {
	*Sweeper
	outer, within context.Context // within ends at Until
	perHost       int
	secrets       secretMemo

	mu      sync.Mutex
	trouble map[string]int // listings in a row that found a host dead, silent or failing
	results []Result
}

// do lists once and settles every target of the job.
func (r *sweepRun) do(host string, j *job) {
	start := time.Now()
	advertised, err := r.list(host, j)
	now := time.Now()
	if r.outer.Err() != nil {
		return
	}
	if err != nil && r.within.Err() != nil {
		err = ErrNotReached
	}
	results := make([]Result, 0, len(j.targets))
	for _, t := range j.targets {
		result := Result{Target: t, At: now, Err: err, Host: host, Took: now.Sub(start)}
		if err == nil {
			var ok bool
			if result.SHA, ok = r.Strategy.Candidate(advertised, t.TrackingRef); !ok {
				result.SHA, result.Err = "", &notAdvertisedError{t.TrackingRef}
			}
		}
		if r.Failures != nil && blames(result.Err) {
			r.Failures.WithLabelValues(host).Inc()
		}
		results = append(results, result)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, results...)
}

// list is one listing, unless it is known beforehand that it must not be made.
func (r *sweepRun) list(host string, j *job) (map[string]string, error) {
	switch {
	case j.err != nil:
		return nil, j.err
	case r.within.Err() != nil:
		return nil, ErrNotReached
	case r.down(host):
		return nil, ErrHostDown
	}
	if until, ok := r.Throttles.until(host); ok {
		return nil, &ThrottledError{Until: until}
	}
	refs, err := r.ask(j)
	if r.within.Err() == nil {
		r.Throttles.note(host, err)
		r.note(host, err)
	}
	return refs, err
}

func (r *sweepRun) ask(j *job) (map[string]string, error) {
	if wire, ok := r.Lister.(*WireLister); ok {
		refs, err := wire.list(r.within, j.endpoint, j.credentials, j.names)
		if err != nil {
			err = listingError(err)
		}
		return refs, err
	}
	t := j.targets[0]
	var data map[string][]byte
	if t.SecretRef != nil {
		var err error
		if data, err = r.secrets.get(r.within, *t.SecretRef); err != nil {
			return nil, err
		}
	}
	auth, err := AuthFromSecret(t.URL, data)
	if err != nil {
		return nil, AsConfiguration(err)
	}
	return r.Lister.List(r.within, t.URL, auth)
}

// down says whether the host is given up for this sweep. A sweep without an end never gives up.
func (r *sweepRun) down(host string) bool {
	if r.Until.IsZero() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble[host] >= giveUpAfter*r.perHost
}

func (r *sweepRun) note(host string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch KindOf(err) {
	case KindTimeout, KindUnreachable, KindServer, KindThrottled:
		r.trouble[host]++
	default:
		r.trouble[host] = 0
	}
}

// hostOf groups targets and labels metrics.
func hostOf(repoURL string) string {
	if ep, err := giturl.Parse(repoURL); err == nil {
		return ep.HostLabel()
	}
	if u, err := url.Parse(repoURL); err == nil && u.Host != "" {
		return u.Host
	}
	return unknownHost
}
