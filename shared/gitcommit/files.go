package gitcommit

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// Files lists what is below a directory of the tip's tree, by path from the repository's root: files, links and
// submodules. Trees are fetched, contents are not. The empty directory is the whole tree; a directory that is not there is empty.
func (r *Repository) Files(ctx context.Context, tip Tip, directory string) (map[string]Entry, error) {
	files := map[string]Entry{}
	if err := r.files(ctx, tip.ID, strings.Trim(directory, "/"), files); err != nil {
		return nil, fmt.Errorf("list %s on refs/heads/%s of %s: %w", directory, tip.Branch, r.endpoint.HostLabel(), err)
	}
	return files, nil
}

func (r *Repository) files(ctx context.Context, at ObjectID, prefix string, files map[string]Entry) error {
	id, err := r.treeAt(ctx, at, prefix)
	if err != nil || id.IsZero() {
		return err
	}
	level := map[string]ObjectID{prefix: id}
	for deep := false; len(level) > 0; {
		trees, err := r.level(ctx, at, level, deep)
		if err != nil {
			return err
		}
		next := map[string]ObjectID{}
		for directory, id := range level {
			for _, e := range trees[id] {
				path := e.Name
				if directory != "" {
					path = directory + "/" + e.Name
				}
				if e.Mode.IsDirectory() {
					next[path] = e.ID
				} else {
					files[path] = Entry{ID: e.ID, Mode: e.Mode}
				}
			}
		}
		// The first level is fetched alone: mostly only a few of its subtrees are new. Where most of a level is
		// unknown, so is what lies below it, and one request brings it all.
		level, deep = next, true
	}
	return nil
}

// level reads the trees of one level.
func (r *Repository) level(ctx context.Context, at ObjectID, level map[string]ObjectID, deep bool) (map[ObjectID][]gitobject.Entry, error) {
	ids := make([]ObjectID, 0, len(level))
	for _, id := range level {
		ids = append(ids, id)
	}
	return r.trees(ctx, at, ids, func(missing int) bool { return deep && missing > len(ids)/2 })
}

// treeAt is the id of the tree of a directory; zero when there is no such directory.
func (r *Repository) treeAt(ctx context.Context, at ObjectID, path string) (ObjectID, error) {
	if at.IsZero() {
		return ObjectID{}, nil
	}
	commit, err := r.commit(ctx, at)
	if err != nil {
		return ObjectID{}, err
	}
	id := commit.Tree
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		trees, err := r.trees(ctx, at, []ObjectID{id}, shallow)
		if err != nil {
			return ObjectID{}, err
		}
		dir := directory{entries: trees[id]}
		i, found := dir.find(name)
		if !found || !dir.entries[i].Mode.IsDirectory() {
			return ObjectID{}, nil
		}
		id = dir.entries[i].ID
	}
	return id, nil
}

// Entries looks up files by their paths and reads only the directories on the way to them. Paths that lead to no file
// are not in the answer.
func (r *Repository) Entries(ctx context.Context, tip Tip, paths []string) (map[string]Entry, error) {
	root, _, err := r.load(ctx, tip.ID, paths)
	if err != nil {
		return nil, fmt.Errorf("look up files on refs/heads/%s of %s: %w", tip.Branch, r.endpoint.HostLabel(), err)
	}
	found := make(map[string]Entry, len(paths))
	for _, path := range paths {
		if e, ok := root.file(path); ok {
			found[path] = e
		}
	}
	return found, nil
}

// file is the entry at a path whose directories are loaded.
func (d *directory) file(path string) (Entry, bool) {
	name, rest, deeper := strings.Cut(path, "/")
	if deeper {
		child := d.loaded[name]
		if child == nil {
			return Entry{}, false
		}
		return child.file(rest)
	}
	at, found := d.find(name)
	if !found || d.entries[at].Mode.IsDirectory() {
		return Entry{}, false
	}
	return Entry{ID: d.entries[at].ID, Mode: d.entries[at].Mode}, true
}
