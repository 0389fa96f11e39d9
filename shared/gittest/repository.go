package gittest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
)

// patience is what a git command may take; the largest repositories are imported and checked within it.
const patience = 5 * time.Minute

// Repository is a bare repository on the server's disk.
type Repository struct {
	URL string
	Dir string
	t   testing.TB
}

// Git runs git in the repository and returns its output without the last line end; the test fails when git does.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	out, err := r.run(nil, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryGit is Git for commands that may fail.
func (r *Repository) TryGit(args ...string) (string, error) { return r.run(nil, args...) }

func (r *Repository) run(stdin io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.Dir}, args...)...)
	cmd.Env = append(os.Environ(), backend.Environment()...)
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_NAME=bob", "GIT_AUTHOR_EMAIL=bob@example.com", "GIT_COMMITTER_NAME=bob", "GIT_COMMITTER_EMAIL=bob@example.com")
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// Configure sets one value of the repository's configuration.
func (r *Repository) Configure(key, value string) { r.t.Helper(); r.Git("config", key, value) }

// Hook installs a shell script as one of the server's hooks: pre-receive, update, post-receive.
func (r *Repository) Hook(name, script string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// RemoveHook removes what Hook installed.
func (r *Repository) RemoveHook(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.Dir, "hooks", name)); err != nil {
		r.t.Fatal(err)
	}
}

// Tip is the commit that the branch points at; empty when there is no such branch.
func (r *Repository) Tip(branch string) string {
	out, err := r.run(nil, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return out
}

// Files are the paths of all files on the branch with their modes, as git ls-tree prints them: mode, type, id, path.
func (r *Repository) Files(branch string) map[string]string {
	r.t.Helper()
	files := map[string]string{}
	for line := range strings.Lines(r.Git("-c", "core.quotePath=false", "ls-tree", "-r", "refs/heads/"+branch) + "\n") {
		if head, path, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			files[path] = head
		}
	}
	return files
}

// Read is the content of a file on the branch.
func (r *Repository) Read(branch, path string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "-C", r.Dir, "cat-file", "blob", "refs/heads/"+branch+":"+path).Output()
	if err != nil {
		r.t.Fatalf("read %s on %s: %v", path, branch, err)
	}
	return string(out)
}

// Commit makes a commit as another tool or a person would, right in the repository, and returns its id. A file
// with empty content is removed. Like any tool it starts again when somebody else was faster.
func (r *Repository) Commit(branch, message string, files map[string]string) string {
	r.t.Helper()
	var out string
	var err error
	for range 10 {
		if out, err = r.run(r.commit(branch, message, files), "fast-import", "--quiet", "--done"); err == nil {
			return r.Tip(branch)
		}
	}
	r.t.Errorf("commit %q to %s: %v\n%s", message, branch, err, out)
	return ""
}

func (r *Repository) commit(branch, message string, files map[string]string) io.Reader {
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter bob <bob@example.com> %d +0000\ndata %d\n%s\n", branch, time.Now().Unix(), len(message), message)
	if r.Tip(branch) != "" {
		fmt.Fprintf(&b, "from refs/heads/%s^0\n", branch)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if files[path] == "" {
			fmt.Fprintf(&b, "D %s\n", path)
			continue
		}
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
	b.WriteString("\ndone\n")
	return &b
}

// FastImport feeds a stream, which must end with the done command, to git fast-import.
func (r *Repository) FastImport(stream io.Reader) {
	r.t.Helper()
	if out, err := r.run(stream, "fast-import", "--quiet", "--done"); err != nil {
		r.t.Fatalf("git fast-import: %v\n%s", err, out)
	}
}

// Fill commits that many files of about 200 bytes, ten a directory, four directories deep at
// clusters/prod/<namespace>/<resource>/<name>.yaml, with as many resources in a namespace as there are namespaces, and returns their paths.
func (r *Repository) Fill(branch string, files int) []string {
	r.t.Helper()
	paths, stream := filling(branch, files)
	r.FastImport(stream)
	return paths
}

// filling is the fast-import stream that Fill feeds.
func filling(branch string, files int) ([]string, io.Reader) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter bob <bob@example.com> 1700000000 +0000\ndata 4\nfill\n", branch)
	paths := make([]string, files)
	width := max(1, int(math.Ceil(math.Sqrt(float64(files)/10))))
	for i := range files {
		dir := i / 10
		paths[i] = fmt.Sprintf("clusters/prod/ns-%03d/res-%03d/object-%d.yaml", dir/width, dir%width, i%10)
		content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: object-%d\ndata:\n  number: \"%d\"\n  text: %s\n", i%10, i, strings.Repeat("lorem ", 16))
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", paths[i], len(content), content)
	}
	b.WriteString("\ndone\n")
	return paths, &b
}

func (r *Repository) fsck() {
	if out, err := r.run(nil, "fsck", "--strict", "--full", "--no-progress", "--no-dangling"); err != nil {
		r.t.Errorf("git fsck --strict of %s: %v\n%s", r.Dir, err, out)
	}
}
