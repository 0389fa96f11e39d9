package gitcommit

import (
	"context"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// maxAncestors is how many commits Contains looks at before it gives up.
const maxAncestors = 100_000

// Contains says whether id is the tip or one of its ancestors. What stop stands on is not looked at, also where the branch
// was rewritten and does not lead to stop; a zero stop means back to the first commit. Every parent counts: somebody who
// pulls before a push makes what we pushed the second parent of a merge. No tree and no file is fetched, and nothing at
// all where the tip itself answers. A remembered tip that does not show id is read anew, so false is never due to a stale
// memory.
func (r *Repository) Contains(ctx context.Context, tip Tip, stop, id ObjectID) (bool, error) {
	found, err := r.contains(ctx, tip.ID, stop, id)
	if tip.Remembered && (err != nil || !found) {
		if tip, err = r.Tip(ctx, tip.Branch); err != nil {
			return false, err
		}
		found, err = r.contains(ctx, tip.ID, stop, id)
	}
	if err != nil {
		return false, fmt.Errorf("look for %s on refs/heads/%s of %s: %w", id.Short(), tip.Branch, r.endpoint.HostLabel(), err)
	}
	return found, nil
}

// contains goes back breadth first, so that a commit close to the tip is found before a long way is gone.
func (r *Repository) contains(ctx context.Context, tip, stop, id ObjectID) (bool, error) {
	if id.IsZero() {
		return false, nil
	}
	seen := map[ObjectID]bool{{}: true, stop: true}
	for queue := []ObjectID{tip}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		switch {
		case at == id:
			return true, nil
		case seen[at]:
			continue
		case len(seen) > maxAncestors:
			return false, fmt.Errorf("not among %d commits before %s", maxAncestors, stop.Short())
		}
		seen[at] = true
		commit, sent, err := r.ancestor(ctx, tip, at, stop, len(seen), 64+8*len(seen)) // few requests for a long way
		switch {
		case err != nil:
			return false, err
		case !sent && stop.IsZero():
			return false, fmt.Errorf("commit %s: %w", at.Short(), errIncomplete)
		}
		queue = append(queue, commit.Parents...)
	}
	return false, nil
}

// ancestor reads the commit at, which is at most behind steps away from the tip. One that is not known is fetched together
// with the depth commits before it, without those that stop stands on; sent is false when the server has left it out.
func (r *Repository) ancestor(ctx context.Context, tip, at, stop ObjectID, behind, depth int) (c gitobject.Commit, sent bool, err error) {
	object, found := r.inMemory(at)
	if !found {
		fetched, err := r.fetch(ctx, nil, func(ability int32) gitwire.FetchRequest {
			return commitsFrom(ability, tip, at, stop, behind+depth, depth)
		})
		if err != nil {
			return c, false, err
		}
		r.remember(fetched)
		if object, found = fetched[at]; !found {
			return c, false, nil
		}
	}
	c, err = gitobject.ParseCommit(object.Data)
	return c, true, err
}

func (r *Repository) inMemory(id ObjectID) (gitobject.Object, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, found := r.known[id]
	return o, found && o.Type == gitobject.CommitType
}

// commitsFrom asks for commits from at backwards. A server of the old kind gives out only what refs point at, so it is
// asked from the tip.
func commitsFrom(ability int32, tip, at, stop ObjectID, fromTip, fromHere int) gitwire.FetchRequest {
	request := gitwire.FetchRequest{Format: tip.Format(), Want: []ObjectID{at}, Depth: fromHere}
	if !stop.IsZero() {
		request.Have = []ObjectID{stop}
	}
	if ability != byWhole {
		request.Filter = gitwire.NoTrees
	}
	if ability == byOld {
		request.Want, request.Depth = []ObjectID{tip}, fromTip
	}
	return request
}
