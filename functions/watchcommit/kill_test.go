package watchcommit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// childVariable makes this test binary a copy of the function that ticks until it is killed.
const childVariable = "WATCHCOMMIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		runChild()
	}
	os.Exit(m.Run())
}

func runChild() {
	var cfg Config
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fail(settings.Load(&cfg))
	store, err := cfg.OpenStore()
	fail(err)
	config, err := kube.LoadConfig(cfg.Kubeconfig)
	fail(err)
	cluster, err := kube.NewClient(config, "watchcommit")
	fail(err)
	f, err := New(cfg, Deps{Store: store, Cluster: cluster, Telemetry: telemetry.New("watchcommit")})
	fail(err)
	if os.Getenv(childVariable) == "rude" {
		f.leases = rude{}
	}
	for {
		if _, err := f.Drain(context.Background(), Wake{Tick: true}); err != nil {
			f.log.Error("drain failed", "error", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// rude takes every branch at once, whoever has it.
type rude struct{}

func (rude) AcquireLease(context.Context, string, time.Duration) (int64, error) { return 1, nil }

func (rude) TakeLease(context.Context, string, time.Duration) (int64, error) { return 1, nil }

func (rude) RenewLease(context.Context, string, int64, time.Duration) (bool, error) { return true, nil }

func (rude) ReleaseLease(context.Context, string, int64, time.Duration) (queue.Release, error) {
	return queue.Released, nil
}

func (rude) YieldLease(context.Context, string, int64) error { return nil }

// child is a running copy in a process of its own.
type child struct {
	mu  sync.Mutex
	cmd *exec.Cmd
}

// start runs a copy against the world.
func (w *world) start(c *child, environment ...string) {
	kubeconfig := w.t.TempDir() + "/kubeconfig"
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: " + w.apiURL + "}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REDIS_ADDR="+w.redis.Addr, "REDIS_KEY_PREFIX="+w.redis.Prefix,
		"KUBECONFIG="+kubeconfig, "TARGETS_FILE="+w.targets, "WATCH_WINDOW=2s", "BRANCH_LEASE=1s", "LOG_LEVEL=error")
	cmd.Env = append(cmd.Env, environment...)
	if os.Getenv("WATCHCOMMIT_TEST_VERBOSE") != "" {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd = cmd
}

// awaitReplays waits until each shard's first replay has been made, wherever that has come to.
func (w *world) awaitReplays() {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for _, watch := range w.session.Watches {
		shard := queue.Shard{TargetUID: w.targetUID("prod"), GVR: watch.GroupVersionResource}
		for {
			sights, err := w.store.Sights(context.Background(), shard, "")
			if err == nil && slices.ContainsFunc(sights, func(s queue.Sight) bool { return s.Type == queue.SightReplay }) {
				break
			}
			if time.Now().After(deadline) {
				w.t.Fatalf("no replay of %s: %v %v", watch.Resource, sights, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// kill ends the copy as the kernel would: at once.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// Copies of the function are killed at random points, again and again, two at a time, and at the worst points: when a
// push arrives, and when it has landed and nobody knows. The history is what it is without kills.
func TestKilledAnywhereNothingIsLostOrTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: make soak runs it")
	}
	for _, c := range []struct {
		name     string
		copies   int
		manners  string
		lifetime time.Duration // the longest between two kills
	}{
		{"one copy", 1, "polite", 1600 * time.Millisecond},
		{"two copies", 2, "polite", 1600 * time.Millisecond},
		{"three copies that take no notice of leases", 3, "rude", 900 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scenarioOf(uint64(c.copies), 300, 150*time.Millisecond, 700*time.Millisecond), valkeytest.Real(t))
			w.target(strings.NewReplacer("clusters/prod", "p", "attributionGrace: 2s", "attributionGrace: 5s").Replace(storyTarget))
			random := rand.New(rand.NewPCG(uint64(c.copies), 7))
			children := make([]child, c.copies)
			w.git.Inject(gittest.Pushes, 1000, gittest.LoseRequest)
			for i := range children {
				w.start(&children[i], childVariable+"="+c.manners)
				defer children[i].kill()
			}
			w.awaitReplays() // they are not in git yet, and the copies are killed from now on
			w.clock.Run(1)
			var kills int
			var atPush atomic.Int32
			for kills < 50 || w.clock.Now() < w.session.End() { // a busy machine gets to fewer in the session's time
				victim := &children[random.IntN(c.copies)]
				kill := func() { atPush.Add(1); victim.kill() }
				what := -1 // nothing lands until each copy was killed a few times: the first replay is made by one and pushed by another
				if kills >= 3*c.copies {
					w.git.ClearFaults()
					what = random.IntN(4)
				}
				switch what {
				case 0: // as the push arrives
					w.git.Inject(gittest.Pushes, 1, gittest.Before(kill))
				case 2: // before the push arrives
					w.git.Inject(gittest.Pushes, 1, func(rw http.ResponseWriter, r *http.Request, git http.Handler) {
						kill()
						gittest.LoseRequest(rw, r, git)
					})
				case 1: // when it has landed and nobody knows
					w.git.Inject(gittest.Pushes, 1, func(rw http.ResponseWriter, r *http.Request, git http.Handler) {
						gittest.LoseAnswer(rw, r, gittest.After(git, kill))
					})
				}
				end := time.Now().Add(time.Duration(random.Int64N(int64(c.lifetime))))
				for time.Now().Before(end) {
					w.facts()
					time.Sleep(20 * time.Millisecond)
				}
				victim.kill()
				kills++
				w.start(victim, childVariable+"="+c.manners)
			}
			w.facts()
			w.git.ClearFaults()
			for i := range children {
				children[i].kill()
			}
			time.Sleep(1200 * time.Millisecond) // the leases of the dead
			before := w.repo.Git("rev-list", "--count", "main")
			v := w.settled(5*time.Second, "p", storyResources...)
			t.Logf("%d kills, %d of them at a push; %d changes; commits %s before the last drain, %s after it", kills, atPush.Load(), v.Changes, before, w.repo.Git("rev-list", "--count", "main"))
			if atPush.Load() < 5 {
				t.Errorf("only %d of %d kills at a push", atPush.Load(), kills)
			}
			if !v.Sound() {
				t.Errorf("%s", strings.Join(v.Faults(), "\n"))
			}
		})
	}
}
