package watchcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	bookkeeping = 10 * time.Second // for what follows a push, also when the request is over
	maxPush     = 1000             // steps of one push; more make further pushes
)

// portion is the part of a shard's steps that can be passed now.
type portion struct {
	shard *shard
	steps []*change
	to    string // where the cursor goes then
	// left are the steps that the cursor does not cover yet, and from is that cursor: both as of the last prepare.
	left []*change
	from string
}

// push is one try to land what is ready.
type push struct {
	portions []*portion
	moves    []queue.CursorMove
	changes  []history.Change // that the commits hold, by commit
	covers   [][]int
	owners   []*target // of each commit
	drift    map[*target][]string
}

// ready is the settled beginning of each shard. What is held back waits, unless a CommitRequest asks for it or for
// something behind it.
func (d *drain) ready() *push {
	p := &push{}
	now, room := d.now(), maxPush
	for _, s := range d.shards() {
		if s.target.blocked || s.target.keyless || s.failed != nil && len(s.pending) == 0 {
			continue
		}
		settled, n := 0, 0
		for settled < len(s.pending) && (s.pending[settled].settled || s.pending[settled].nothing) {
			if s.pending[settled].request != nil {
				n = settled + 1
			}
			settled++
		}
		for n < min(settled, room) && (s.pending[n].nothing || s.pending[n].replay != nil || now.Sub(s.pending[n].seenAt) >= s.target.hold) {
			n++
		}
		if n == 0 {
			continue
		}
		part := &portion{shard: s, steps: s.pending[:n], to: s.pending[n-1].rv}
		if n == len(s.pending) {
			part.to = s.seen
		}
		p.portions = append(p.portions, part)
		room -= n
	}
	return p
}

// matters says whether anything in it can change a file.
func (p *push) matters() bool {
	for _, part := range p.portions {
		for _, c := range part.steps {
			if !c.nothing {
				return true
			}
		}
	}
	return false
}

// land pushes what is ready and then moves the cursors: act, then remember.
func (d *drain) land(ctx context.Context, last bool) error {
	for p := d.ready(); p.matters(); p = d.ready() {
		built, outcome, err := d.branch.repo.Land(ctx, d.branch.name, func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
			return d.prepare(ctx, tip, p)
		})
		d.measures.pushes.WithLabelValues(string(outcome.Class)).Inc()
		if errors.Is(err, errContentGone) {
			d.again = true
			return nil
		}
		if err != nil {
			return errors.Join(d.failed(ctx, err), d.giveUpIntent(ctx, outcome, built))
		}
		err = d.remember(ctx, p, built)
		d.tellDrift(ctx, p, built)
		if err != nil || d.again {
			return err
		}
	}
	return d.passQuietly(ctx, last)
}

// prepare makes the commits for a tip and stores the intent to push them. It is called anew for each tip: what was
// pushed meanwhile, by this drain or another, is settled and left out.
func (d *drain) prepare(ctx context.Context, tip gitcommit.Tip, p *push) (*gitcommit.Built, error) {
	tip, err := d.settle(ctx, tip)
	if err != nil {
		return nil, err
	}
	if err := d.leaveOut(ctx, p); err != nil {
		return nil, err
	}
	tree, err := d.readTree(ctx, tip, p)
	if err != nil {
		return nil, err
	}
	commits, err := d.compose(tree, p)
	if err != nil {
		return nil, err
	}
	built, err := d.build(ctx, tip, commits, p)
	if err != nil {
		return nil, err
	}
	p.move()
	if built.Empty() {
		return nil, nil
	}
	intent := queue.Intent{At: d.now(), New: built.New.String(), Moves: p.moves, Commits: d.lastCommits(p, built)}
	if !built.Old.IsZero() {
		intent.Old = built.Old.String()
	}
	return built, ofStore(d.store.StoreIntent(ctx, d.branch.id, d.token, intent))
}

// giveUpIntent drops the intent of a push that was refused for good. Where it may yet land, the intent stays.
func (d *drain) giveUpIntent(ctx context.Context, outcome gitcommit.Outcome, built *gitcommit.Built) error {
	switch outcome.Class {
	case gitcommit.Policy, gitcommit.Auth, gitcommit.Configuration, gitcommit.TooLarge:
	default:
		return nil
	}
	if built == nil || built.Empty() || outcome.Unsure {
		return nil
	}
	return d.store.DropIntents(ctx, d.branch.id, built.New.String())
}

// leaveOut drops from the portions what the cursors cover. It reads the cursors after the intents were settled.
func (d *drain) leaveOut(ctx context.Context, p *push) error {
	keys := make([]queue.Shard, len(p.portions))
	for i, part := range p.portions {
		keys[i] = part.shard.key
	}
	cursors, err := d.store.WatchCursors(ctx, keys)
	if err != nil {
		return ofStore(err)
	}
	for i, part := range p.portions {
		if part.from = cursors[i]; !part.leaveOut() {
			d.again = true
		}
	}
	return nil
}

