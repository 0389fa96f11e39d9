// Package refsweep notices, at each tick, which of many git repositories moved. It lists every source once with one
// small request, publishes one coherent snapshot to Redis, and sends one notification that names what moved.
//
// A tick is any POST. State comes from Redis and from where the sources are listed, never from the tick, so a lost tick
// costs only time. A crash between publishing and notifying repeats the notification and never loses it.
package refsweep

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

const (
	// endBefore is how long before the deadline a sweep ends, so that it can still be published and notified.
	endBefore = 5 * time.Second
	// leaseBeyond is how long after its deadline a sweep is taken for dead.
	leaseBeyond = 10 * time.Second
	// releaseTimeout is for giving the lease back when the tick itself has been cancelled.
	releaseTimeout = 2 * time.Second
	// maxTickBytes bounds what is read of a tick.
	maxTickBytes = 1 << 20
)

// Deps are what the function works with.
type Deps struct {
	Fleet   *gitpoll.Fleet
	Targets Targets
	Secrets gitpoll.SecretReader
	// Annotate asks for a source that moved to be reconciled; nil does not.
	Annotate func(ctx context.Context, source types.NamespacedName) error
}

// function is the http.Handler.
type function struct {
	cfg  Config
	deps Deps
	sink *sink // nil without K_SINK
	tel  *telemetry.Telemetry
	measures
}

// New makes the function: a POST is a tick, GET /observations reads what is known.
func New(cfg Config, deps Deps, tel *telemetry.Telemetry) http.Handler {
	f := &function{cfg: cfg, deps: deps, tel: tel, measures: newMeasures(tel)}
	if cfg.Sink != "" {
		f.sink = newSink(cfg)
	}
	return f
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	allow := http.MethodPost
	if r.URL.Path == observationsPath {
		allow = http.MethodGet
	}
	switch {
	case r.Method != allow:
		w.Header().Set("Allow", allow)
		http.Error(w, "a tick is a POST; GET "+observationsPath+" reads what is known", http.StatusMethodNotAllowed)
	case allow == http.MethodGet:
		f.observations(w, r)
	default:
		_, _ = io.CopyN(io.Discard, r.Body, maxTickBytes) // what a tick says does not matter
		f.tick(w, r)
	}
}

// tick is one sweep, from its number to its answer.
func (f *function) tick(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	deadline := start.Add(f.cfg.Timeout)
	if d, ok := r.Context().Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()

	sweep, err := f.deps.Fleet.Begin(ctx, time.Until(deadline)+leaseBeyond)
	if errors.Is(err, gitpoll.ErrSweepRunning) {
		f.skip(w, "already-running", err)
		return
	}
	if err != nil {
		f.fail(w, r, "begin", err)
		return
	}
	notified := []gitpoll.Move(nil)
	defer func() { f.end(r.Context(), sweep, notified) }()

	summary, moves, err := f.sweep(ctx, sweep, start, deadline)
	if errors.Is(err, gitpoll.ErrSuperseded) {
		f.skip(w, "superseded", err)
		return
	}
	if err != nil {
		f.fail(w, r, "sweep", err)
		return
	}
	sent, err := f.notify(ctx, sweep, moves)
	summary.Notified = err == nil
	f.report(summary, start, err)
	if err != nil {
		notified = sent
		f.fail(w, r, "notify", err)
		return
	}
	// The answer is a notification too: what it names is noted after it was written.
	if f.mayRead(r) {
		err = writeJSON(w, http.StatusOK, summary)
	} else {
		err = writeJSON(w, http.StatusOK, summary.withoutNames())
	}
	if err == nil || f.sink != nil {
		notified = sent
	}
}

// sweep lists, and publishes what was found.
func (f *function) sweep(ctx context.Context, sweep *gitpoll.FleetSweep, start, deadline time.Time) (*Summary, []gitpoll.Move, error) {
	targets, skipped, err := f.deps.Targets.Targets(ctx)
	if err != nil {
		return nil, nil, err
	}
	lister := gitpoll.NewWireLister(f.cfg.ListingTimeout)
	defer lister.Close()
	lister.Teach(sweep.Known)
	sweeper := gitpoll.Sweeper{
		Secrets:            f.deps.Secrets,
		Lister:             lister,
		Strategy:           strategy,
		PerHost:            f.cfg.PerHost,
		Failures:           f.failures,
		CredentialFailures: f.credentialFailures,
		Throttles:          sweep.Throttles,
		Until:              deadline.Add(-min(endBefore, time.Until(deadline)/2)),
		Ending:             host.Draining(ctx),
	}
	results := append(sweeper.Sweep(ctx, targets), skipped...)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	// Sources that were re-pointed or removed meanwhile must not get what was found for their old selves.
	now, skippedNow, err := f.deps.Targets.Targets(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range skippedNow {
		now = append(now, s.Target)
	}
	published, err := sweep.Publish(ctx, results, now, lister.Learned(), f.cfg.MaxMoves)
	if err != nil {
		return nil, nil, err
	}
	return summarize(f.cfg.Fleet, sweep.Number, results, published, time.Since(start)), published.Moves, nil
}

// end notes what was notified and gives the lease back, also when the tick was cancelled.
func (f *function) end(ctx context.Context, sweep *gitpoll.FleetSweep, notified []gitpoll.Move) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := sweep.End(ctx, notified); err != nil {
		f.tel.Log.Error("what was notified could not be noted; it will be notified again", "sweep", sweep.Number, "error", err)
	}
}

// skip answers a tick that another one serves.
func (f *function) skip(w http.ResponseWriter, outcome string, why error) {
	f.sweeps.WithLabelValues(outcome).Inc()
	f.tel.Log.Info("not swept", "error", why)
	_ = writeJSON(w, http.StatusOK, map[string]string{"skipped": why.Error()}) // nothing hangs on the answer
}

// fail answers a tick that did not come to its end. What went wrong may name sources, and is for those who may read names.
func (f *function) fail(w http.ResponseWriter, r *http.Request, doing string, err error) {
	f.sweeps.WithLabelValues("failed").Inc()
	f.tel.Log.Error("sweep failed", "doing", doing, "error", err)
	w.Header().Set("Retry-After", "30")
	text := doing + " failed"
	if f.mayRead(r) {
		text = doing + ": " + err.Error()
	}
	_ = writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": text}) // the caller is gone or will see
}

func writeJSON(w http.ResponseWriter, code int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(append(body, '\n')); err != nil {
		return err
	}
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
