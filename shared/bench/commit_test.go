//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// commitRows measures a commit of one changed file, four directories deep, and its push, in repositories that grow.
// Each way has a branch of its own in the same repository behind git http-backend. Ours keeps trees and tips in Redis
// and, like a function that was just started, nothing in memory but connections.
func commitRows(t *testing.T) []Row {
	sizes, rounds := []int{100, 10_000, 50_000}, 3
	if Quick() {
		sizes = []int{100, 2_000}
	}
	redis := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: redis.Addr, KeyPrefix: redis.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var rows []Row
	var known []float64 // milliseconds, by size
	for _, size := range sizes {
		c := newCommitting(t, store, size)
		m := Interleave(rounds, c.known, c.cold, c.gogitDisk, c.gogitMemory, c.gitCLI)
		known = append(known, m[0])
		what := fmt.Sprintf("commit, %d files", size)
		rows = append(rows,
			LessIsBetter(what+", trees known", "ms", m[0], m[2], "go-git PlainClone depth 1 + push"),
			LessIsBetter(what+", trees known", "ms", m[0], m[3], "go-git in memory, depth 1 + push"),
			LessIsBetter(what+", trees known", "ms", m[0], m[4], "git clone --depth 1 + push"),
			LessIsBetter(what+", cold", "ms", m[1], m[2], "go-git PlainClone depth 1 + push"),
			LessIsBetter(what+", cold", "ms", m[1], m[3], "go-git in memory, depth 1 + push"),
		)
		rows = append(rows, c.traffic(what)...)
		if size == sizes[len(sizes)-1] {
			rows = append(rows, c.group()...)
		}
	}
	return append(rows, Plain(fmt.Sprintf("commit, time at %d files ÷ time at %d", sizes[len(sizes)-1], sizes[0]), "x", known[len(known)-1]/known[0]))
}

type committing struct {
	t      *testing.T
	server *gittest.Server
	repo   *gittest.Repository
	store  *queue.RedisStore
	pool   *gitwire.Pool
	paths  []string
	n      int
}

const branchOurs, branchCold, branchDisk, branchMemory, branchCLI = "ours", "cold", "disk", "memory", "cli"

func newCommitting(t *testing.T, store *queue.RedisStore, size int) *committing {
	t.Helper()
	c := &committing{t: t, server: gittest.NewServer(t), store: store, pool: &gitwire.Pool{}}
	c.repo = c.server.Repository("cfg.git")
	c.paths = c.repo.Fill("main", size)
	for _, branch := range []string{branchOurs, branchCold, branchDisk, branchMemory, branchCLI} {
		c.repo.Git("update-ref", "refs/heads/"+branch, "main")
	}
	c.commit(branchOurs, true, 1) // fills the cache
	return c
}

// next is a file and content that it never had.
func (c *committing) next() (path, content string) {
	c.n++
	return c.paths[len(c.paths)/2], fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\ndata:\n  number: \"%d of %d\"\n", c.n, time.Now().UnixNano())
}

func (c *committing) known() float64 {
	var times []float64
	for range 9 {
		times = append(times, c.commit(branchOurs, true, 1))
	}
	return Median(times)
}

func (c *committing) cold() float64 {
	var times []float64
	for range 5 {
		times = append(times, c.commit(branchCold, false, 1))
	}
	return Median(times)
}

// commit lands so many commits of one file each in one push, and returns the milliseconds it took.
func (c *committing) commit(branch string, cached bool, commits int) float64 {
	c.t.Helper()
	options := gitcommit.Options{Pool: c.pool}
	if cached {
		options.Cache, options.Tips = c.store.ObjectCache(), c.store.TipMemory()
	}
	r, err := gitcommit.Open(gitcommit.Remote{URL: c.repo.URL}, options)
	if err != nil {
		c.t.Fatal(err)
	}
	chain := make([]gitcommit.Commit, commits)
	for i := range chain {
		path, content := c.next()
		if commits > 1 {
			path = c.paths[(i*7919)%len(c.paths)]
		}
		who := gitcommit.Signature{Name: "alice", Email: "alice@example.com", When: time.Now()}
		chain[i] = gitcommit.Commit{Author: who, Committer: who, Message: "bench", Changes: []gitcommit.Change{{Path: path, Content: []byte(content)}}}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	_, outcome, err := r.Land(ctx, branch, func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		return r.Build(ctx, tip, chain)
	})
	if err != nil || outcome.Class != gitcommit.Landed {
		c.t.Fatalf("ours: %+v, %v", outcome, err)
	}
	return milliseconds(begin)
}

