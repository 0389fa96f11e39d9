package watchcommit

import (
	"context"
	"fmt"
	"maps"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
)

// parseID reads an id that this package stored; the zero id for an empty or damaged one.
func parseID(text string) gitcommit.ObjectID {
	id, err := gitobject.ParseID(text)
	if err != nil {
		return gitcommit.ObjectID{}
	}
	return id
}

// tree is what the branch holds at the paths that matter, and what the commits made so far do to them.
type tree struct {
	files map[string]gitcommit.Entry
	now   map[string]gitcommit.ObjectID // zero: removed
	drift map[*target][]string          // files that somebody else has changed, and the commits replace
}

func (t *tree) at(path string) (gitcommit.ObjectID, bool) {
	if id, changed := t.now[path]; changed {
		return id, !id.IsZero()
	}
	e, exists := t.files[path]
	return e.ID, exists
}

// readTree looks up the files that the portions may touch. For replays that is their whole folder, by its trees.
func (d *drain) readTree(ctx context.Context, tip gitcommit.Tip, p *push) (*tree, error) {
	var paths []string
	t := &tree{files: map[string]gitcommit.Entry{}, now: map[string]gitcommit.ObjectID{}, drift: map[*target][]string{}}
	for _, part := range p.portions {
		if len(part.left) > 0 {
			paths = append(paths, part.shard.target.file(ownerFile))
		}
		for _, c := range part.left {
			switch {
			case c.replay != nil:
				files, err := d.branch.repo.Files(ctx, tip, part.shard.folder())
				if err != nil {
					return nil, err
				}
				maps.Copy(t.files, files)
			case !c.nothing:
				paths = append(paths, c.path)
			}
		}
	}
	if tip.ID.IsZero() || len(paths) == 0 {
		return t, nil
	}
	files, err := d.branch.repo.Entries(ctx, tip, paths)
	if err != nil {
		return nil, err
	}
	maps.Copy(t.files, files)
	return t, nil
}

// compose makes the commits of every target, one after the other, each in the order of its changes.
func (d *drain) compose(tree *tree, p *push) ([]gitcommit.Commit, error) {
	p.changes, p.covers, p.owners, p.drift = nil, nil, nil, tree.drift
	var commits []gitcommit.Commit
	for _, t := range d.branch.targets {
		steps := inOrder(p.portions, t)
		if len(steps) == 0 || !d.ownsFolder(t, tree) {
			continue
		}
		changes, err := d.decide(steps, tree)
		if err != nil {
			return nil, err
		}
		for i, c := range history.Commits(changes, t.policy(), d.now()) {
			if _, named := tree.at(t.file(ownerFile)); i == 0 && !named {
				c.Changes = append(c.Changes, gitcommit.Change{Path: t.file(ownerFile), Content: []byte(t.owner)})
				tree.now[t.file(ownerFile)] = d.branch.repo.BlobID([]byte(t.owner))
			}
			c.Under, c.Signer = t.spec.Spec.Repository.Path, t.signer
			covers := make([]int, len(c.Covers))
			for k, n := range c.Covers {
				covers[k] = len(p.changes) + n
			}
			commits, p.covers, p.owners = append(commits, c.Commit), append(p.covers, covers), append(p.owners, t)
		}
		p.changes = append(p.changes, changes...)
	}
	return commits, nil
}

// ownsFolder says whether the target may write its folder: it is nobody's, or its own.
func (d *drain) ownsFolder(t *target, tree *tree) bool {
	id, named := tree.at(t.file(ownerFile))
	t.blocked = named && id != d.branch.repo.BlobID([]byte(t.owner))
	if t.blocked {
		t.problem = &kube.Problem{
			Reason:  kube.ReasonPathOwned,
			Message: fmt.Sprintf("%s names another owner: choose another path, or remove the file if that owner is gone", t.file(ownerFile)),
		}
	}
	return !t.blocked
}

// decide is what the steps do to the tree. A step that leaves a file as it is, is nothing.
func (d *drain) decide(steps []*change, tree *tree) ([]history.Change, error) {
	var out []history.Change
	for _, c := range steps {
		if c.replay != nil {
			changes, err := c.replay.changes(c.rv, tree)
			if err != nil {
				return nil, err
			}
			for _, h := range changes {
				tree.now[h.Path] = gitcommit.ObjectID{}
				if h.Verb != history.Delete {
					tree.now[h.Path] = c.replay.objects[h.Path].blob
				}
			}
			out = append(out, changes...)
			continue
		}
		id, exists := tree.at(c.path)
		switch {
		case c.nothing, c.dying && !exists, !c.dying && exists && id == c.blob:
			continue
		case c.dying:
			out = append(out, c.history(history.Delete))
		case exists:
			out = append(out, c.history(history.Update))
		default:
			out = append(out, c.history(history.Create))
		}
		if _, ours := tree.now[c.path]; !ours && exists && c.expected != "" && id.String() != c.expected {
			tree.drift[c.shard.target] = append(tree.drift[c.shard.target], c.path)
		}
		tree.now[c.path] = c.blob // zero for what is dying
	}
	return out, nil
}
