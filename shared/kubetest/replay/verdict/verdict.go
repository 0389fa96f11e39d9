package verdict

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
	"github.com/tidemark-dev/tidemark/shared/history"
)

// Entry is one commit of a history, oldest first.
type Entry struct {
	ID        string
	Author    string // name <address>
	Committer string
	Message   string
	Parsed    history.Message
	Ours      bool // the message is one of Tidemark's
}

// Log reads the first-parent line of a branch of a repository on disk.
func Log(ctx context.Context, dir, branch string) ([]Entry, error) {
	out, err := git(ctx, dir, "log", "--first-parent", "--reverse", "--format=%H%x00%an <%ae>%x00%cn <%ce>%x00%B%x00", "refs/heads/"+branch)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "\x00")
	var entries []Entry
	for ; len(fields) > 4; fields = fields[4:] {
		e := Entry{ID: strings.TrimSpace(fields[0]), Author: fields[1], Committer: fields[2], Message: fields[3]}
		e.Parsed, e.Ours = history.ParseMessage(e.Message)
		entries = append(entries, e)
	}
	return entries, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), backend.Environment()...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// Files reads every file of a commit.
func Files(ctx context.Context, dir, commit string) (map[string][]byte, error) {
	out, err := git(ctx, dir, "archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for in := tar.NewReader(strings.NewReader(out)); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("git archive: %w", err)
		}
		if head.Typeflag == tar.TypeReg {
			if files[head.Name], err = io.ReadAll(in); err != nil {
				return nil, fmt.Errorf("git archive: %w", err)
			}
		}
	}
}

// Verdict is how a history compares with what happened. Each list holds sentences for people.
type Verdict struct {
	Changes    int      // written once, under the right name or rightly under none
	Unchecked  int      // written once; the session does not tell by whom
	Authors    []string // who is named, sorted
	Wrong      []string // another name than the truth's
	Missing    []string // not in the history, or only in a reconcile commit
	Unresolved []string // nobody is named, though an audit event tells who it was by uid
	Open       []string // nobody is named, and the evidence may not allow more
	Twice      []string
	Disorder   []string // an object's changes in another order than they happened
	Unasked    []string // changes that did not happen
	Files      []string // files that differ from the cluster's end
}

// Sound says that nothing is wrong, missing, twice or out of order, and that the files are right.
func (v *Verdict) Sound() bool {
	return len(v.Wrong)+len(v.Missing)+len(v.Unresolved)+len(v.Twice)+len(v.Disorder)+len(v.Unasked)+len(v.Files) == 0
}

// Faults lists what keeps the verdict from being sound, one line each.
func (v *Verdict) Faults() []string {
	var out []string
	for _, l := range []struct {
		what  string
		lines []string
	}{
		{"wrong name", v.Wrong}, {"missing", v.Missing}, {"unresolved though knowable", v.Unresolved}, {"twice", v.Twice},
		{"out of order", v.Disorder}, {"did not happen", v.Unasked}, {"file", v.Files},
	} {
		for _, line := range l.lines {
			out = append(out, l.what+": "+line)
		}
	}
	return out
}

type object struct {
	schema.GroupResource
	namespace, name string
}

// Judge holds a history against an expectation. files may be nil when they are not to be looked at; keep says which
// paths belong to the target.
func Judge(x *Expectation, entries []Entry, files map[string][]byte, keep func(path string) bool) *Verdict {
	v := &Verdict{}
	type id struct {
		object
		rv string
	}
	expected, seen, reconciled := map[id]int{}, map[id]string{}, map[id]bool{}
	for i, c := range x.Changes {
		expected[id{object{c.GroupResource, c.Namespace, c.Name}, c.RV}] = i
	}
	last := map[object]int{}
	authors := map[string]bool{}
	for _, e := range entries {
		for _, r := range e.Parsed.Changes {
			o := object{schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Namespace, r.Name}
			this := id{o, r.ResourceVersion}
			if r.By == history.ByReplay {
				reconciled[this] = true
				continue
			}
			i, known := expected[this]
			if !known {
				v.Unasked = append(v.Unasked, fmt.Sprintf("%s in %.8s by %s", r, e.ID, e.Author))
				continue
			}
			c := x.Changes[i]
			if by, again := seen[this]; again {
				v.Twice = append(v.Twice, fmt.Sprintf("%s in %.8s and %.8s", c, by, e.ID))
				continue
			}
			seen[this] = e.ID
			if before, some := last[o]; some && before > i {
				v.Disorder = append(v.Disorder, fmt.Sprintf("%s comes after %s", c, x.Changes[before]))
			}
			last[o] = i
			v.name(c, e, r, authors)
		}
	}
	for _, c := range x.Changes {
		this := id{object{c.GroupResource, c.Namespace, c.Name}, c.RV}
		switch {
		case seen[this] != "":
		case reconciled[this]:
			v.Missing = append(v.Missing, c.String()+" is only in a reconcile commit")
		default:
			v.Missing = append(v.Missing, c.String())
		}
	}
	if files != nil {
		v.compare(x.Files, files, keep)
	}
	for a := range authors {
		v.Authors = append(v.Authors, a)
	}
	slices.Sort(v.Authors)
	return v
}

// name judges whose name a change has.
func (v *Verdict) name(c Change, e Entry, r history.Record, authors map[string]bool) {
	named := e.Parsed.Actor
	if r.By == history.ByAbsent {
		named = ""
	}
	owner := c.Truth.Owner()
	switch {
	case !c.Known:
		v.Unchecked++
	case named == owner && named != "":
		authors[named] = true
		v.Changes++
	case named == "" && owner == "":
		v.Changes++
	case named != "":
		v.Wrong = append(v.Wrong, fmt.Sprintf("%s: %q, and it was %q (%s)", c, named, owner, r))
	case c.Truth.Knowable == "exact" || c.Truth.Knowable == "by-uid":
		v.Unresolved = append(v.Unresolved, fmt.Sprintf("%s: it was %s, %s (%s)", c, owner, c.Truth.Knowable, r))
	default:
		v.Changes++
		v.Open = append(v.Open, fmt.Sprintf("%s: it was %s, %s", c, owner, c.Truth.Knowable))
	}
}

func (v *Verdict) compare(want, got map[string][]byte, keep func(string) bool) {
	for path, content := range got {
		if !keep(path) {
			continue
		}
		if wanted, ok := want[path]; !ok {
			v.Files = append(v.Files, path+" should not be there")
		} else if string(wanted) != string(content) {
			v.Files = append(v.Files, path+" has another content")
		}
	}
	for path := range want {
		if _, ok := got[path]; !ok {
			v.Files = append(v.Files, path+" is not there")
		}
	}
	slices.Sort(v.Files)
}
