package watchcommit

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

const (
	// maxSettles is how often the branch may move while its intents are settled.
	maxSettles = 8
	// intentLife is longer than any push takes, all its repetitions included: a drain ends with its request.
	intentLife = time.Hour
)

var errRestless = errors.New("the branch moves faster than its intents can be settled")

// settle finds out what became of every push that was begun and not remembered, and returns a tip that holds no commit
// which is neither settled nor among the intents: the tip is read before the intents, and again after them when there
// are any, until it stands still. The caller reads the cursors next.
func (d *drain) settle(ctx context.Context, tip gitcommit.Tip) (gitcommit.Tip, error) {
	for range maxSettles {
		intents, err := d.store.Intents(ctx, d.branch.id)
		if err != nil || len(intents) == 0 {
			return tip, ofStore(err)
		}
		fresh, err := d.branch.repo.Tip(ctx, d.branch.name)
		if err != nil {
			return tip, err
		}
		for _, intent := range intents {
			if err := d.settleOne(ctx, fresh, intent); err != nil {
				return tip, err
			}
		}
		if fresh.ID == tip.ID {
			return fresh, nil
		}
		tip = fresh
	}
	return tip, errRestless
}

func (d *drain) settleOne(ctx context.Context, tip gitcommit.Tip, intent queue.Intent) error {
	old, commit := parseID(intent.Old), parseID(intent.New)
	landed, err := d.branch.repo.Contains(ctx, tip, old, commit)
	switch {
	case err != nil:
		return err
	case landed:
		d.measures.settles.WithLabelValues("landed").Inc()
		if err := d.store.RememberCommits(ctx, d.branch.id, intent.Commits); err != nil {
			return ofStore(err)
		}
		if _, err := d.store.Pass(ctx, intent.Moves); err != nil {
			return ofStore(err)
		}
	case tip.ID == old && d.now().Sub(intent.At) < intentLife:
		return nil // it may still land: whoever stored it may be about to push
	default:
		d.measures.settles.WithLabelValues("dropped").Inc()
	}
	return ofStore(d.store.DropIntents(ctx, d.branch.id, intent.New))
}
