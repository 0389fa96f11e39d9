package watchcommit

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	maxUnresolved = 1000             // changes without an author that are looked up again
	lateEvery     = 10 * time.Second // how often
)

// unresolved are changes that were committed without an author because their grace was over. They are looked up again
// for as long as facts are kept, so that an operator can see by how much the grace was too short. This process
// remembers them; another one starts anew, and only counts less.
type unresolved struct {
	mu     sync.Mutex
	open   []openChange
	asked  time.Time
	latest map[string]lateness // by target
}

type openChange struct {
	query  queue.AuthorQuery
	target string
	over   time.Time // when its grace was over
}

// lateness is by how much the latest late fact missed the grace, and when it was noticed.
type lateness struct {
	by time.Duration
	at time.Time
}

// add remembers changes that went without an author. Their round must be over: until then its drain goes on writing to
// what their queries lead to.
func (u *unresolved) add(changes []openChange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = append(u.open, changes[:min(len(changes), maxUnresolved-len(u.open))]...)
}

// due takes out what is to be looked up now, and drops what no fact can come for any more.
func (u *unresolved) due(now time.Time, ttl time.Duration) []openChange {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.asked) < lateEvery {
		return nil
	}
	u.asked = now
	var out []openChange
	for _, c := range u.open {
		if now.Sub(c.over) < ttl {
			out = append(out, c)
		}
	}
	u.open = nil
	return out
}

// back puts changes back that are still without an author.
func (u *unresolved) back(changes []openChange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = append(changes, u.open...)
	u.open = u.open[:min(len(u.open), maxUnresolved)]
}

func (u *unresolved) note(target string, by time.Duration, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[string]lateness{}
	}
	if before := u.latest[target]; by >= before.by || at.Sub(before.at) > time.Hour {
		u.latest[target] = lateness{by, at}
	}
}

// inTime forgets that facts missed the target's grace: every author of its latest changes was known before it was over.
func (u *unresolved) inTime(target string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.latest, target)
}

// late is by how much facts missed the target's grace in the last hour; 0 when none did.
func (u *unresolved) late(target string, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.latest[target]; now.Sub(l.at) < time.Hour {
		return l.by
	}
	return 0
}

// countLate looks the changes up again that went without an author, and counts those that have one now. Their commits
// stay as they are: history is not rewritten.
func (f *Function) countLate(ctx context.Context) {
	now := f.now()
	open := f.unresolved.due(now, f.cfg.FactTTL)
	if len(open) == 0 {
		return
	}
	queries := make([]queue.AuthorQuery, len(open))
	for i := range open {
		queries[i] = open[i].query
	}
	answers, err := f.authors.LookupAuthors(ctx, queries)
	if err != nil {
		f.unresolved.back(open) // whether they have one is not known
		return
	}
	still := open[:0]
	for i, c := range open {
		if answers[i].Result == attribution.Absent {
			still = append(still, c)
			continue
		}
		by := now.Sub(c.over)
		f.unresolved.note(c.target, by, now)
		f.measures.late.Inc()
		f.log.Warn("the author of a change became known after its grace was over: the API server's --audit-webhook-batch-max-wait must be well below the grace (attributionGrace of the target, else ATTRIBUTION_GRACE)",
			"target", c.target, "route", c.query.AuditRoute, "late", by.Round(time.Second).String())
	}
	f.unresolved.back(still)
}
