// Package watchcommit writes what changes in a cluster to git, with who changed it.
//
// It is an http.Handler: any POST, a tick or a CloudEvent, means "look now". What there is to do is decided by the
// watches, resumed at the cursors, so a request that is lost or comes twice costs time only. A drain brings one branch
// up to date: drain.go tells it as a story.
//
// It keeps nothing in memory between requests but connections. Any number of copies may run at once, and each may die
// at any point.
package watchcommit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Deps are what a Function works with. Pool nil makes one.
type Deps struct {
	Store     *queue.RedisStore
	Cluster   *kube.Client
	Pool      *gitwire.Pool
	Telemetry *telemetry.Telemetry
}

// leases gives branches to one drain at a time. It saves work and nothing else: drains stay right without it.
type leases interface {
	AcquireLease(ctx context.Context, branchID string, ttl time.Duration) (token int64, err error)
	TakeLease(ctx context.Context, branchID string, ttl time.Duration) (token int64, err error)
	RenewLease(ctx context.Context, branchID string, token int64, ttl time.Duration) (ours bool, err error)
	ReleaseLease(ctx context.Context, branchID string, token int64, ttl time.Duration) (queue.Release, error)
	YieldLease(ctx context.Context, branchID string, token int64) error
}

// Function is the handler.
type Function struct {
	cfg      Config
	store    *queue.RedisStore
	leases   leases
	authors  *queue.AttributionIndex
	commands *queue.CommandAuthorStore
	cluster  *kube.Client
	pool     *gitwire.Pool
	log      *slog.Logger
	measures measures
	now      func() time.Time
	turns    turns
	// replayBytes is how much content of a replay is kept in memory before it is written ahead.
	replayBytes int

	unresolved unresolved

	mu        sync.Mutex
	clusterID types.UID // the cluster does not change in a process's life
}

// New makes the function. It sends nothing.
func New(cfg Config, deps Deps) (*Function, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Store == nil || deps.Cluster == nil || deps.Telemetry == nil {
		return nil, errors.New("watchcommit needs a store, a cluster and telemetry")
	}
	if deps.Pool == nil {
		deps.Pool = &gitwire.Pool{}
	}
	return &Function{
		cfg: cfg, store: deps.Store, leases: deps.Store, cluster: deps.Cluster, pool: deps.Pool, now: time.Now, replayBytes: maxBytes / 2,
		authors:  deps.Store.AttributionIndex(cfg.FactTTL).WithClockSkew(cfg.ClockSkew),
		commands: deps.Store.CommandAuthorStore(),
		log:      deps.Telemetry.Log, measures: newMeasures(deps.Telemetry),
	}, nil
}

// Result is the answer to a request.
type Result struct {
	Branches int `json:"branches"` // that were asked for
	Busy     int `json:"busy"`     // of them, drained by another request, which goes round once more for this one
	Failed   int `json:"failed"`
	Changes  int `json:"changes"` // that were pushed
	Commits  int `json:"commits"`
	Waiting  int `json:"waiting"` // seen, and not in git yet
	// LagSeconds is for how long the longest waiting of them has waited.
	LagSeconds float64 `json:"lagSeconds"`
}

func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST a tick or a CloudEvent", http.StatusMethodNotAllowed)
		return
	}
	drain, wake := f.Drain, readWake(r)
	if !wake.Tick {
		drain = func(ctx context.Context, wake Wake) (Result, error) { return f.turns.do(ctx, wake, f.Drain) }
	}
	result, err := drain(r.Context(), wake)
	status := http.StatusOK
	if err != nil {
		f.log.Error("drain failed", "error", err)
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "10")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // whoever asked may be gone
}

// Drain brings up to date what the wake concerns, all branches at once. The error joins those of the branches.
func (f *Function) Drain(ctx context.Context, wake Wake) (Result, error) {
	began := f.now()
	tidy := f.tidyRequests(ctx, wake)
	targets, err := f.targets(ctx)
	if err != nil {
		return Result{}, err
	}
	tidy(targets)
	all := slices.DeleteFunc(branches(targets), func(b *branch) bool { return !wake.wakes(b) })
	for _, t := range targets {
		if t.branch == nil {
			f.report(ctx, t)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	result := Result{Branches: len(all)}
	var failed error
	for _, b := range all {
		wg.Go(func() {
			d := &drain{Function: f, branch: b, log: f.log.With("repository", b.host), listen: f.listens(ctx, began, wake)}
			err := d.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				result.Failed++
				failed = errors.Join(failed, fmt.Errorf("%s: %w", b.host, err))
			}
			if d.busy {
				result.Busy++
			}
			result.Changes += d.changes
			result.Commits += d.commits
			result.Waiting += d.waiting()
			result.LagSeconds = max(result.LagSeconds, d.lag().Seconds())
		})
	}
	wg.Wait()
	f.measures.drains.WithLabelValues(outcomeOf(failed)).Inc()
	// Where nothing scrapes metrics, as on Lambda, an alarm reads this line.
	f.log.Info("drained", "branches", result.Branches, "busy", result.Busy, "failed", result.Failed,
		"changes", result.Changes, "commits", result.Commits, "waiting", result.Waiting, "lagSeconds", result.LagSeconds)
	return result, failed
}

// listens is until when the drains listen. Ticks listen for the window, but leave in time to finish before their
// request's deadline; wakes catch up and leave, which is the zero time.
func (f *Function) listens(ctx context.Context, began time.Time, wake Wake) time.Time {
	if !wake.Tick || f.cfg.Window == 0 {
		return time.Time{}
	}
	until := began.Add(f.cfg.Window)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-finish).Before(until) {
		until = deadline.Add(-finish)
	}
	return until
}

// targets lists the valid targets. The others have their status written.
func (f *Function) targets(ctx context.Context) ([]*target, error) {
	cluster, err := f.clusterUID(ctx)
	if err != nil {
		return nil, err
	}
	var good []kube.GitTarget
	var bad []kube.InvalidTarget
	if f.cfg.TargetsFile != "" {
		good, bad, err = kube.FileTargets{Path: f.cfg.TargetsFile, Cluster: cluster}.Targets(ctx)
	} else {
		good, bad, err = f.cluster.Targets(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, b := range bad {
		t := f.newTarget(b.Target, string(cluster))
		t.problem = &kube.Problem{Reason: kube.ReasonInvalidSpec, Message: b.Err.Error()}
		f.report(ctx, t)
	}
	var out []*target
	for _, spec := range good {
		out = append(out, f.newTarget(spec, string(cluster)))
	}
	return out, nil
}

func (f *Function) clusterUID(ctx context.Context) (types.UID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clusterID == "" {
		id, err := f.cluster.ClusterUID(ctx)
		if err != nil {
			return "", err
		}
		f.clusterID = id
	}
	return f.clusterID, nil
}

func (f *Function) forgetful(err error) {
	f.log.Warn("the cache of git objects does not help", "error", err)
}

// draining is closed when the process has been asked to end.
func draining(ctx context.Context) <-chan struct{} { return host.Draining(ctx) }
