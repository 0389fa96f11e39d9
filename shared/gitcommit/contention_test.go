package gitcommit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// soak says that the long form of a test is wanted: SOAK=1, as make soak sets it.
func soak(short, long int) int {
	if os.Getenv("SOAK") != "" {
		return long
	}
	return short
}

// TestWritersUnderALease: copies that share a branch lease and a cache in Redis hardly ever lose a race.
func TestWritersUnderALease(t *testing.T) {
	const writers = 16
	commits := soak(5, 20)
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Fill("main", 200)
	redis := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: redis.Addr, KeyPrefix: redis.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	branch := queue.BranchID(repo.URL, "main")
	options := gitcommit.Options{Cache: store.ObjectCache(), Tips: store.TipMemory(), Pool: &gitwire.Pool{}}
	lost := race(t, repo, options, writers, commits, func(ctx context.Context) func() {
		for {
			token, err := store.AcquireLease(ctx, branch, 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			if token != 0 || err != nil {
				return func() {
					if err := store.YieldLease(ctx, branch, token); err != nil {
						t.Error(err)
					}
				}
			}
			time.Sleep(time.Duration(1+rand.IntN(20)) * time.Millisecond)
		}
	})
	total := writers * commits
	if float64(lost) > 0.3*float64(total) {
		t.Errorf("%d races lost for %d commits, want at most 0.3 a commit", lost, total)
	}
	t.Logf("%d commits, %d races lost", total, lost)
}

// TestWritersWithoutALease: compare-and-swap alone keeps history right; the lease only saves work.
func TestWritersWithoutALease(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	m := newMemory()
	lost := race(t, repo, gitcommit.Options{Cache: m, Tips: m}, 4, soak(4, 20), func(context.Context) func() { return func() {} })
	t.Logf("%d races lost", lost)
}

// race lets writers commit to one branch at the same time, and checks the history. It returns how many races were lost.
func race(t *testing.T, repo *gittest.Repository, options gitcommit.Options, writers, commits int, lease func(context.Context) func()) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	before := 0
	if repo.Tip("main") != "" {
		before = 1
	}
	var lost atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		r := open(t, repo, options)
		all.Go(func() {
			for c := range commits {
				release := lease(ctx)
				builds := 0
				_, outcome, err := r.Land(ctx, "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
					builds++
					// Each writer has a file of its own and counts in a file that all share.
					return r.Build(ctx, tip, []gitcommit.Commit{commitOf(fmt.Sprintf("writer %d, commit %d", w, c),
						write(fmt.Sprintf("writers/%d.yaml", w), fmt.Sprintf("n: %d\n", c)), write("shared.yaml", fmt.Sprintf("%d %d\n", w, c)))})
				})
				release()
				if err != nil || outcome.Class != gitcommit.Landed {
					t.Errorf("writer %d, commit %d: %+v, %v", w, c, outcome, err)
					return
				}
				lost.Add(int64(builds - 1))
			}
		})
	}
	all.Wait()
	if got, want := repo.Git("rev-list", "--count", "main"), fmt.Sprint(writers*commits+before); got != want {
		t.Errorf("%s commits, want %s", got, want)
	}
	if merges := repo.Git("rev-list", "--count", "--merges", "main"); merges != "0" {
		t.Errorf("%s merges; history must be linear", merges)
	}
	// Every commit once, and those of each writer in order.
	next := make([]int, writers)
	for subject := range strings.SplitSeq(repo.Git("log", "--reverse", "--format=%s", "main"), "\n") {
		var w, c int
		if n, _ := fmt.Sscanf(subject, "writer %d, commit %d", &w, &c); n != 2 {
			continue
		}
		if c != next[w] {
			t.Errorf("writer %d: commit %d comes where %d is due", w, c, next[w])
		}
		next[w] = c + 1
	}
	for w, n := range next {
		if n != commits {
			t.Errorf("writer %d: %d commits, want %d", w, n, commits)
		}
		if got, want := repo.Read("main", fmt.Sprintf("writers/%d.yaml", w)), fmt.Sprintf("n: %d\n", commits-1); got != want {
			t.Errorf("writer %d: its file got %q, want %q", w, got, want)
		}
	}
	return int(lost.Load())
}
