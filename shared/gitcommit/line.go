package gitcommit

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// maxLine is how many commits OnFirstParentLine walks before it gives up.
const maxLine = 100_000

// OnFirstParentLine says whether id is on the line of first parents from the tip back to stop. What stop stands on is
// not looked at, also where the branch was rewritten and does not lead to stop; a zero stop means back to the first commit. No tree and no file is fetched, and nothing at all where the tip
// itself answers. A remembered tip that does not show id is read anew, so false is never due to a stale memory.
func (r *Repository) OnFirstParentLine(ctx context.Context, tip Tip, stop, id ObjectID) (bool, error) {
	found, err := r.onLine(ctx, tip.ID, stop, id)
	if tip.Remembered && (err != nil || !found) {
		if tip, err = r.Tip(ctx, tip.Branch); err != nil {
			return false, err
		}
		found, err = r.onLine(ctx, tip.ID, stop, id)
	}
	if err != nil {
		return false, fmt.Errorf("look for %s on refs/heads/%s of %s: %w", id.Short(), tip.Branch, r.endpoint.HostLabel(), err)
	}
	return found, nil
}

func (r *Repository) onLine(ctx context.Context, tip, stop, id ObjectID) (bool, error) {
	if id.IsZero() {
		return false, nil
	}
	depth := 64
	for at, steps := tip, 0; !at.IsZero(); steps++ {
		switch {
		case at == id:
			return true, nil
		case at == stop:
			return false, nil
		case steps == maxLine:
			return false, fmt.Errorf("neither it nor %s within %d commits", stop.Short(), maxLine)
		}
		object, found := r.inMemory(at)
		if !found {
			fetched, err := r.fetchLine(ctx, tip, at, stop, steps+depth, depth)
			if err != nil {
				return false, err
			}
			r.remember(fetched)
			if object, found = fetched[at]; !found {
				if stop.IsZero() {
					return false, fmt.Errorf("commit %s: %w", at.Short(), errIncomplete)
				}
				return false, nil // the server sends nothing that stop stands on
			}
			depth *= 8
		}
		commit, err := gitobject.ParseCommit(object.Data)
		if err != nil {
			return false, err
		}
		at = ObjectID{}
		if len(commit.Parents) > 0 {
			at = commit.Parents[0]
		}
	}
	return false, nil
}

func (r *Repository) inMemory(id ObjectID) (gitobject.Object, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, found := r.known[id]
	return o, found && o.Type == gitobject.CommitType
}

// fetchLine fetches commits from at backwards. Servers that give out only what refs point at are asked from the tip.
func (r *Repository) fetchLine(ctx context.Context, tip, at, stop ObjectID, fromTip, fromHere int) (map[ObjectID]gitobject.Object, error) {
	for {
		ability := r.ability.Load()
		request := gitwire.FetchRequest{Format: tip.Format(), Want: []ObjectID{at}, Depth: fromHere}
		if !stop.IsZero() {
			request.Have = []ObjectID{stop}
		}
		if ability != byWhole {
			request.Filter = gitwire.NoTrees
		}
		fetch := r.pool.Fetch
		if ability == byOld {
			request.Want, request.Depth = []ObjectID{tip}, fromTip
			fetch = r.pool.FetchOld
		}
		bounded, cancel := context.WithTimeout(ctx, r.options.RequestTimeout)
		objects, err := fetch(bounded, r.endpoint, r.credentials, request)
		cancel()
		if err == nil || !refusesThis(err) {
			return objects, err
		}
		if ability+1 == abilities {
			if errors.Is(err, gitwire.ErrNotServed) {
				return nil, fmt.Errorf("%w: %w", ErrGone, err)
			}
			return nil, err
		}
		r.stepDown(ability, err)
	}
}
