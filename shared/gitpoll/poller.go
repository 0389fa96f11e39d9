package gitpoll

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/selection"
)

const (
	// DefaultInterval is the time between two sweeps.
	DefaultInterval = 90 * time.Second
	// DefaultPerHostConcurrency is how many listings of one host run at a time.
	DefaultPerHostConcurrency = 4
)

// Observation is what is known of a source.
type Observation struct {
	SHA           string    // of the tracking ref; empty until it was seen once
	ObservedAt    time.Time // when a sweep last looked
	FirstObserved time.Time // when SHA was first seen
	Err           error     // of the last look, nil if it succeeded; SHA stays
	URL           string    // what was looked at
	TrackingRef   string
}

// Poller sweeps a set of targets again and again. It is a manager.Runnable of controller-runtime.
type Poller struct {
	sweeper Sweeper
	notify  func()
	// changed wakes Start when the interval changes. One pending wake is as good as two.
	changed chan struct{}

	mu           sync.RWMutex
	interval     time.Duration
	perHost      int
	targets      []Target
	current      map[types.NamespacedName]plumbing
	observations map[types.NamespacedName]Observation
}

// plumbing is what an observation is of, besides its source. One of other plumbing says nothing about the target.
type plumbing struct{ url, ref string }

func plumbingOf(t Target) plumbing { return plumbing{t.URL, t.TrackingRef} }

// NewPoller returns a Poller without targets. secrets may be nil if no target has a SecretRef; notify, which may be
// nil, is called at the end of each sweep. The counters, which may be nil, are
// wavefront_ref_list_failures_total{host} and wavefront_credential_read_failures_total.
func NewPoller(secrets SecretReader, lister Lister, notify func(), strategy selection.Strategy, failures *prometheus.CounterVec, credentialFailures prometheus.Counter) *Poller {
	if strategy == nil {
		strategy = selection.TrackRef()
	}
	return &Poller{
		sweeper: Sweeper{
			Secrets:            secrets,
			Lister:             lister,
			Strategy:           strategy,
			Failures:           failures,
			CredentialFailures: credentialFailures,
			Throttles:          &Throttles{OnlyStated: true},
		},
		notify:       notify,
		changed:      make(chan struct{}, 1),
		interval:     DefaultInterval,
		perHost:      DefaultPerHostConcurrency,
		current:      map[types.NamespacedName]plumbing{},
		observations: map[types.NamespacedName]Observation{},
	}
}

// Configure sets the time between sweeps and how many listings of a host run at a time. Values that are not positive
// become the defaults. A changed interval counts at once, from the end of the last sweep.
func (p *Poller) Configure(interval time.Duration, perHostConcurrency int) {
	if interval <= 0 {
		interval = DefaultInterval
	}
	if perHostConcurrency <= 0 {
		perHostConcurrency = DefaultPerHostConcurrency
	}
	p.mu.Lock()
	same := p.interval == interval
	p.interval, p.perHost = interval, perHostConcurrency
	p.mu.Unlock()
	if same {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// SetTargets replaces the targets. Observations of sources that are gone, or that have another URL or tracking ref
// now, are dropped at once, and a listing under way for them will be.
func (p *Poller) SetTargets(targets []Target) {
	current := make(map[types.NamespacedName]plumbing, len(targets))
	for _, t := range targets {
		current[t.Source] = plumbingOf(t)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets, p.current = slices.Clone(targets), current
	maps.DeleteFunc(p.observations, func(source types.NamespacedName, o Observation) bool {
		now, ok := current[source]
		return !ok || now != plumbing{o.URL, o.TrackingRef}
	})
}

// Observation is the latest observation of a source.
func (p *Poller) Observation(source types.NamespacedName) (Observation, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	o, ok := p.observations[source]
	return o, ok
}

// Observations are all observations, as one sweep left them. The map is the caller's own.
func (p *Poller) Observations() map[types.NamespacedName]Observation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return maps.Clone(p.observations)
}

// Start sweeps until ctx ends, and then returns nil. The first sweep comes after the first interval; each interval is
// counted from the end of the sweep before it, so setting it again and again puts nothing off.
func (p *Poller) Start(ctx context.Context) error {
	last := time.Now()
	for {
		p.mu.RLock()
		due := last.Add(p.interval)
		p.mu.RUnlock()
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.changed:
			timer.Stop()
		case <-timer.C:
			if ctx.Err() != nil {
				return nil
			}
			p.sweep(ctx)
			last = time.Now()
		}
	}
}

// sweep looks at every target and publishes all it found in one step. A sweep that was cut short by the end of ctx
// publishes nothing: what it found is not the state of one moment.
func (p *Poller) sweep(ctx context.Context) {
	p.mu.RLock()
	sweeper, targets := p.sweeper, p.targets
	sweeper.PerHost = p.perHost
	p.mu.RUnlock()
	if results := sweeper.Sweep(ctx, targets); ctx.Err() == nil {
		p.publish(results)
	}
	if p.notify != nil {
		p.notify()
	}
}

func (p *Poller) publish(results []Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range results {
		if p.current[r.Target.Source] != plumbingOf(r.Target) {
			continue // re-pointed or gone while it was being listed
		}
		o := p.observations[r.Target.Source]
		o.URL, o.TrackingRef, o.ObservedAt, o.Err = r.Target.URL, r.Target.TrackingRef, r.At, r.Err
		if r.Err == nil && o.SHA != r.SHA {
			o.SHA, o.FirstObserved = r.SHA, r.At
		}
		p.observations[r.Target.Source] = o
	}
}
