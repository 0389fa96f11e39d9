package gitcommit_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// pushing is a repository with one file, and a push built on its tip.
func pushing(t *testing.T) (*gittest.Server, *gittest.Repository, *gitcommit.Repository, *gitcommit.Built) {
	t.Helper()
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "first", map[string]string{"a/b": "1\n"})
	r := open(t, repo, gitcommit.Options{})
	tip, err := r.Tip(timeout(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	built, err := r.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", write("a/c", "2\n"))})
	if err != nil {
		t.Fatal(err)
	}
	server.Records()
	return server, repo, r, built
}

func TestPushOutcomesOnARealServer(t *testing.T) {
	hook := func(name, script string) func(*gittest.Server, *gittest.Repository) {
		return func(_ *gittest.Server, repo *gittest.Repository) { repo.Hook(name, script) }
	}
	fault := func(f func(*gittest.Repository) gittest.Fault) func(*gittest.Server, *gittest.Repository) {
		return func(server *gittest.Server, repo *gittest.Repository) { server.Inject(gittest.Pushes, 1, f(repo)) }
	}
	always := func(f gittest.Fault) func(*gittest.Server, *gittest.Repository) {
		return fault(func(*gittest.Repository) gittest.Fault { return f })
	}
	foreign := func(repo *gittest.Repository) {
		repo.Commit("main", "foreign", map[string]string{"their/file": "x\n"})
	}
	cases := []struct {
		name    string
		set     func(*gittest.Server, *gittest.Repository)
		want    gitcommit.Class
		words   string // that must be in the outcome's words
		fails   bool   // an error beside the outcome
		settled bool
		landed  bool // in the repository
	}{
		{"everything is fine", func(*gittest.Server, *gittest.Repository) {}, gitcommit.Landed, "", false, false, true},
		{"a foreign commit came in between", fault(func(repo *gittest.Repository) gittest.Fault { return gittest.Before(func() { foreign(repo) }) }), gitcommit.LostRace, "but expected", false, false, false},
		{"the branch is gone", fault(func(repo *gittest.Repository) gittest.Fault {
			return gittest.Before(func() { repo.Git("update-ref", "-d", "refs/heads/main") })
		}), gitcommit.ReResolve, "unable to resolve", false, false, false},
		{"somebody holds the lock", fault(func(repo *gittest.Repository) gittest.Fault { return repo.HoldLock("main") }), gitcommit.RetrySameTip, "File exists", false, false, false},
		{"a pre-receive hook refuses", hook("pre-receive", "echo 'main is frozen until Monday' >&2; exit 1"), gitcommit.Policy, "main is frozen until Monday", true, false, false},
		{"an update hook refuses", hook("update", "echo 'not you' >&2; exit 1"), gitcommit.Policy, "not you", true, false, false},
		{"the answer is lost, and the push landed", always(gittest.LoseAnswer), gitcommit.Landed, "", false, true, true},
		{"the request is lost", always(gittest.LoseRequest), gitcommit.RetrySameTip, "", false, true, false},
		{"the answer is cut", always(gittest.CutAnswer(12)), gitcommit.Landed, "", false, true, true},
		{"the answer is lost, and somebody built on our push", fault(func(repo *gittest.Repository) gittest.Fault {
			return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
				gittest.LoseAnswer(w, r, gittest.After(git, func() { foreign(repo) }))
			}
		}), gitcommit.Landed, "", false, true, true},
		{"the request is lost, and somebody else pushed", fault(func(repo *gittest.Repository) gittest.Fault {
			return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
				foreign(repo)
				gittest.LoseRequest(w, r, git)
			}
		}), gitcommit.LostRace, "", false, true, false},
		{"the server is overloaded", always(gittest.Refuse(503, "7")), gitcommit.Throttled, "", true, false, false},
		{"we are throttled", always(gittest.Refuse(429, "7")), gitcommit.Throttled, "", true, false, false},
		{"the server failed inside", always(gittest.Refuse(500, "")), gitcommit.RetrySameTip, "", false, true, false},
		{"the credentials are refused", always(gittest.Refuse(401, "")), gitcommit.Auth, "", true, false, false},
		{"we may not push", always(gittest.Refuse(403, "")), gitcommit.Auth, "", true, false, false},
		{"there is no such repository", always(gittest.Refuse(404, "")), gitcommit.Configuration, "", true, false, false},
		{"the push is too large", always(gittest.Refuse(413, "")), gitcommit.TooLarge, "", true, false, false},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			server, repo, r, built := pushing(t)
			c.set(server, repo)
			outcome, err := r.Push(timeout(t), built)
			if outcome.Class != c.want || (err != nil) != c.fails || outcome.Settled != c.settled {
				t.Errorf("got %+v, %v; want %s, error %v, settled %v", outcome, err, c.want, c.fails, c.settled)
			}
			if !strings.Contains(outcome.Words, c.words) {
				t.Errorf("words got %q, want %q in them", outcome.Words, c.words)
			}
			var refused *gitcommit.PushError
			if c.fails && (!errors.As(err, &refused) || refused.Outcome.Class != c.want) {
				t.Errorf("the error is %v, want a PushError of class %s", err, c.want)
			}
			if c.want == gitcommit.Throttled && (outcome.RetryAfter < 5*time.Second || outcome.RetryAfter > 7*time.Second) {
				t.Errorf("retry after got %s, want 7s", outcome.RetryAfter)
			}
			if line := repo.Git("rev-list", "--all"); strings.Contains(line, built.New.String()) != c.landed {
				t.Errorf("landed in the repository: got %v, want %v", !c.landed, c.landed)
			}
		})
	}
}

