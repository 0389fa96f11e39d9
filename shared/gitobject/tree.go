package gitobject

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mode is the mode of a tree's entry.
type Mode uint32

// The modes git writes. Old repositories hold others for files (100664); they are kept as they are.
const (
	File       Mode = 0o100644
	Executable Mode = 0o100755
	Symlink    Mode = 0o120000
	Submodule  Mode = 0o160000
	Directory  Mode = 0o040000
)

const modeKind Mode = 0o170000

// IsFile says that the entry is a regular file, executable or not.
func (m Mode) IsFile() bool { return m&modeKind == 0o100000 }

// IsDirectory says that the entry is a tree.
func (m Mode) IsDirectory() bool { return m&modeKind == Directory }

func (m Mode) String() string {
	switch {
	case m.IsDirectory():
		return "directory"
	case m.IsFile():
		return "file"
	case m == Symlink:
		return "symbolic link"
	case m == Submodule:
		return "submodule"
	}
	return "mode " + strconv.FormatUint(uint64(m), 8)
}

// Entry is one entry of a tree.
type Entry struct {
	Name string
	Mode Mode
	ID   ID
}

// ParseTree reads a tree's content.
func ParseTree(f Format, data []byte) ([]Entry, error) {
	entries := make([]Entry, 0, len(data)/(f.Size()+16)+1)
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 0 {
			return nil, fmt.Errorf("tree: an entry has no mode")
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("tree: an entry's mode is not octal")
		}
		data = data[space+1:]
		end := bytes.IndexByte(data, 0)
		if end <= 0 || len(data) < end+1+f.Size() {
			return nil, fmt.Errorf("tree: an entry is cut off")
		}
		entries = append(entries, Entry{Name: string(data[:end]), Mode: Mode(mode), ID: idFromBytes(data[end+1 : end+1+f.Size()])})
		data = data[end+1+f.Size():]
	}
	return entries, nil
}

// EncodeTree writes a tree's content. It sorts entries the way git does: a directory's name counts as if it ended in a slash.
func EncodeTree(f Format, entries []Entry) []byte {
	slices.SortFunc(entries, CompareEntries)
	var size int
	for _, e := range entries {
		size += 8 + len(e.Name) + f.Size()
	}
	out := make([]byte, 0, size)
	for _, e := range entries {
		out = strconv.AppendUint(out, uint64(e.Mode), 8)
		out = append(out, ' ')
		out = append(out, e.Name...)
		out = append(out, 0)
		out = append(out, e.ID.sum[:f.Size()]...)
	}
	return out
}

// CompareEntries orders the entries of a tree.
func CompareEntries(a, b Entry) int {
	shared := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:shared], b.Name[:shared]); c != 0 {
		return c
	}
	return int(after(a, shared)) - int(after(b, shared))
}

// after is the byte that git compares behind the first n bytes of the entry's name.
func after(e Entry, n int) byte {
	switch {
	case n < len(e.Name):
		return e.Name[n]
	case e.Mode.IsDirectory():
		return '/'
	}
	return 0
}
