package gitcommit

import (
	"context"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// Walk shows the commits of the line of first parents to visit, the newest first, until it has seen max of them,
// visit answers false, or the line ends. Only commits are fetched, no tree and no file.
func (r *Repository) Walk(ctx context.Context, tip Tip, max int, visit func(ObjectID, gitobject.Commit) bool) error {
	at := tip.ID
	for steps := 0; steps < max && !at.IsZero(); steps++ {
		object, found := r.inMemory(at)
		if !found {
			fetched, err := r.fetchLine(ctx, tip.ID, at, ObjectID{}, steps+walkDepth, walkDepth)
			if err != nil {
				return fmt.Errorf("read commits of refs/heads/%s of %s: %w", tip.Branch, r.endpoint.HostLabel(), err)
			}
			r.remember(fetched)
			if object, found = fetched[at]; !found {
				return fmt.Errorf("read commits of refs/heads/%s of %s: commit %s: %w", tip.Branch, r.endpoint.HostLabel(), at.Short(), errIncomplete)
			}
		}
		commit, err := gitobject.ParseCommit(object.Data)
		if err != nil {
			return fmt.Errorf("read commits of refs/heads/%s of %s: %w", tip.Branch, r.endpoint.HostLabel(), err)
		}
		if !visit(at, commit) {
			return nil
		}
		at = ObjectID{}
		if len(commit.Parents) > 0 {
			at = commit.Parents[0]
		}
	}
	return nil
}

// walkDepth is how many commits are fetched at a time.
const walkDepth = 256
