package watchcommit

import (
	"context"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	firstPatience = 300 * time.Millisecond // until authors are looked for again
	maxPatience   = 3 * time.Second
)

// note stores what was seen before anything is decided about it: from now on it can be read back when the API server
// forgets, and the grace counts. It also learns what is known of the objects.
func (d *drain) note(ctx context.Context, fresh []*change) error {
	var sights []queue.Sight
	now := d.now()
	for _, c := range fresh {
		if c.replay == nil {
			sights = append(sights, queue.Sight{
				Shard: c.shard.key, RV: c.rv, UID: c.uid, Namespace: c.ns, Name: c.name, Type: string(c.event), SeenAt: now,
			})
		}
	}
	noted, err := d.store.NoteSights(ctx, sights)
	if err != nil {
		return err
	}
	for _, c := range fresh {
		known := c.shard.objects
		if c.replay != nil {
			for _, m := range c.replay.objects {
				known[m.uid] = m.known(c.shard.target)
			}
			continue
		}
		before, seen := known[c.uid]
		if !seen {
			before = noted[0].Known
		}
		c.seenAt, noted = noted[0].SeenAt, noted[1:]
		c.known = c.after(before)
		known[c.uid] = c.known
	}
	if len(fresh) > 0 {
		d.patience, d.nextLookup = firstPatience, time.Time{}
	}
	return nil
}

// noteReplay stores at which version a shard's replay found what there is. Whoever takes over before it is in git repeats
// it at that version, and names who changed what since.
func (d *drain) noteReplay(ctx context.Context, s *shard, rv string) error {
	_, err := d.store.NoteSights(ctx, []queue.Sight{{Shard: s.key, RV: rv, Type: queue.SightReplay, SeenAt: d.now()}})
	return err
}

// lookUp asks once for the authors of everything that waits. A change is settled when its author is certain, or when
// its grace is over. An error of the store is no answer: nothing is settled by it.
func (d *drain) lookUp(ctx context.Context) error {
	now := d.now()
	if now.Before(d.nextLookup) {
		return nil
	}
	var waiting []*change
	var queries []queue.AuthorQuery
	for _, s := range d.shards() {
		for _, c := range s.pending {
			if !c.settled && !c.nothing && !now.Before(c.askAfter) {
				waiting, queries = append(waiting, c), append(queries, c.query())
			}
		}
	}
	if len(queries) == 0 {
		d.nextLookup = d.nextAsk(now)
		return nil
	}
	answers, err := d.authors.LookupAuthors(ctx, queries)
	if err != nil {
		return err
	}
	for i, c := range waiting {
		t := c.shard.target
		over := c.seenAt.Add(t.grace)
		if !certain(answers[i]) && now.Before(over) {
			if answers[i].Provisional { // it can only change until the grace is over, and is asked for again then
				c.askAfter = over
			}
			continue
		}
		c.settled, c.resolution = true, answers[i]
		if answers[i].Result == attribution.Absent {
			t.nobody = true
			if len(d.nameless) < maxUnresolved {
				d.nameless = append(d.nameless, openChange{queries[i], t.spec.Name, over})
			}
		} else {
			t.facts = true
		}
		d.measures.settled.WithLabelValues(string(answers[i].Result)).Inc()
		d.measures.wait.Observe(now.Sub(c.seenAt).Seconds())
	}
	d.nextLookup = d.nextAsk(now)
	d.patience = min(d.patience*3/2, maxPatience)
	return nil
}

// nextAsk is when there is an author to look for again: after some patience, but when a grace ends if that is sooner,
// and only then for what can wait for it.
func (d *drain) nextAsk(now time.Time) time.Time {
	next := now.Add(time.Hour)
	for _, s := range d.shards() {
		for _, c := range s.pending {
			if c.settled || c.nothing {
				continue
			}
			ask := now.Add(d.patience)
			if over := c.seenAt.Add(s.target.grace); over.Before(ask) {
				ask = over
			}
			if c.askAfter.After(ask) {
				ask = c.askAfter
			}
			if ask.Before(next) {
				next = ask
			}
		}
	}
	return next
}

// nextWork is when there is something to do though nothing happens.
func (d *drain) nextWork() time.Time {
	now := d.now()
	next := now.Add(time.Hour)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, s := range d.shards() {
		if _, to := s.quiet(); to != s.cursor {
			sooner(d.nextQuiet)
		}
		for _, c := range s.pending {
			switch due := c.seenAt.Add(s.target.hold); {
			case c.nothing || c.replay != nil || s.target.blocked:
			case !c.settled:
				sooner(d.nextLookup)
			case due.After(now):
				sooner(due)
			}
		}
	}
	if d.takesRequests() {
		sooner(d.nextAsked)
	}
	if !d.listen.IsZero() && len(d.unserved()) > 0 {
		sooner(d.nextTypes)
	}
	return next
}
