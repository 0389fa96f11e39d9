package gitcommit

import (
	"context"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// walkDepth is how many commits are fetched at a time.
const walkDepth = 256

// Walk shows the tip's history to visit as git log does, each time the newest by committer date of those that
// something shown stands on, until it has seen max commits, visit answers false, or there are no more. Only commits are fetched, no
// tree and no file.
func (r *Repository) Walk(ctx context.Context, tip Tip, max int, visit func(ObjectID, gitobject.Commit) bool) error {
	type candidate struct {
		id     ObjectID
		commit gitobject.Commit
	}
	var next []candidate // whose successors are shown, in no order
	seen := map[ObjectID]bool{{}: true}
	add := func(id ObjectID) error {
		if seen[id] {
			return nil
		}
		commit, sent, err := r.ancestor(ctx, tip.ID, id, ObjectID{}, len(seen), walkDepth)
		if err == nil && !sent {
			err = fmt.Errorf("commit %s: %w", id.Short(), errIncomplete)
		}
		if err != nil {
			return fmt.Errorf("read commits of refs/heads/%s of %s: %w", tip.Branch, r.endpoint.HostLabel(), err)
		}
		seen[id] = true
		next = append(next, candidate{id, commit})
		return nil
	}
	if err := add(tip.ID); err != nil {
		return err
	}
	for range max {
		newest := -1
		for i, c := range next {
			if newest < 0 || c.commit.Committer.When.After(next[newest].commit.Committer.When) {
				newest = i
			}
		}
		if newest < 0 {
			return nil
		}
		c := next[newest]
		next = append(next[:newest], next[newest+1:]...)
		if !visit(c.id, c.commit) {
			return nil
		}
		for _, parent := range c.commit.Parents {
			if err := add(parent); err != nil {
				return err
			}
		}
	}
	return nil
}
