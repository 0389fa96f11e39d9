package gitcommit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// Build makes commits on a tip, one on the other, without touching the branch. It reads only the trees on the paths
// that change. A commit that changes nothing is left out.
//
// Errors: *PathError, *ConflictError; ErrGone when a remembered tip is no longer on the server; else the network's.
func (r *Repository) Build(ctx context.Context, tip Tip, commits []Commit) (*Built, error) {
	if err := checkBranch(tip.Branch); err != nil {
		return nil, err
	}
	built, err := r.build(ctx, tip, commits)
	if err != nil {
		return nil, fmt.Errorf("build on refs/heads/%s of %s: %w", tip.Branch, r.endpoint.HostLabel(), err)
	}
	return built, nil
}

func (r *Repository) build(ctx context.Context, tip Tip, commits []Commit) (*Built, error) {
	format := r.objectFormat()
	if !tip.ID.IsZero() {
		format = tip.ID.Format()
	}
	plans := make([]plan, len(commits))
	var paths []string
	for i, c := range commits {
		var err error
		if plans[i], err = planOf(format, c); err != nil {
			return nil, err
		}
		for path := range plans[i].changes {
			paths = append(paths, path)
		}
	}
	root, tree, err := r.load(ctx, tip.ID, paths)
	if err != nil {
		return nil, err
	}
	built := &Built{Branch: tip.Branch, Old: tip.ID, New: tip.ID, Commits: make([]ObjectID, len(commits))}
	pack := newPackList()
	for i, c := range commits {
		if err := root.apply(plans[i].changes); err != nil {
			return nil, err
		}
		if !root.dirty {
			continue
		}
		next := root.store(format, pack.add)
		if next == tree {
			continue
		}
		commit, err := seal(format, c, next, built.New)
		if err != nil {
			return nil, err
		}
		for _, blob := range plans[i].blobs {
			pack.add(blob)
		}
		pack.add(commit)
		tree, built.New, built.Commits[i] = next, commit.ID, commit.ID
	}
	built.pack = pack.objects
	return built, nil
}

// seal makes a commit's object, with its parent and its signature.
func seal(f gitobject.Format, c Commit, tree, parent ObjectID) (gitobject.Object, error) {
	sealed := gitobject.Commit{Tree: tree, Author: c.Author, Committer: c.Committer, Message: c.Message}
	if !parent.IsZero() {
		sealed.Parents = []ObjectID{parent}
	}
	if c.Signer != nil {
		signature, err := c.Signer.Sign(sealed.Encode())
		if err != nil {
			return gitobject.Object{}, fmt.Errorf("sign: %w", err)
		}
		sealed.Signature = signature
	}
	return gitobject.New(f, gitobject.CommitType, sealed.Encode()), nil
}

// plan is a commit's changes, checked, one a path.
type plan struct {
	changes map[string]written
	blobs   []gitobject.Object
}

func planOf(f gitobject.Format, c Commit) (plan, error) {
	p := plan{changes: make(map[string]written, len(c.Changes))}
	last := make(map[string]Change, len(c.Changes))
	for _, change := range c.Changes {
		if err := CheckPath(change.Path); err != nil {
			return plan{}, err
		}
		if !under(change.Path, c.Under) {
			return plan{}, &PathError{change.Path, "is outside " + clip(c.Under)}
		}
		last[change.Path] = change
	}
	for path, change := range last {
		if change.Delete {
			p.changes[path] = written{remove: true}
			continue
		}
		blob := gitobject.New(f, gitobject.BlobType, change.Content)
		p.changes[path] = written{blob: blob.ID}
		p.blobs = append(p.blobs, blob)
	}
	return p, nil
}

// load reads the root tree of a commit and the directories on the paths, level by level.
func (r *Repository) load(ctx context.Context, at ObjectID, paths []string) (*directory, ObjectID, error) {
	if at.IsZero() {
		return newDirectory(nil), ObjectID{}, nil
	}
	commit, err := r.commit(ctx, at)
	if err != nil {
		return nil, ObjectID{}, err
	}
	entries, err := r.trees(ctx, at, []ObjectID{commit.Tree}, shallow)
	if err != nil {
		return nil, ObjectID{}, err
	}
	root := newDirectory(entries[commit.Tree])
	return root, commit.Tree, r.loadBelow(ctx, at, root, paths)
}

// loadBelow reads the directories on the paths below a directory.
func (r *Repository) loadBelow(ctx context.Context, at ObjectID, root *directory, paths []string) error {
	level := []visit{{root, paths}}
	for len(level) > 0 {
		var next []visit
		var ids []ObjectID
		for _, v := range level {
			for name, rest := range v.branches() {
				if i, found := v.dir.find(name); found && v.dir.entries[i].Mode.IsDirectory() {
					child := newDirectory(nil)
					v.dir.loaded[name] = child
					next = append(next, visit{child, rest})
					ids = append(ids, v.dir.entries[i].ID)
				}
			}
		}
		if len(ids) == 0 {
			return nil
		}
		entries, err := r.trees(ctx, at, ids, func(missing int) bool { return missing >= manyTrees })
		if err != nil {
			return err
		}
		for i, v := range next {
			v.dir.entries = slices.Clone(entries[ids[i]])
		}
		level = next
	}
	return nil
}

// visit is a directory and the paths to follow below it.
type visit struct {
	dir   *directory
	paths []string
}

// branches are the paths that go deeper, by the name of the directory that they go through.
func (v visit) branches() map[string][]string {
	out := map[string][]string{}
	for _, path := range v.paths {
		if name, rest, deeper := strings.Cut(path, "/"); deeper {
			out[name] = append(out[name], rest)
		}
	}
	return out
}

// packList collects objects for a pack, each once.
type packList struct {
	objects []gitobject.Object
	have    map[ObjectID]bool
}

func newPackList() *packList { return &packList{have: map[ObjectID]bool{}} }

func (p *packList) add(o gitobject.Object) {
	if !p.have[o.ID] {
		p.have[o.ID] = true
		p.objects = append(p.objects, o)
	}
}
