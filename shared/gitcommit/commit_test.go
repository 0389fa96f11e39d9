package gitcommit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

var (
	alice    = gitcommit.Signature{Name: "alice", Email: "alice@example.com", When: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))}
	tidemark = gitcommit.Signature{Name: "Tidemark", Email: "tidemark@example.com", When: time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)}
)

func write(path, content string) gitcommit.Change {
	return gitcommit.Change{Path: path, Content: []byte(content)}
}

func remove(path string) gitcommit.Change { return gitcommit.Change{Path: path, Delete: true} }

func commitOf(message string, changes ...gitcommit.Change) gitcommit.Commit {
	return gitcommit.Commit{Author: alice, Committer: tidemark, Message: message, Changes: changes}
}

func open(t *testing.T, repo *gittest.Repository, options gitcommit.Options) *gitcommit.Repository {
	t.Helper()
	r, err := gitcommit.Open(gitcommit.Remote{URL: repo.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// land builds on the current tip and pushes once.
func land(t *testing.T, r *gitcommit.Repository, branch string, commits ...gitcommit.Commit) *gitcommit.Built {
	t.Helper()
	ctx := timeout(t)
	tip, err := r.Tip(ctx, branch)
	if err != nil {
		t.Fatal(err)
	}
	built, err := r.Build(ctx, tip, commits)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Push(ctx, built)
	if err != nil || outcome.Class != gitcommit.Landed {
		t.Fatalf("push: got %+v, %v; want it landed", outcome, err)
	}
	return built
}

// eachFormat runs a test on a SHA-1 and on a SHA-256 repository.
func eachFormat(t *testing.T, test func(t *testing.T, server *gittest.Server, repo *gittest.Repository)) {
	t.Run("sha1", func(t *testing.T) {
		server := gittest.NewServer(t)
		test(t, server, server.Repository("org/cfg.git"))
	})
	t.Run("sha256", func(t *testing.T) {
		server := gittest.NewServer(t)
		test(t, server, server.RepositorySHA256("org/cfg.git"))
	})
}

func TestCommitsToARepository(t *testing.T) {
	type step struct {
		does    string
		changes [][]gitcommit.Change // one a commit
		skipped []int                // the commits that change nothing
		files   map[string]string    // afterwards
	}
	steps := []step{
		{does: "make the first commit of an empty repository",
			changes: [][]gitcommit.Change{{write("apps/shop/web.yaml", "a: 1\n"), write("README", "hello\n")}},
			files:   map[string]string{"apps/shop/web.yaml": "a: 1\n", "README": "hello\n"}},
		{does: "update one file and leave the others alone",
			changes: [][]gitcommit.Change{{write("apps/shop/web.yaml", "a: 2\n")}},
			files:   map[string]string{"apps/shop/web.yaml": "a: 2\n", "README": "hello\n"}},
		{does: "chain several commits, and leave out those that change nothing",
			changes: [][]gitcommit.Change{
				{write("apps/shop/db.yaml", "b: 1\n")},
				{write("apps/shop/web.yaml", "a: 2\n"), remove("apps/none.yaml"), remove("none/none/none.yaml")},
				{write("apps/shop/db.yaml", "b: 2\n"), write("apps/pay/api.yaml", "c: 1\n")},
			},
			skipped: []int{1},
			files:   map[string]string{"apps/shop/web.yaml": "a: 2\n", "apps/shop/db.yaml": "b: 2\n", "apps/pay/api.yaml": "c: 1\n", "README": "hello\n"}},
		{does: "remove files, and the directories that this empties",
			changes: [][]gitcommit.Change{{remove("apps/shop/web.yaml"), remove("apps/shop/db.yaml")}},
			files:   map[string]string{"apps/pay/api.yaml": "c: 1\n", "README": "hello\n"}},
		{does: "let the last change of a path count",
			changes: [][]gitcommit.Change{{write("x/y.yaml", "1"), remove("x/y.yaml"), write("x/z.yaml", "1"), write("x/z.yaml", "2")}},
			files:   map[string]string{"apps/pay/api.yaml": "c: 1\n", "README": "hello\n", "x/z.yaml": "2"}},
		{does: "turn a directory into a file once it is empty, and a file into a directory",
			changes: [][]gitcommit.Change{{remove("x/z.yaml"), write("x", "file"), remove("README"), write("README/en", "dir")}},
			files:   map[string]string{"apps/pay/api.yaml": "c: 1\n", "README/en": "dir", "x": "file"}},
		{does: "go back to an earlier state within one push, which still is two commits",
			changes: [][]gitcommit.Change{{write("x", "other")}, {write("x", "file")}},
			files:   map[string]string{"apps/pay/api.yaml": "c: 1\n", "README/en": "dir", "x": "file"}},
		{does: "remove everything",
			changes: [][]gitcommit.Change{{remove("x"), remove("README/en"), remove("apps/pay/api.yaml")}},
			files:   map[string]string{}},
		{does: "begin again on the empty tree",
			changes: [][]gitcommit.Change{{write("a-b/c", "1"), write("a/c", "2"), write("a.b/c", "3"), write("a0", "4"), write("a.c", "5"), write("line ends.txt", "1\r\n2\r\n")}},
			files:   map[string]string{"a-b/c": "1", "a/c": "2", "a.b/c": "3", "a0": "4", "a.c": "5", "line ends.txt": "1\r\n2\r\n"}},
	}
	eachFormat(t, func(t *testing.T, _ *gittest.Server, repo *gittest.Repository) {
		r := open(t, repo, gitcommit.Options{})
		for _, step := range steps {
			before := repo.Tip("main")
			commits := make([]gitcommit.Commit, len(step.changes))
			for i, changes := range step.changes {
				commits[i] = commitOf(fmt.Sprintf("%s, %d", step.does, i), changes...)
			}
			built := land(t, r, "main", commits...)
			if got := repo.Tip("main"); got != built.New.String() {
				t.Fatalf("%s: the branch is at %s, built was %s", step.does, got, built.New)
			}
			var skipped []int
			line := []string{}
			for i, id := range built.Commits {
				if id.IsZero() {
					skipped = append(skipped, i)
				} else {
					line = append(line, id.String())
				}
			}
			if !slices.Equal(skipped, step.skipped) {
				t.Errorf("%s: left out commits %v, want %v", step.does, skipped, step.skipped)
			}
			history := []string{"rev-list", "--first-parent", "--reverse", "main"}
			if before != "" {
				history = append(history, "^"+before)
			}
			if got := strings.Fields(repo.Git(history...)); !slices.Equal(got, line) {
				t.Errorf("%s: history got %v, want %v", step.does, got, line)
			}
			if diff := cmp.Diff(step.files, contents(repo, "main")); diff != "" {
				t.Errorf("%s: files (-want +got):\n%s", step.does, diff)
			}
		}
	})
}

func contents(repo *gittest.Repository, branch string) map[string]string {
	files := map[string]string{}
	for path := range repo.Files(branch) {
		files[path] = repo.Read(branch, path)
	}
	return files
}

func TestWhoWhenAndWhy(t *testing.T) {
	cases := []struct {
		name            string
		author          gitcommit.Signature
		message         string
		wantAuthor, raw string
	}{
		{"plain", alice, "Scale web\n\nChange: update apps/deployments shop/web rv=12", "alice <alice@example.com> 1772362800 +0100", "Scale web\n\nChange: update apps/deployments shop/web rv=12\n"},
		{"a name that would break the header", gitcommit.Signature{Name: "eve <root@example.com> 0 +0000\ncommitter x", Email: "e\n>v@example.com", When: time.Unix(5, 0).UTC()},
			"m\n\n\n", "eve root@example.com 0 +0000 committer x <e v@example.com> 5 +0000", "m\n"},
		{"no name, no address, a time before 1970", gitcommit.Signature{}, "", "unknown <> 0 +0000", "\n"},
		{"letters of all kinds", gitcommit.Signature{Name: "Žofie Ångström", Email: "z@example.com", When: time.Unix(7, 0).UTC()}, "čau \x00\xff", "Žofie Ångström <z@example.com> 7 +0000", "čau \uFFFD\n"},
	}
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	r := open(t, repo, gitcommit.Options{})
	for i, c := range cases {
		land(t, r, "main", gitcommit.Commit{Author: c.author, Committer: tidemark, Message: c.message, Changes: []gitcommit.Change{write("f", fmt.Sprint(i))}})
		if got := repo.Git("log", "-1", "--format=%an <%ae> %ad", "--date=raw", "main"); got != c.wantAuthor {
			t.Errorf("%s: author got %q, want %q", c.name, got, c.wantAuthor)
		}
		raw := repo.Git("cat-file", "commit", "main")
		if _, got, _ := strings.Cut(raw+"\n", "\n\n"); got != c.raw {
			t.Errorf("%s: message got %q, want %q", c.name, got, c.raw)
		}
		if got := repo.Git("log", "-1", "--format=%cn <%ce>", "main"); got != "Tidemark <tidemark@example.com>" {
			t.Errorf("%s: committer got %q", c.name, got)
		}
	}
}

func TestLeavesWhatIsNotOursAlone(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	other := repo.Commit("other", "to point at", map[string]string{"f": "f"})
	stream := strings.NewReader("commit refs/heads/main\ncommitter bob <bob@example.com> 1700000000 +0000\ndata 4\nodd\n" +
		"M 100755 inline dir/run.sh\ndata 3\n#!\n\nM 120000 inline dir/link\ndata 6\nrun.sh\nM 160000 " + other + " dir/module\n" +
		"M 100644 inline .gitattributes\ndata 15\n*.yaml eol=crlf\nM 100755 inline ours.yaml\ndata 2\n1\n\ndone\n")
	repo.FastImport(stream)
	before := repo.Files("main")
	r := open(t, repo, gitcommit.Options{})
	land(t, r, "main", commitOf("beside", write("dir/new.yaml", "a\r\nb\n")), commitOf("ours", write("ours.yaml", "2\n")))
	after := repo.Files("main")
	for path, want := range before {
		if path != "ours.yaml" && after[path] != want {
			t.Errorf("%s: got %q, want it untouched: %q", path, after[path], want)
		}
	}
	if !strings.HasPrefix(after["ours.yaml"], "100755 ") {
		t.Errorf("ours.yaml got %q, want its mode kept", after["ours.yaml"])
	}
	if got := repo.Read("main", "dir/new.yaml"); got != "a\r\nb\n" {
		t.Errorf("content got %q; attributes must not touch it", got)
	}
}

func TestRefusesConflicts(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	other := repo.Commit("other", "to point at", map[string]string{"f": "f"})
	repo.FastImport(strings.NewReader("commit refs/heads/main\ncommitter bob <bob@example.com> 1700000000 +0000\ndata 4\nodd\n" +
		"M 100644 inline a\ndata 2\n1\n\nM 100644 inline d/f\ndata 2\n1\n\nM 120000 inline link\ndata 1\nd\nM 160000 " + other + " module\ndone\n"))
	r := open(t, repo, gitcommit.Options{})
	tip, err := r.Tip(timeout(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change gitcommit.Change
		want   gitcommit.ConflictError
	}{
		{"a file stands where a directory is needed", write("a/b/c", "x"), gitcommit.ConflictError{Path: "a/b/c", At: "a", Kind: "file"}},
		{"a directory stands where the file goes", write("d", "x"), gitcommit.ConflictError{Path: "d", At: "d", Kind: "directory"}},
		{"a link leads out of the directory", write("link/f", "x"), gitcommit.ConflictError{Path: "link/f", At: "link", Kind: "symbolic link"}},
		{"a submodule is another repository", write("module/f", "x"), gitcommit.ConflictError{Path: "module/f", At: "module", Kind: "submodule"}},
		{"a submodule is not replaced", write("module", "x"), gitcommit.ConflictError{Path: "module", At: "module", Kind: "submodule"}},
	}
	for _, c := range cases {
		_, err := r.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", c.change)})
		var conflict *gitcommit.ConflictError
		if !errors.As(err, &conflict) || *conflict != c.want {
			t.Errorf("%s: got %v, want %v", c.name, err, &c.want)
		}
	}
	for _, change := range []gitcommit.Change{remove("d"), remove("module"), remove("a/b"), remove("link/f"), remove("module/f")} {
		built, err := r.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", change)})
		if err != nil || !built.Empty() {
			t.Errorf("remove %s, which is no file: got %v, %v; want nothing to change", change.Path, built, err)
		}
	}
	land(t, r, "main", commitOf("a link in our file's place becomes our file", write("link", "x")))
	if got := repo.Files("main")["link"]; !strings.HasPrefix(got, "100644 ") {
		t.Errorf("link got %q, want a file", got)
	}
}

func TestRefusesPathsThatLeave(t *testing.T) {
	refused := []string{"", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", ".git/config", "a/.GIT/hooks/x", "a/.git", ".git./x", ".git /x", ".git::$INDEX_ALLOCATION/x",
		"GIT~1/config", ".g\u200cit/config", "a\\b", "a\x00b", "a\nb", "a/\xff", strings.Repeat("x", 256), strings.Repeat("x/", 2100) + "x"}
	for _, path := range refused {
		var bad *gitcommit.PathError
		if err := gitcommit.CheckPath(path); !errors.As(err, &bad) {
			t.Errorf("%q: got %v, want it refused", path, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("%q: the error is %d bytes long", path, len(err.Error()))
		}
	}
	for _, path := range []string{"a", "a/b.yaml", ".gitignore", ".github/x", "a..b/c", "...", "git/x", "_cluster/x%3Ay", "ž/ü", ".tidemark"} {
		if err := gitcommit.CheckPath(path); err != nil {
			t.Errorf("%q: got %v, want it accepted", path, err)
		}
	}
	server := gittest.NewServer(t)
	r := open(t, server.Repository("cfg.git"), gitcommit.Options{})
	inside := commitOf("m", write("clusters/prod-2/x", "x"))
	inside.Under = "clusters/prod"
	var bad *gitcommit.PathError
	if _, err := r.Build(timeout(t), gitcommit.Tip{Branch: "main"}, []gitcommit.Commit{inside}); !errors.As(err, &bad) {
		t.Errorf("a path beside its directory: got %v, want it refused", err)
	}
	inside.Under = "clusters/prod-2/"
	if _, err := r.Build(timeout(t), gitcommit.Tip{Branch: "main"}, []gitcommit.Commit{inside}); err != nil {
		t.Errorf("a path in its directory: got %v", err)
	}
}

func TestListsFilesWithoutTheirContents(t *testing.T) {
	eachFormat(t, func(t *testing.T, _ *gittest.Server, repo *gittest.Repository) {
		paths := repo.Fill("main", 300)
		r := open(t, repo, gitcommit.Options{})
		tip, err := r.Tip(timeout(t), "main")
		if err != nil {
			t.Fatal(err)
		}
		for _, directory := range []string{"", "clusters/prod", "clusters/prod/ns-001/", "clusters/prod/ns-001/res-003", "clusters/none", "clusters/prod/ns-001/res-003/object-1.yaml"} {
			files, err := r.Files(timeout(t), tip, directory)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, path := range paths {
				if directory == "" || strings.HasPrefix(path, strings.TrimSuffix(directory, "/")+"/") {
					want = append(want, path)
				}
			}
			if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
				t.Errorf("below %q: got %d files, want %d", directory, len(got), len(want))
			}
			if len(want) == 0 {
				continue
			}
			entry := files[want[0]]
			if blob := r.BlobID([]byte(repo.Read("main", want[0]))); entry.ID != blob || entry.Mode != gitobject.File {
				t.Errorf("%s: got %+v, want %s", want[0], entry, blob)
			}
		}
	})
}
