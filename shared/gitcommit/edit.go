package gitcommit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// ConflictError is a file that cannot be written because something else is in its place, which is not ours to remove.
type ConflictError struct {
	Path string // the file that was to be written
	At   string // where the obstacle is: Path itself or a directory of it
	Kind string // what is there: file, directory, symbolic link, submodule
}

func (e *ConflictError) Error() string {
	if e.At == e.Path {
		return fmt.Sprintf("write %s: a %s is in its place", clip(e.Path), e.Kind)
	}
	return fmt.Sprintf("write %s: %s is a %s, not a directory", clip(e.Path), clip(e.At), e.Kind)
}

// directory is a tree being edited. Subdirectories are only present where a path to be changed leads through them.
type directory struct {
	entries []gitobject.Entry // sorted git's way
	loaded  map[string]*directory
	dirty   bool
}

func newDirectory(entries []gitobject.Entry) *directory {
	return &directory{entries: slices.Clone(entries), loaded: map[string]*directory{}}
}

// find is the entry's position. A name sorts differently as a file and as a directory, so both places are looked at.
func (d *directory) find(name string) (int, bool) {
	for _, mode := range []Mode{gitobject.File, gitobject.Directory} {
		at, found := slices.BinarySearchFunc(d.entries, gitobject.Entry{Name: name, Mode: mode}, gitobject.CompareEntries)
		if found && d.entries[at].Name == name {
			return at, true
		}
	}
	return 0, false
}

func (d *directory) set(e gitobject.Entry) {
	d.dirty = true
	if at, found := d.find(e.Name); found {
		if d.entries[at].Mode.IsDirectory() == e.Mode.IsDirectory() {
			d.entries[at] = e
			return
		}
		d.entries = slices.Delete(d.entries, at, at+1)
	}
	at, _ := slices.BinarySearchFunc(d.entries, e, gitobject.CompareEntries)
	d.entries = slices.Insert(d.entries, at, e)
}

func (d *directory) remove(at int) {
	d.dirty = true
	delete(d.loaded, d.entries[at].Name)
	d.entries = slices.Delete(d.entries, at, at+1)
}

// apply makes one commit's changes. Removals come first, so that a directory that empties makes room for a file of its name.
func (d *directory) apply(changes map[string]written) error {
	paths := slices.Sorted(maps.Keys(changes))
	for _, path := range paths {
		if changes[path].remove {
			d.removeFile(path)
		}
	}
	for _, path := range paths {
		if change := changes[path]; !change.remove {
			if err := d.writeFile(path, path, change.blob); err != nil {
				return err
			}
		}
	}
	return nil
}

// written is what becomes of one path in one commit.
type written struct {
	remove bool
	blob   ObjectID
}

// removeFile removes a file or link and the directories that this empties. What is no file is left alone: the file is not there.
func (d *directory) removeFile(path string) {
	name, rest, deeper := strings.Cut(path, "/")
	at, found := d.find(name)
	switch {
	case !found:
	case !deeper:
		if mode := d.entries[at].Mode; !mode.IsDirectory() && mode != gitobject.Submodule {
			d.remove(at)
		}
	case d.loaded[name] != nil:
		child := d.loaded[name]
		child.removeFile(rest)
		if len(child.entries) == 0 {
			d.remove(at)
		} else if child.dirty {
			d.dirty = true
		}
	}
}

func (d *directory) writeFile(whole, path string, blob ObjectID) error {
	name, rest, deeper := strings.Cut(path, "/")
	at, found := d.find(name)
	conflict := func() error {
		where := strings.TrimSuffix(strings.TrimSuffix(whole, rest), "/")
		return &ConflictError{Path: whole, At: where, Kind: d.entries[at].Mode.String()}
	}
	if deeper {
		if found && !d.entries[at].Mode.IsDirectory() {
			return conflict()
		}
		child := d.loaded[name]
		if child == nil { // every directory on a path to be written that exists was loaded
			child = newDirectory(nil)
			d.loaded[name] = child
			d.set(gitobject.Entry{Name: name, Mode: gitobject.Directory})
		}
		if err := child.writeFile(whole, rest, blob); err != nil {
			return err
		}
		d.dirty = d.dirty || child.dirty
		return nil
	}
	mode := gitobject.File
	if found {
		existing := d.entries[at]
		switch {
		case existing.Mode.IsDirectory() || existing.Mode == gitobject.Submodule:
			return conflict()
		case existing.Mode.IsFile():
			if existing.ID == blob {
				return nil
			}
			mode = existing.Mode // the mode bits are somebody's choice; only the content is ours
		}
	}
	d.set(gitobject.Entry{Name: name, Mode: mode, ID: blob})
	return nil
}

// store encodes what changed, from the leaves up, hands each new tree to add, and returns this tree's id.
func (d *directory) store(f gitobject.Format, add func(gitobject.Object)) ObjectID {
	for i, e := range d.entries {
		if child := d.loaded[e.Name]; child != nil && child.dirty && e.Mode.IsDirectory() {
			d.entries[i].ID = child.store(f, add)
		}
	}
	d.dirty = false
	tree := gitobject.New(f, gitobject.TreeType, gitobject.EncodeTree(f, d.entries))
	add(tree)
	return tree.ID
}