func TestAPushThatLandsLateIsNotMadeTwice(t *testing.T) {
	server, repo, r, built := pushing(t)
	server.Inject(gittest.Pushes, 1, gittest.ActLate(300*time.Millisecond))
	outcome, err := r.Push(timeout(t), built)
	if err != nil || outcome.Class != gitcommit.RetrySameTip || !outcome.Settled {
		t.Fatalf("got %+v, %v; want the tip to say that it did not land yet", outcome, err)
	}
	for repo.Tip("main") != built.New.String() {
		time.Sleep(10 * time.Millisecond)
	}
	repo.Commit("main", "foreign", map[string]string{"f": "f\n"})
	outcome, err = r.Push(timeout(t), built)
	if err != nil || outcome.Class != gitcommit.Landed || !outcome.Settled {
		t.Errorf("pushed again: got %+v, %v; want it recognised as landed", outcome, err)
	}
}

func TestUnknownStaysUnknownWithoutATip(t *testing.T) {
	server, repo, r, built := pushing(t)
	server.Inject(gittest.Pushes, 1, gittest.LoseAnswer)
	server.Inject(gittest.Reads, 9, gittest.Refuse(500, ""))
	outcome, err := r.Push(timeout(t), built)
	if err == nil || outcome.Class != gitcommit.Unknown {
		t.Errorf("got %+v, %v; want unknown", outcome, err)
	}
	server.ClearFaults()
	outcome, err = r.Push(timeout(t), built)
	if err != nil || outcome.Class != gitcommit.Landed {
		t.Errorf("pushed again: got %+v, %v; want landed", outcome, err)
	}
	if got := repo.Git("rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits, want 2", got)
	}
}

