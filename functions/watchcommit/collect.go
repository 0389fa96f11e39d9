package watchcommit

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	gatherFor  = 100 * time.Millisecond // after the first change, for more of the same moment
	maxPending = 10_000                 // steps that wait; more are left in the API server
	maxBytes   = 48 << 20               // of their contents
)

// collector takes what the sessions of all shards say.
type collector struct {
	drain    *drain
	watching context.Context
	signals  chan kube.Signal
	draining <-chan struct{}
	fresh    []*change // since the last time
	running  int       // sessions that have not ended
}

// collector starts a session for each shard. They end with watching.
func (d *drain) collector(ctx, watching context.Context) (*collector, error) {
	c := &collector{drain: d, watching: watching, signals: make(chan kube.Signal, 64), draining: draining(watching)}
	for _, s := range d.shards() {
		if s.cursor != "" {
			c.start(s, s.cursor)
		} else if err := c.replay(ctx, s); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// start follows a shard from a version, or replays it: as of s.since, or of now.
func (c *collector) start(s *shard, from string) {
	s.session = c.drain.cluster.NewSession(s.kube, from, s)
	s.session.Since = s.since
	s.caught = false
	c.running++
	go s.session.Run(c.watching, c.signals)
}

// collect returns when there is something to decide: changes have come and their moment has passed, or it is time to
// look for authors again. more is false when the watches are done: everything has been caught up with and nobody
// listens, or the time to listen is over.
func (c *collector) collect(ctx context.Context) (more bool, err error) {
	c.fresh = nil
	wake := time.NewTimer(time.Until(c.drain.nextWork()))
	defer wake.Stop()
	var gathered <-chan time.Time
	for !c.full() {
		if c.drain.listen.IsZero() && c.caughtUp() || c.running == 0 {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-c.watching.Done():
			return false, nil
		case <-c.draining:
			return false, nil
		case <-wake.C:
			return true, nil
		case <-gathered:
			return true, nil
		case signal := <-c.signals:
			if err := c.take(ctx, signal); err != nil {
				return false, err
			}
			if len(c.fresh) > 0 && gathered == nil && !c.drain.listen.IsZero() {
				gathered = time.After(gatherFor)
			}
		}
	}
	// No more is taken until some of it is in git. When nothing can be done before the next look for authors, wait for it.
	if len(c.fresh) == 0 {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-c.watching.Done():
			return false, nil
		case <-c.draining:
			return false, nil
		case <-wake.C:
		}
	}
	return true, nil
}

// full says that no more can be taken before some of it has been passed. Replays under way do not count: they have to come
// to their end, and write ahead instead.
func (c *collector) full() bool {
	steps, bytes := 0, 0
	for _, s := range c.drain.shards() {
		steps += len(s.pending)
		bytes += s.bytes
		if s.replay != nil {
			bytes -= s.replay.bytes
		}
	}
	return steps >= maxPending || bytes >= maxBytes
}

// caughtUp says that every shard has delivered what had happened before the round began.
func (c *collector) caughtUp() bool {
	for _, s := range c.drain.shards() {
		if !s.caught && s.failed == nil {
			return false
		}
	}
	return true
}

func (c *collector) take(ctx context.Context, signal kube.Signal) error {
	s := signal.Session.Tag.(*shard)
	if signal.Session != s.session {
		return nil // of a session that was given up
	}
	switch signal.Kind {
	case kube.Change:
		step, err := newChange(s, signal.Type, signal.Object)
		if err != nil {
			c.drain.log.Warn("an object cannot be written as a file", "target", s.target.spec.Name, "error", err)
		}
		s.append(step)
		c.fresh = append(c.fresh, step)
	case kube.Bookmark:
		s.seen = signal.RV
	case kube.CaughtUp:
		s.caught = true
	case kube.InitialStart:
		return c.drain.startReplay(ctx, s)
	case kube.Initial:
		s.replay.add(signal.Object)
		return c.drain.writeAhead(ctx, s)
	case kube.InitialEnd:
		c.fresh = append(c.fresh, s.endReplay(signal.RV))
		return c.drain.noteReplay(ctx, s, signal.RV)
	case kube.Expired:
		c.running--
		return c.expired(ctx, s, signal.Err)
	case kube.Failed:
		c.running--
		c.drain.fail(ctx, s, signal.Err)
	}
	return nil
}

// expired begins a replay.
func (c *collector) expired(ctx context.Context, s *shard, why error) error {
	if errors.Is(why, kube.ErrAhead) {
		return c.setBack(ctx, s, why)
	}
	c.warn(s, "the API server cannot go on from the cursor: reading back what was seen, then replaying", why)
	return c.replay(ctx, s)
}

// setBack begins anew in a cluster that is older than what its shard was seen at: versions count from there again, so that
// the cursor and the notes say nothing.
func (c *collector) setBack(ctx context.Context, s *shard, why error) error {
	c.warn(s, "the cluster was set back: replaying", why)
	if err := c.drain.store.ForgetShard(ctx, s.key); err != nil {
		return err
	}
	s.cursor, s.since = "", ""
	c.start(s, "")
	return nil
}

func (c *collector) warn(s *shard, message string, why error) {
	c.drain.log.Warn(message, "target", s.target.spec.Name, "resource", s.key.GVR.GroupResource().String(), "cursor", s.cursor, "error", why)
}

// replay begins with what notes say was seen after the cursor and not passed: a new replay knows what there is, not who
// did it. When they lead to a replay that another drain, or a former round, did not bring to an end, that one is repeated
// at its version, so that all that happened since comes from the watch. A shard of which nothing is known yet has nothing
// that single changes could follow: it begins with a replay.
func (c *collector) replay(ctx context.Context, s *shard) error {
	after := s.seen
	if after == "" || isLater(s.since, after) {
		after = s.since
	}
	sights, err := c.drain.store.Sights(ctx, s.key, after)
	if err != nil {
		return err
	}
	s.since = ""
	if len(sights) > 0 {
		err := c.drain.cluster.NewSession(s.kube, "", s).Reach(ctx, sights[len(sights)-1].RV)
		switch {
		case errors.Is(err, kube.ErrAhead):
			return c.setBack(ctx, s, err)
		case err != nil:
			c.drain.fail(ctx, s, err)
			return nil
		}
	}
	if n := slices.IndexFunc(sights, func(sight queue.Sight) bool { return sight.Type == queue.SightReplay }); n >= 0 {
		s.since, sights = sights[n].RV, sights[:n]
	}
	if s.seen != "" {
		if err := c.readBack(ctx, s, sights); err != nil || s.failed != nil {
			return err
		}
	}
	// Changes are judged in their order: those that came before the replay are not later than what it finds.
	if len(c.fresh) > 0 {
		if err := c.drain.note(ctx, c.fresh); err != nil {
			return err
		}
		c.fresh = nil
	}
	c.start(s, "")
	return nil
}

// readBack takes changes that were seen once as if the watch delivered them now.
func (c *collector) readBack(ctx context.Context, s *shard, sights []queue.Sight) error {
	for _, sight := range sights {
		step := &change{
			shard: s, event: watch.EventType(sight.Type), rv: sight.RV, uid: sight.UID, ns: sight.Namespace, name: sight.Name,
			path: s.path(sight.Namespace, sight.Name), dying: true,
		}
		if step.event != watch.Deleted {
			object, err := s.session.ReadBack(ctx, sight.Namespace, sight.Name, sight.RV)
			if errors.Is(err, kube.ErrForgotten) {
				c.drain.measures.forgotten.Inc()
				continue
			}
			if err != nil {
				c.drain.fail(ctx, s, err)
				return nil
			}
			if object == nil || object.GetResourceVersion() != sight.RV || string(object.GetUID()) != sight.UID {
				continue
			}
			if step, err = newChange(s, step.event, object); err != nil {
				continue
			}
		}
		s.append(step)
		c.fresh = append(c.fresh, step)
		c.drain.measures.readBack.Inc()
	}
	return nil
}