// leaveOut leaves the steps that the cursor does not cover. It answers false when another drain's cursor is not on our
// line, so that the shard has to begin anew; then nothing is left.
func (part *portion) leaveOut() bool {
	s := part.shard
	part.left = nil
	replay := slices.IndexFunc(part.steps, func(c *change) bool { return c.replay != nil })
	switch {
	case part.from == s.cursor:
	case part.from == "", s.cursor != "" && isLater(s.cursor, part.from):
		return false
	case replay >= 0 && isLater(part.steps[replay].rv, part.from):
		return false // theirs is of an older state than ours, and only a new one can tell the difference
	case replay >= 0:
		replay = -1
	}
	for n, c := range part.steps {
		if n == replay || part.from == "" || isLater(c.rv, part.from) {
			part.left = part.steps[n:]
			break
		}
	}
	return true
}

// move says where the cursors go when the commits have landed.
func (p *push) move() {
	p.moves = nil
	for _, part := range p.portions {
		if len(part.left) == 0 || part.shard.target.blocked {
			continue
		}
		m := queue.CursorMove{Shard: part.shard.key, From: part.from, To: part.to, Objects: map[string]queue.Object{}}
		for _, c := range part.left {
			if c.replay == nil {
				m.Objects[c.uid] = c.known
				continue
			}
			m.Replayed = true
			m.Objects = make(map[string]queue.Object, len(c.replay.objects))
			for _, mark := range c.replay.objects {
				m.Objects[mark.uid] = mark.known(part.shard.target)
			}
		}
		p.moves = append(p.moves, m)
	}
}

// build makes the chain. A file that cannot be written because something of somebody else's is in its place is left
// out and said; it holds up nothing else.
func (d *drain) build(ctx context.Context, tip gitcommit.Tip, commits []gitcommit.Commit, p *push) (*gitcommit.Built, error) {
	for {
		built, err := d.branch.repo.Build(ctx, tip, commits)
		var conflict *gitcommit.ConflictError
		var path *gitcommit.PathError
		var at string
		switch {
		case errors.As(err, &conflict):
			at = conflict.Path
		case errors.As(err, &path):
			at = path.Path
		default:
			return built, err
		}
		if !without(commits, at) {
			return nil, err
		}
		for i, t := range p.owners {
			for _, n := range p.covers[i] {
				if p.changes[n].Path == at && t.problem == nil {
					t.problem = &kube.Problem{Reason: kube.ReasonInvalidSpec, Message: fmt.Sprintf("%v: rename the object, or remove what is there", err)}
				}
			}
		}
	}
}

// without takes a path out of the commits.
func without(commits []gitcommit.Commit, path string) bool {
	found := false
	for i := range commits {
		var kept []gitcommit.Change
		for _, c := range commits[i].Changes {
			if c.Path == path {
				found = true
			} else {
				kept = append(kept, c)
			}
		}
		commits[i].Changes = kept
	}
	return found
}

// lastCommits is each author's last commit, and each CommitRequest's.
func (d *drain) lastCommits(p *push, built *gitcommit.Built) map[string]string {
	out := map[string]string{}
	for i, id := range built.Commits {
		if id.IsZero() {
			continue
		}
		for _, n := range p.covers[i] {
			if actor := p.changes[n].Actor; actor != nil {
				out[actor.Username] = id.String()
			}
			for _, r := range d.requests {
				if p.changes[n].Request == &r.words {
					out[r.key()] = id.String()
				}
			}
		}
	}
	return out
}

// remember follows a push that has landed, or that was not needed.
func (d *drain) remember(ctx context.Context, p *push, built *gitcommit.Built) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancel()
	if built != nil && !built.Empty() {
		if err := d.store.RememberCommits(ctx, d.branch.id, d.lastCommits(p, built)); err != nil {
			return err
		}
	}
	moved, err := d.store.Pass(ctx, p.moves)
	if err != nil {
		return err
	}
	if built != nil && !built.Empty() {
		if err := d.store.DropIntents(ctx, d.branch.id, built.New.String()); err != nil {
			return err
		}
		d.count(p, built)
	}
	for i := range moved {
		if !moved[i] { // another drain has replayed or gone on: its cursor counts
			d.again = true
		}
	}
	for _, part := range p.portions {
		switch {
		case part.shard.target.blocked:
		case len(part.left) > 0:
			part.shard.pass(len(part.steps), part.to)
		default:
			part.shard.pass(len(part.steps), part.from)
		}
	}
	return d.answerRequests(ctx)
}

func (d *drain) count(p *push, built *gitcommit.Built) {
	now := metav1.NewTime(d.now())
	last := map[*target]*kube.LastCommit{}
	for i, id := range built.Commits {
		if id.IsZero() {
			continue
		}
		d.commits++
		d.changes += len(p.covers[i])
		d.measures.commits.Inc()
		t := p.owners[i]
		if last[t] == nil {
			last[t] = &kube.LastCommit{Time: now}
			t.last = last[t]
		}
		t.last.SHA = id.String()
		t.last.Changes += int64(len(p.covers[i]))
		for _, n := range p.covers[i] {
			d.measures.changes.WithLabelValues(string(p.changes[n].Verb)).Inc()
		}
	}
}

// inOrder are the steps of one target, as the API server made them.
func inOrder(portions []*portion, t *target) []*change {
	var out []*change
	for _, part := range portions {
		if part.shard.target == t {
			out = append(out, part.left...)
		}
	}
	slices.SortStableFunc(out, func(a, b *change) int {
		order, _ := resourceversion.CompareResourceVersion(a.rv, b.rv) // versions that are no numbers stay as they are
		return order
	})
	return out
}