func TestLandGetsThere(t *testing.T) {
	cases := []struct {
		name   string
		set    func(*testing.T, *gittest.Server, *gittest.Repository, *memory)
		builds int
	}{
		{"at once", func(*testing.T, *gittest.Server, *gittest.Repository, *memory) {}, 1},
		{"after three lost races", func(_ *testing.T, s *gittest.Server, repo *gittest.Repository, _ *memory) {
			s.Inject(gittest.Pushes, 3, gittest.Before(func() { repo.Commit("main", "foreign", map[string]string{"their/file": time.Now().String()}) }))
		}, 4},
		{"after a held lock, a lost answer to a lost request, and a busy server", func(_ *testing.T, s *gittest.Server, repo *gittest.Repository, _ *memory) {
			s.Inject(gittest.Pushes, 1, repo.HoldLock("main"))
			s.Inject(gittest.Pushes, 1, gittest.LoseRequest)
			s.Inject(gittest.Pushes, 1, gittest.Refuse(503, ""))
		}, 1},
		{"on a branch that was deleted meanwhile", func(_ *testing.T, s *gittest.Server, repo *gittest.Repository, _ *memory) {
			s.Inject(gittest.Pushes, 1, gittest.Before(func() { repo.Git("update-ref", "-d", "refs/heads/main") }))
		}, 2},
		{"from a remembered tip that the branch has left", func(_ *testing.T, _ *gittest.Server, repo *gittest.Repository, _ *memory) {
			repo.Commit("main", "foreign", map[string]string{"their/file": "1\n"})
		}, 2},
		{"from a remembered tip that no longer exists", func(_ *testing.T, _ *gittest.Server, _ *gittest.Repository, m *memory) {
			m.set(func(m *memory) {
				for key := range m.tips {
					m.tips[key] = strings.Repeat("ab", 20)
				}
				m.objects = map[string][]byte{}
			})
		}, 2},
		{"with a poisoned cache", func(_ *testing.T, _ *gittest.Server, _ *gittest.Repository, m *memory) {
			m.set(func(m *memory) { m.poison = true })
		}, 1},
		{"with a cache that is down", func(_ *testing.T, _ *gittest.Server, _ *gittest.Repository, m *memory) {
			m.set(func(m *memory) { m.down = true })
		}, 1},
		{"with a cache of trees that the server has lost", func(t *testing.T, _ *gittest.Server, repo *gittest.Repository, _ *memory) {
			tree := repo.Git("rev-parse", "main:a")
			first := repo.Git("rev-list", "--max-parents=0", "main")
			repo.Git("update-ref", "refs/heads/main", first) // rewritten, and what it had is collected
			repo.Git("reflog", "expire", "--expire=now", "--all")
			repo.Git("prune", "--expire=now")
			if _, err := repo.TryGit("cat-file", "-e", tree); err == nil {
				t.Fatal("the tree is still there")
			}
			repo.Commit("main", "again", map[string]string{"other": "1\n"})
		}, 2},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			server := gittest.NewServer(t)
			repo := server.Repository("cfg.git")
			repo.Commit("main", "first", map[string]string{"a/b": "1\n", "z": "1\n"})
			m := newMemory()
			options := gitcommit.Options{Cache: m, Tips: m}
			landing(t, open(t, repo, options), "before", "a/before", "0\n") // fills the cache
			c.set(t, server, repo, m)
			builds := landing(t, open(t, repo, options), "after", "a/after", "1\n")
			if builds != c.builds {
				t.Errorf("built %d times, want %d", builds, c.builds)
			}
			if got := repo.Read("main", "a/after"); got != "1\n" {
				t.Errorf("the file got %q", got)
			}
			if got := strings.Count(repo.Git("log", "--format=%s", "main")+"\n", "after\n"); got != 1 {
				t.Errorf("the commit is there %d times", got)
			}
		})
	}
}

// TestLandClaimsNothingItCouldNotRead: after a lost race the branch is looked at; when that fails, nothing has landed.
func TestLandClaimsNothingItCouldNotRead(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "first", map[string]string{"a": "1\n"})
	reads := 0
	server.Inject(gittest.Pushes, 1, gittest.Before(func() {
		repo.Commit("main", "another's", map[string]string{"b": "1\n"})
		server.Inject(func(r *http.Request) bool {
			if gittest.Reads(r) {
				reads++
			}
			return reads > 1 // the first asks for the tip
		}, 1, gittest.Refuse(http.StatusInternalServerError, ""))
	}))
	r := open(t, repo, gitcommit.Options{})
	_, outcome, err := r.Land(timeout(t), "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		return r.Build(ctx, tip, []gitcommit.Commit{commitOf("m", write("c", "1"))})
	})
	if outcome.Class != gitcommit.LostRace || err == nil {
		t.Errorf("got %s, %v; want a lost race and an error", outcome.Class, err)
	}
}

