package watchcommit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	maxDeleted = 100             // of the CommitRequests whose time is over, by one tick: it has changes to look for
	askEvery   = 3 * time.Second // CommitRequests are listed this often while a drain listens
	// arrival is what the watches may take to deliver what happened before a request that came while the drain listened.
	arrival = time.Second
	// reviewDelay is how much later than the object's creationTimestamp, which has whole seconds, its admission review
	// may have been recorded. A later record is not of its creation.
	reviewDelay = 5 * time.Second
)

// request is a CommitRequest that is not done.
type request struct {
	object kube.CommitRequest
	target *target
	author string
	words  history.Request
	tagged bool
	known  time.Time // since when this drain knows it
	said   kube.CommitOutcome
}

// key names a request among the authors whose last commits are remembered.
func (r *request) key() string { return "commitrequest " + string(r.object.UID) }

// takesRequests says whether there can be CommitRequests: not where targets come from a file.
func (d *drain) takesRequests() bool { return d.cfg.TargetsFile == "" }

// ask takes up the CommitRequests. One is decided when all its author's changes from before it must have been seen and
// have their authors; then they carry its message and are not held back any longer. The order of changes stays.
func (d *drain) ask(ctx context.Context) error {
	if !d.takesRequests() {
		return nil
	}
	if !d.now().Before(d.nextAsked) {
		d.list(ctx)
	}
	for _, r := range slices.Clone(d.requests) {
		if err := d.take(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// list finds the CommitRequests of the branch that are not done. Changes do not wait for a list that fails.
func (d *drain) list(ctx context.Context) {
	d.nextAsked = d.now().Add(askEvery)
	objects, _, err := d.cluster.PendingCommitRequests(ctx)
	if err != nil {
		d.log.Warn("CommitRequests cannot be read", "error", err)
	}
	slices.SortStableFunc(objects, func(a, b kube.CommitRequest) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, object := range objects {
		if slices.ContainsFunc(d.requests, func(r *request) bool { return r.object.UID == object.UID }) {
			continue
		}
		for _, t := range d.branch.targets {
			if t.spec.Name == object.Spec.TargetRef.Name {
				d.requests = append(d.requests, &request{object: object, target: t, known: d.now(), words: history.Request{
					Namespace: object.Namespace, Name: object.Name, Message: object.Spec.Message,
				}})
			}
		}
	}
}

// tidyRequests lists the CommitRequests for a tick, which knows every target. What it returns is called with the targets
// of after that, so that none is missing that was made together with its request: it answers the requests that name no
// target, and deletes some of those that are done and have stayed for as long as they asked for.
func (f *Function) tidyRequests(ctx context.Context, wake Wake) func([]*target) {
	if f.cfg.TargetsFile != "" || !wake.Tick {
		return func([]*target) {}
	}
	pending, expired, err := f.cluster.PendingCommitRequests(ctx)
	if err != nil {
		f.log.Warn("CommitRequests cannot be read", "error", err)
	}
	return func(targets []*target) {
		f.answerStray(ctx, pending, targets)
		for _, object := range expired[:min(len(expired), maxDeleted)] {
			if err := f.cluster.DeleteCommitRequest(ctx, &object); err != nil {
				f.log.Warn("a CommitRequest whose time is over cannot be deleted", "error", err)
				return // the next tick tries again
			}
		}
	}
}

func (f *Function) answerStray(ctx context.Context, objects []kube.CommitRequest, targets []*target) {
	for _, object := range objects {
		if slices.ContainsFunc(targets, func(t *target) bool { return t.spec.Name == object.Spec.TargetRef.Name }) {
			continue
		}
		err := f.cluster.ReportCommitRequest(ctx, &object, kube.CommitOutcome{
			Reason: kube.ReasonTargetNotFound, Message: "there is no valid GitTarget " + object.Spec.TargetRef.Name,
		})
		if err != nil {
			f.log.Warn("the status of a CommitRequest cannot be written", "error", err)
		}
	}
}

// take decides one request if that is possible now.
func (d *drain) take(ctx context.Context, r *request) error {
	if r.tagged || !r.target.allCaughtUp() || d.now().Sub(r.known) < arrival && !d.listen.IsZero() {
		return nil
	}
	var err error
	if r.author == "" {
		if r.author, err = d.requester(ctx, r); err != nil {
			return err
		}
	}
	sha, err := d.store.LastCommit(ctx, d.branch.id, r.key())
	if err != nil {
		return err
	}
	if sha != "" { // pushed by a drain that could not say so any more
		return d.answer(ctx, r, kube.CommitOutcome{Reason: kube.ReasonPushed, Message: "pushed", SHA: sha, Author: r.author})
	}
	if r.author == "" {
		if d.now().Sub(r.object.CreationTimestamp.Time) > r.target.grace {
			return d.answer(ctx, r, kube.CommitOutcome{Reason: kube.ReasonAuthorUnknown, Message: "no admission review and no audit fact says who made the request: check the webhook of authorcapture"})
		}
		d.say(ctx, r, kube.CommitOutcome{Reason: kube.ReasonWaiting, Message: "waits for the review that says who made the request"})
		return nil
	}
	mine, open := r.changes()
	switch {
	case open > 0:
		d.say(ctx, r, kube.CommitOutcome{Reason: kube.ReasonWaiting, Author: r.author, Message: fmt.Sprintf("%d earlier changes wait for their author", open)})
		return nil
	case len(mine) == 0:
		sha, err := d.store.LastCommit(ctx, d.branch.id, r.author)
		if err != nil {
			return err
		}
		return d.answer(ctx, r, kube.CommitOutcome{Reason: kube.ReasonNothingPending, Message: "none of the author's changes was waiting", SHA: sha, Author: r.author})
	}
	for _, c := range mine {
		c.request = r
	}
	r.tagged = true
	return nil
}

func (t *target) allCaughtUp() bool {
	return !slices.ContainsFunc(t.shards, func(s *shard) bool { return !s.caught && s.failed == nil })
}

// changes are the author's from before the request, and how many from before it may turn out to be.
func (r *request) changes() (mine []*change, open int) {
	end := r.object.CreationTimestamp.Add(time.Second) // it has whole seconds
	for _, s := range r.target.shards {
		for _, c := range s.pending {
			switch {
			case c.nothing || c.replay != nil || c.request != nil || !c.when().Before(end):
			case !c.settled:
				open++
			case c.resolution.Fact.Author == r.author && !r.target.ignores(r.author):
				mine = append(mine, c)
			}
		}
	}
	return mine, open
}

// when is the time of the change: of the request that made it, else what the object says.
func (c *change) when() time.Time {
	if at, err := time.Parse(time.RFC3339Nano, c.resolution.Fact.StageTimestamp); err == nil {
		return at
	}
	at := c.sighting.Created
	for _, m := range c.sighting.Managed {
		if m.Time.After(at) {
			at = m.Time
		}
	}
	return at
}

// requester is who created the request: by the audit fact of its creation, else by its admission review, if that was
// recorded when the object was created. Empty when neither is there.
func (d *drain) requester(ctx context.Context, r *request) (string, error) {
	answers, err := d.authors.LookupAuthors(ctx, []queue.AuthorQuery{{
		AuditRoute: r.target.spec.Spec.AuditRoute, GVR: kube.CommitRequests, UID: r.object.UID, RV: r.object.ResourceVersion, ExactCapable: true,
	}})
	if err != nil {
		return "", err
	}
	if a := answers[0]; a.Result != attribution.Absent && a.Fact.Verb == "create" {
		return a.Fact.Author, nil
	}
	record, err := d.commands.FindCommandAuthor(ctx, r.object.UID)
	if err != nil {
		return "", err
	}
	recorded, err := time.Parse(time.RFC3339Nano, record.RequestedAt)
	if err != nil || recorded.After(r.object.CreationTimestamp.Add(reviewDelay)) {
		return "", nil
	}
	return record.Author, nil
}

// answerRequests tells the requests whose changes have all been passed. Their commits are remembered by now.
func (d *drain) answerRequests(ctx context.Context) error {
	for _, r := range slices.Clone(d.requests) {
		if !r.tagged || r.isPending() {
			continue
		}
		sha, err := d.store.LastCommit(ctx, d.branch.id, r.key())
		outcome := kube.CommitOutcome{Reason: kube.ReasonPushed, Message: "pushed", SHA: sha, Author: r.author}
		if err == nil && sha == "" { // git held it all already
			sha, err = d.store.LastCommit(ctx, d.branch.id, r.author)
			outcome = kube.CommitOutcome{Reason: kube.ReasonNothingPending, Message: "the author's changes were in git already", SHA: sha, Author: r.author}
		}
		if err != nil {
			return err
		}
		if err := d.answer(ctx, r, outcome); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) isPending() bool {
	for _, s := range r.target.shards {
		if slices.ContainsFunc(s.pending, func(c *change) bool { return c.request == r }) {
			return true
		}
	}
	return false
}

// answer writes the request's final status and forgets it and its commit. A status that cannot be written does not stop the
// drain: the next one finds both again.
func (d *drain) answer(ctx context.Context, r *request, outcome kube.CommitOutcome) error {
	d.requests = slices.DeleteFunc(d.requests, func(other *request) bool { return other == r })
	if !d.say(ctx, r, outcome) || outcome.Reason != kube.ReasonPushed {
		return nil
	}
	return d.store.ForgetCommit(ctx, d.branch.id, r.key())
}

func (d *drain) say(ctx context.Context, r *request, outcome kube.CommitOutcome) bool {
	if r.said == outcome {
		return true
	}
	r.said = outcome
	err := d.cluster.ReportCommitRequest(ctx, &r.object, outcome)
	if err != nil {
		d.log.Warn("the status of a CommitRequest cannot be written", "target", r.target.spec.Name, "error", err)
	}
	return err == nil
}
