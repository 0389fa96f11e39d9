package watchcommit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	finish    = 5 * time.Second  // what a drain may need between listening and its answer
	catchUp   = 60 * time.Second // the longest that a round without listening may take
	standby   = 2 * time.Second  // between two tries for a lease that another has
	maxRounds = 20               // of one request: a branch that is woken without end is left to the next
)

// drain brings one branch up to date. It is the story of this package:
//
// take the lease, and go round while it cannot be given back: resume each shard at its cursor, collect what its watch
// delivers, note it, look all authors up at once, and land the settled part: push, then move the cursors.
type drain struct {
	*Function
	branch *branch
	log    *slog.Logger
	listen time.Time // zero: catch up and leave

	token    int64
	busy     bool
	again    bool // a shard has to begin anew
	grown    bool // because a resource has begun to be served
	requests []*request
	changes  int
	commits  int
	nameless []openChange // changes that went without an author in this round

	// nextLookup is when the authors that are missing are looked for again.
	nextLookup time.Time
	patience   time.Duration
	nextQuiet  time.Time
	nextAsked  time.Time
	nextTypes  time.Time
}

func (d *drain) run(ctx context.Context) error {
	token, err := d.acquire(ctx)
	if d.busy = err == nil && token == 0; err != nil || d.busy {
		return ofStore(err)
	}
	d.token = token
	ctx, stop := d.keepLease(ctx)
	defer stop()
	for round := 1; ; round++ {
		err := d.round(ctx)
		if errors.Is(err, queue.ErrLeaseLost) || errors.Is(context.Cause(ctx), queue.ErrLeaseLost) {
			d.busy = true
			return nil
		}
		if err != nil && d.tryOthers(ctx, err) {
			continue
		}
		d.reportAll(ctx)
		if err != nil || round >= maxRounds || d.hurried(ctx) {
			return errors.Join(err, d.giveUp(ctx))
		}
		if !d.again {
			release, err := d.leases.ReleaseLease(ctx, d.branch.id, token, d.cfg.Lease)
			if err != nil || release != queue.ReleaseDirty {
				return err
			}
		}
		if !d.grown {
			d.listen = time.Time{}
		}
	}
}

// acquire takes the lease, or tells whoever has it to go round once more. With time to listen it then waits for its turn:
// a drain that has died is followed up as soon as its lease has run out.
func (d *drain) acquire(ctx context.Context) (int64, error) {
	token, err := d.leases.AcquireLease(ctx, d.branch.id, d.cfg.Lease)
	for err == nil && token == 0 && d.now().Add(standby).Before(d.listen) {
		select {
		case <-ctx.Done():
			return 0, nil
		case <-draining(ctx):
			return 0, nil
		case <-time.After(standby):
			token, err = d.leases.TakeLease(ctx, d.branch.id, d.cfg.Lease)
		}
	}
	return token, err
}

// giveUp gives the lease back as it is: a wake that came meanwhile stays noted for the next drain.
func (d *drain) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	return ofStore(d.leases.YieldLease(ctx, d.branch.id, d.token))
}

// hurried says that there is no time for another round: the request's is over, or the process is asked to end.
func (d *drain) hurried(ctx context.Context) bool {
	select {
	case <-draining(ctx):
		return true
	default:
	}
	return timeIsUp(ctx)
}

func timeIsUp(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < finish
}

// round is one time through: every shard from its cursor to the present or, when there is time to listen, to its end.
func (d *drain) round(ctx context.Context) error {
	d.again, d.grown, d.requests, d.nextLookup, d.nextQuiet, d.nextAsked = false, false, nil, time.Time{}, time.Time{}, time.Time{}
	d.nextTypes = d.now().Add(lookForTypesEvery)
	if err := d.begin(ctx); err != nil {
		return err
	}
	end := d.listen
	if end.IsZero() {
		end = d.now().Add(catchUp)
	}
	// Requests that are there now are asked for before the shards are: their authors' changes will have been seen when
	// the shards are caught up with.
	if err := d.ask(ctx); err != nil {
		return err
	}
	watching, stop := context.WithDeadline(ctx, end)
	defer stop()
	c, err := d.collector(ctx, watching)
	if err != nil {
		return err
	}
	told := false
	for {
		more, err := c.collect(ctx)
		if err != nil {
			return err
		}
		if err := d.note(ctx, c.fresh); err != nil {
			return err
		}
		if err := d.lookUp(ctx); err != nil {
			return err
		}
		if err := d.ask(ctx); err != nil {
			return err
		}
		if err := d.land(ctx, !more); err != nil {
			return err
		}
		if more {
			d.lookForTypes(ctx)
		}
		if more && !told && c.caughtUp() {
			told = true
			d.reportNews(ctx)
		}
		if !more || d.again {
			return nil
		}
	}
}

// begin opens the repository and finds out where each shard stands.
func (d *drain) begin(ctx context.Context) error {
	for _, t := range d.branch.targets {
		t.shards, t.missing, t.problem, t.blocked = nil, nil, t.refused, false
	}
	if err := d.open(ctx, d.branch); err != nil {
		return err
	}
	d.branch.sayRefused()
	d.signers(ctx, d.branch)
	if _, known := d.branch.repo.RememberedTip(ctx, d.branch.name); !known {
		if _, err := d.branch.repo.Tip(ctx, d.branch.name); err != nil { // it also tells the kind of ids
			return d.failed(ctx, err)
		}
	}
	if err := d.watches(ctx, d.branch); err != nil {
		return d.failed(ctx, err)
	}
	return nil
}

// keepLease renews the lease while the drain goes on, and ends the drain when it is lost. That saves work; what keeps
// two drains from harming each other is elsewhere.
func (d *drain) keepLease(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(d.cfg.Lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
				ours, err := d.leases.RenewLease(ctx, d.branch.id, d.token, d.cfg.Lease)
				if err == nil && !ours {
					cancel(queue.ErrLeaseLost)
					return
				}
			}
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// shards are those of all targets that can be watched.
func (d *drain) shards() []*shard {
	var out []*shard
	for _, t := range d.branch.targets {
		out = append(out, t.shards...)
	}
	return out
}

func (d *drain) waiting() int {
	n := 0
	for _, s := range d.shards() {
		for _, c := range s.pending {
			if !c.nothing && c.replay == nil {
				n++
			}
		}
	}
	return n
}

// lag is for how long the longest waiting change has waited.
func (d *drain) lag() time.Duration {
	var longest time.Duration
	for _, s := range d.shards() {
		for _, c := range s.pending {
			if !c.nothing && c.replay == nil && !c.seenAt.IsZero() {
				longest = max(longest, d.now().Sub(c.seenAt))
			}
		}
	}
	return longest
}

// failed notes a trouble that concerns every target of the branch.
func (d *drain) failed(ctx context.Context, err error) error {
	problem := problemOf(ctx, err)
	if problem == nil {
		return err
	}
	for _, t := range d.branch.targets {
		if t.problem == nil {
			t.problem = problem
		}
	}
	return err
}

// fail notes a trouble of one shard. The others go on.
func (d *drain) fail(ctx context.Context, s *shard, err error) {
	err = ofCluster(err)
	s.failed = err
	d.log.Warn("a shard cannot be watched", "target", s.target.spec.Name, "resource", s.kube.Resource.GroupVersionResource.GroupResource().String(), "error", err)
	if problem := problemOf(ctx, err); problem != nil && s.target.problem == nil {
		problem.Message = s.kube.Resource.GroupVersionResource.GroupResource().String() + ": " + problem.Message
		s.target.problem = problem
	}
}