// landing lands one file and returns how often it was built.
func landing(t *testing.T, r *gitcommit.Repository, message, path, content string) int {
	t.Helper()
	builds := 0
	_, outcome, err := r.Land(timeout(t), "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		builds++
		return r.Build(ctx, tip, []gitcommit.Commit{commitOf(message, write(path, content))})
	})
	if err != nil || outcome.Class != gitcommit.Landed {
		t.Fatalf("got %+v, %v; want it landed", outcome, err)
	}
	return builds
}

func TestLandStopsAtAPolicy(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Hook("pre-receive", "echo 'GH006: Protected branch update failed' >&2; exit 1")
	r := open(t, repo, gitcommit.Options{})
	_, outcome, err := r.Land(timeout(t), "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		return r.Build(ctx, tip, []gitcommit.Commit{commitOf("m", write("a", "1"))})
	})
	if outcome.Class != gitcommit.Policy || err == nil || !strings.Contains(err.Error(), "GH006: Protected branch update failed") {
		t.Errorf("got %+v, %v", outcome, err)
	}
	pushes := 0
	for _, record := range server.Records() {
		if strings.HasSuffix(record.Path, "/git-receive-pack") {
			pushes++
		}
	}
	if pushes != 1 {
		t.Errorf("pushed %d times, want once", pushes)
	}
}

func TestLandHasNothingToDo(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	m := newMemory()
	r := open(t, repo, gitcommit.Options{Cache: m, Tips: m})
	landing(t, r, "m", "a", "1\n")
	repo.Commit("main", "foreign", map[string]string{"a": "2\n"})
	// The remembered tip says that there is nothing to do; the branch says otherwise.
	if builds := landing(t, r, "again", "a", "1\n"); builds != 2 {
		t.Errorf("built %d times, want 2", builds)
	}
	if got := repo.Read("main", "a"); got != "1\n" {
		t.Errorf("got %q, want the file as it should be", got)
	}
	before := repo.Tip("main")
	landing(t, r, "nothing", "a", "1\n")
	if got := repo.Tip("main"); got != before {
		t.Errorf("the branch moved to %s though nothing changed", got)
	}
}

// TestAFailingCacheIsAskedOnce: each question to a store that hangs would cost its whole deadline.
func TestAFailingCacheIsAskedOnce(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "first", map[string]string{"a/b/c": "1\n"})
	m := newMemory()
	m.down = true
	var told []error
	r := open(t, repo, gitcommit.Options{Cache: m, Forgetful: func(err error) { told = append(told, err) }})
	landing(t, r, "m", "a/b/d", "1\n")
	if m.gets != 1 || len(told) != 1 || !errors.Is(told[0], errDown) {
		t.Errorf("the cache was asked %d times and %v was told, want once", m.gets, told)
	}
}

// TestACacheCannotForge: a well-formed tree under another tree's id, of objects that the server has, must not get in.
func TestACacheCannotForge(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "first", map[string]string{"a/b": "1\n", "z": "2\n"})
	blob := gitobject.MustParseID(repo.Git("rev-parse", "main:z"))
	forged := gitobject.New(gitobject.SHA1, gitobject.TreeType, gitobject.EncodeTree(gitobject.SHA1, []gitobject.Entry{
		{Name: "b", Mode: gitobject.File, ID: blob}, {Name: "smuggled", Mode: gitobject.Executable, ID: blob}}))
	m := newMemory()
	landing(t, open(t, repo, gitcommit.Options{Cache: m, Tips: m}), "before", "z", "3\n")
	forgeries := 0
	for key := range m.objects {
		if strings.HasSuffix(key, repo.Git("rev-parse", "main:a")) || strings.HasSuffix(key, repo.Git("rev-parse", "main^{tree}")) {
			m.objects[key] = forged.Loose()
			forgeries++
		}
	}
	if forgeries == 0 {
		t.Fatal("nothing was cached")
	}
	var told []error
	landing(t, open(t, repo, gitcommit.Options{Cache: m, Tips: m, Forgetful: func(err error) { told = append(told, err) }}), "after", "a/c", "4\n")
	want := map[string]string{"a/b": "1\n", "a/c": "4\n", "z": "3\n"}
	if diff := cmp.Diff(want, contents(repo, "main")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(told) != forgeries {
		t.Errorf("%d forgeries, told of %v", forgeries, told)
	}
}
