package gitcommit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The longest names that every file system and git host takes.
const (
	maxPath    = 4096
	maxSegment = 255
)

// PathError is a path that must not be written.
type PathError struct{ Path, Reason string }

func (e *PathError) Error() string { return fmt.Sprintf("path %q %s", clip(e.Path), e.Reason) }

// CheckPath says whether a path may be written: relative, with slashes, without a segment that leaves its
// directory, that is empty, or that any file system could take for .git.
func CheckPath(path string) error {
	refuse := func(reason string) error { return &PathError{path, reason} }
	switch {
	case path == "":
		return refuse("is empty")
	case len(path) > maxPath:
		return refuse("is too long")
	case !utf8.ValidString(path):
		return refuse("is not UTF-8")
	case strings.HasPrefix(path, "/"):
		return refuse("is absolute")
	case strings.Contains(path, "\\"):
		return refuse("holds a backslash, which Windows takes for a slash")
	case strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return refuse("holds a control character")
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "":
			return refuse("has an empty segment")
		case segment == "." || segment == "..":
			return refuse("has a segment that leaves its directory")
		case len(segment) > maxSegment:
			return refuse("has a segment that is too long")
		case isDotGit(segment):
			return refuse("has a segment that may be taken for .git")
		}
	}
	return nil
}

// isDotGit tells names that some file system opens as .git: HFS+ ignores certain characters, NTFS ignores dots and
// spaces at the end, cuts at a colon, and has short names.
func isDotGit(segment string) bool {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(segment))
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return name == ".git" || name == "git~1"
}

// under says whether path lies in directory; every path lies in the empty one.
func under(path, directory string) bool {
	directory = strings.Trim(directory, "/")
	return directory == "" || strings.HasPrefix(path, directory+"/")
}

func clip(path string) string {
	if len(path) > 200 {
		return strings.ToValidUTF8(path[:200], "") + "…"
	}
	return path
}