// traffic counts requests and bytes, which are exact.
func (c *committing) traffic(what string) []Row {
	down := func(work func() float64) (requests, bytes float64) {
		c.server.Records()
		work()
		for _, r := range c.server.Records() {
			requests, bytes = requests+1, bytes+float64(r.Down)
		}
		return requests, bytes
	}
	knownRequests, knownBytes := down(func() float64 { return c.commit(branchOurs, true, 1) })
	coldRequests, coldBytes := down(func() float64 { return c.commit(branchCold, false, 1) })
	_, cliBytes := down(c.gitCLI)
	return []Row{
		LessIsBetter(what+", trees known, down", "bytes", knownBytes, cliBytes, "git clone --depth 1 + push"),
		LessIsBetter(what+", cold, down", "bytes", coldBytes, cliBytes, "git clone --depth 1 + push"),
		Plain(what+", trees known", "requests", knownRequests),
		Plain(what+", cold", "requests", coldRequests),
	}
}

// group is what many changes in one push cost beside one.
func (c *committing) group() []Row {
	m := Interleave(5, func() float64 { return c.commit(branchOurs, true, 1) }, func() float64 { return c.commit(branchOurs, true, 200) })
	return []Row{LessIsBetter("commit, 200 commits in one push", "ms", m[1], 200*m[0], "200 pushes of one")}
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }

func (c *committing) gogitDisk() float64 {
	dir := c.t.TempDir()
	defer os.RemoveAll(dir)
	begin := time.Now()
	repo, err := git.PlainCloneContext(c.t.Context(), dir, false, c.cloneOptions(branchDisk))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.gogitCommit(repo, begin)
}

func (c *committing) gogitMemory() float64 {
	begin := time.Now()
	repo, err := git.CloneContext(c.t.Context(), memory.NewStorage(), memfs.New(), c.cloneOptions(branchMemory))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.gogitCommit(repo, begin)
}

func (c *committing) cloneOptions(branch string) *git.CloneOptions {
	return &git.CloneOptions{URL: c.repo.URL, ReferenceName: plumbing.NewBranchReferenceName(branch), SingleBranch: true, Depth: 1, Tags: git.NoTags}
}

func (c *committing) gogitCommit(repo *git.Repository, begin time.Time) float64 {
	worktree, err := repo.Worktree()
	if err != nil {
		c.t.Fatal(err)
	}
	path, content := c.next()
	if err := util.WriteFile(worktree.Filesystem, path, []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
	if _, err := worktree.Add(path); err != nil {
		c.t.Fatal(err)
	}
	who := &object.Signature{Name: "alice", Email: "alice@example.com", When: time.Now()}
	if _, err := worktree.Commit("bench", &git.CommitOptions{Author: who, Committer: who}); err != nil {
		c.t.Fatal(err)
	}
	head, err := repo.Head()
	if err != nil {
		c.t.Fatal(err)
	}
	spec := config.RefSpec(head.Name() + ":" + head.Name())
	if err := repo.PushContext(c.t.Context(), &git.PushOptions{RefSpecs: []config.RefSpec{spec}}); err != nil {
		c.t.Fatal(err)
	}
	return milliseconds(begin)
}

func (c *committing) gitCLI() float64 {
	dir := c.t.TempDir()
	defer os.RemoveAll(dir)
	run := func(args ...string) {
		cmd := exec.CommandContext(c.t.Context(), "git", args...)
		cmd.Env = append(append(os.Environ(), backend.Environment()...), "GIT_AUTHOR_NAME=alice", "GIT_AUTHOR_EMAIL=alice@example.com",
			"GIT_COMMITTER_NAME=alice", "GIT_COMMITTER_EMAIL=alice@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	begin := time.Now()
	run("clone", "--quiet", "--depth", "1", "--branch", branchCLI, "--single-branch", c.repo.URL, dir)
	path, content := c.next()
	if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	run("-C", dir, "commit", "--quiet", "--all", "--message", "bench")
	run("-C", dir, "push", "--quiet", "origin", branchCLI)
	return milliseconds(begin)
}
