package gitcommit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// serverKinds are the servers that are out there, made of a modern one.
var serverKinds = []struct {
	name string
	set  func(*gittest.Server, *gittest.Repository)
	// requests that a cold walk to one file takes, from reading the tip to the push
	requests int
	learns   bool // asked in the wrong object format first
}{
	{"modern", func(*gittest.Server, *gittest.Repository) {}, 7, true},
	{"without filters", func(_ *gittest.Server, repo *gittest.Repository) {
		repo.Configure("uploadpack.allowFilter", "false")
	}, 4, true},
	{"without protocol v2", func(server *gittest.Server, _ *gittest.Repository) { server.WithoutV2() }, 5, false},
	{"without either", func(server *gittest.Server, repo *gittest.Repository) {
		server.WithoutV2()
		repo.Configure("uploadpack.allowFilter", "false")
	}, 5, false},
	{"that insists on multi_ack", func(server *gittest.Server, _ *gittest.Repository) {
		server.WithoutV2()
		server.Inject(gittest.Reads, 1000, func(w http.ResponseWriter, r *http.Request, git http.Handler) {
			body, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(string(body), " multi_ack") {
				http.Error(w, "multi_ack is required", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			git.ServeHTTP(w, r)
		})
	}, 5, false},
}

func TestServersOfAllKinds(t *testing.T) {
	for _, kind := range serverKinds {
		t.Run(strings.ReplaceAll(kind.name, " ", "_"), func(t *testing.T) {
			eachFormat(t, func(t *testing.T, server *gittest.Server, repo *gittest.Repository) {
				paths := repo.Fill("main", 120)
				kind.set(server, repo)
				exercise(t, gitcommit.Remote{URL: repo.URL}, repo, paths)
				cold := open(t, repo, gitcommit.Options{})
				server.Records()
				land(t, cold, "main", commitOf("one file", write(paths[7], "cold: 1\n")))
				want := kind.requests
				if kind.learns && len(repo.Tip("main")) == 64 {
					want += 2 // to learn that it is a SHA-256 repository
				}
				if records := server.Records(); len(records) != want {
					t.Errorf("a cold walk took %d requests, want %d: %v", len(records), want, records)
				}
			})
		})
	}
}

// exercise does everything that the package offers once, on a repository that Fill has filled.
func exercise(t *testing.T, remote gitcommit.Remote, repo *gittest.Repository, paths []string) {
	t.Helper()
	ctx := timeout(t)
	r, err := gitcommit.Open(remote, gitcommit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old := repo.Tip("main")
	for i := range 3 {
		land(t, r, "main", commitOf(fmt.Sprint("change ", i), write(paths[11*i], fmt.Sprint("n: ", i, "\n")), remove(paths[100+i])),
			commitOf(fmt.Sprint("add ", i), write(fmt.Sprintf("new/dir-%d/file.yaml", i), "x\n")))
	}
	land(t, r, "feature/first", commitOf("a new branch", write("only.yaml", "y\n")))
	if got := repo.Read("feature/first", "only.yaml"); got != "y\n" {
		t.Errorf("the new branch: got %q", got)
	}
	fresh, err := gitcommit.Open(remote, gitcommit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := fresh.Tip(ctx, "main")
	if err != nil || tip.ID.String() != repo.Tip("main") {
		t.Fatalf("tip got %v, %v; want %s", tip, err, repo.Tip("main"))
	}
	files, err := fresh.Files(ctx, tip, "")
	if err != nil {
		t.Fatal(err)
	}
	want := repo.Files("main")
	if !slices.Equal(slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("got %d files, want %d", len(files), len(want))
	}
	for path, entry := range files {
		if head := fmt.Sprintf("%06o blob %s", entry.Mode, entry.ID); head != want[path] {
			t.Errorf("%s: got %s, want %s", path, head, want[path])
		}
	}
	third := gitobject.MustParseID(repo.Git("rev-parse", "main~3"))
	for _, id := range []gitcommit.ObjectID{tip.ID, third, gitobject.MustParseID(old)} {
		another, err := gitcommit.Open(remote, gitcommit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		contains, err := another.Contains(ctx, tip, gitcommit.ObjectID{}, id)
		if err != nil || !contains {
			t.Errorf("%s contained: got %v, %v", id, contains, err)
		}
	}
	if missing, err := fresh.Tip(ctx, "nobody"); err != nil || !missing.ID.IsZero() {
		t.Errorf("a branch that is not there: got %v, %v", missing, err)
	}
}

func TestOverSSH(t *testing.T) {
	for _, v2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("v2=%v", v2), func(t *testing.T) {
			eachFormat(t, func(t *testing.T, server *gittest.Server, repo *gittest.Repository) {
				ssh := server.SSH(gittest.SSHOptions{OldGit: !v2})
				url := ssh.URL("org/cfg.git")
				identity, err := gitauth.NewSSH(ssh.Identity, "", ssh.KnownHosts())
				if err != nil {
					t.Fatal(err)
				}
				var anonymous *gitauth.Credentials
				remote := gitcommit.Remote{URL: url, Credentials: anonymous.WithSSH(identity)}
				first, err := gitcommit.Open(remote, gitcommit.Options{})
				if err != nil {
					t.Fatal(err)
				}
				land(t, first, "main", commitOf("the first commit", write("a", "1\n")))
				paths := fillOnto(repo, "main")
				exercise(t, remote, repo, paths)
				repo.Hook("pre-receive", "echo frozen >&2; exit 1")
				tip, err := first.Tip(timeout(t), "main")
				if err != nil {
					t.Fatal(err)
				}
				built, err := first.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", write("b", "1"))})
				if err != nil {
					t.Fatal(err)
				}
				outcome, err := first.Push(timeout(t), built)
				if outcome.Class != gitcommit.Policy || !strings.Contains(outcome.Words, "frozen") || err == nil {
					t.Errorf("a hook refuses: got %+v, %v", outcome, err)
				}
			})
		})
	}
}

// fillOnto replaces what is on the branch by what Fill makes.
func fillOnto(repo *gittest.Repository, branch string) []string {
	repo.Git("update-ref", "-d", "refs/heads/"+branch)
	return repo.Fill(branch, 120)
}

func TestCredentials(t *testing.T) {
	const secret = "hunter2-s3cr3t"
	t.Run("password", func(t *testing.T) {
		server := gittest.NewServer(t)
		repo := server.Repository("cfg.git")
		server.RequirePassword("alice", secret)
		r, err := gitcommit.Open(gitcommit.Remote{URL: repo.URL, Credentials: gitauth.Basic("alice", secret)}, gitcommit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		land(t, r, "main", commitOf("m", write("a", "1")))
	})
	t.Run("token over TLS", func(t *testing.T) {
		server := gittest.NewTLSServer(t)
		repo := server.Repository("cfg.git")
		server.RequireToken(secret)
		credentials, err := gitauth.Bearer(secret).WithTLS(server.CA, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := gitcommit.Open(gitcommit.Remote{URL: repo.URL, Credentials: credentials}, gitcommit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		land(t, r, "main", commitOf("m", write("a", "1")))
	})
	t.Run("refused, and no error repeats them", func(t *testing.T) {
		server := gittest.NewServer(t)
		repo := server.Repository("cfg.git")
		server.RequirePassword("alice", "another")
		withUserinfo := strings.Replace(repo.URL, "http://", "http://alice:"+secret+"@", 1)
		for _, url := range []string{repo.URL, withUserinfo, "https://alice:" + secret + "@127.0.0.1:1/r.git", "https://alice:" + secret + "%zz@127.0.0.1/r.git", "ssh://git:" + secret + "@127.0.0.1:1/r.git"} {
			r, err := gitcommit.Open(gitcommit.Remote{URL: url, Credentials: gitauth.Basic("alice", secret)}, gitcommit.Options{})
			if err == nil {
				_, err = r.Tip(timeout(t), "main")
			}
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("the tip of %s: got %v", strings.ReplaceAll(url, secret, "***"), err)
			}
			if r == nil {
				continue
			}
			built, err := r.Build(timeout(t), gitcommit.Tip{Branch: "main"}, []gitcommit.Commit{commitOf("m", write("a", "1"))})
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := r.Push(timeout(t), built)
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, outcome), secret) {
				t.Errorf("a push to %s: got %v", strings.ReplaceAll(url, secret, "***"), err)
			}
		}
	})
}

func TestRefusesBranchNamesThatGitRefuses(t *testing.T) {
	server := gittest.NewServer(t)
	r := open(t, server.Repository("cfg.git"), gitcommit.Options{})
	for _, branch := range []string{"", "a b", "a\nref-prefix refs/", "..", "x.lock", "\x01", "a..b", "a~1", "/a", "a//b"} {
		if _, err := r.Tip(timeout(t), branch); err == nil {
			t.Errorf("the tip of %q was read", branch)
		}
		if built, err := r.Build(timeout(t), gitcommit.Tip{Branch: branch}, []gitcommit.Commit{commitOf("m", write("a", "1"))}); err == nil {
			t.Errorf("commits for %q were built: %v", branch, built)
		}
	}
	if n := len(server.Records()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestFollowsARepositoryThatMoved(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("org/app.git")
	server.RequirePassword("alice", "pw")
	old := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/org/app/") }
	server.Inject(old, 1000, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), "/org/app/", "/org/app.git/", 1), http.StatusMovedPermanently)
	})
	m := newMemory()
	remote := gitcommit.Remote{URL: strings.TrimSuffix(repo.URL, ".git"), Credentials: gitauth.Basic("alice", "pw")}
	for i, message := range []string{"discovered by the listing", "discovered by the push itself"} {
		r, err := gitcommit.Open(remote, gitcommit.Options{Cache: m, Tips: m})
		if err != nil {
			t.Fatal(err)
		}
		landing(t, r, message, "a", fmt.Sprint(i))
		if got := repo.Git("log", "-1", "--format=%s", "main"); got != message {
			t.Errorf("the last commit is %q, want %q", got, message)
		}
	}
}

func TestSendsNothingToAnotherOrigin(t *testing.T) {
	server, other := gittest.NewServer(t), gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	other.Repository("cfg.git")
	m := newMemory()
	remote := gitcommit.Remote{URL: repo.URL, Credentials: gitauth.Basic("alice", "pw")}
	r, err := gitcommit.Open(remote, gitcommit.Options{Cache: m, Tips: m})
	if err != nil {
		t.Fatal(err)
	}
	landing(t, r, "before", "a", "1")
	server.Inject(func(*http.Request) bool { return true }, 1000, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	_, outcome, err := r.Land(timeout(t), "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		return r.Build(ctx, tip, []gitcommit.Commit{commitOf("after", write("a", "2"))})
	})
	if err == nil || outcome.Class != gitcommit.Configuration {
		t.Errorf("got %+v, %v; want it to be a matter of configuration", outcome, err)
	}
	if records := other.Records(); len(records) != 0 {
		t.Errorf("the other origin got %v", records)
	}
}

// TestRefusedOverSSHIsNoRiddle: a push that did not even begin is not settled by the branch, nor tried again.
func TestRefusedOverSSHIsNoRiddle(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "first", map[string]string{"a": "1\n"})
	ssh, other := server.SSH(gittest.SSHOptions{}), server.SSH(gittest.SSHOptions{})
	var anonymous *gitauth.Credentials
	with := func(identity, knownHosts []byte) *gitcommit.Repository {
		read, err := gitauth.NewSSH(identity, "", knownHosts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := gitcommit.Open(gitcommit.Remote{URL: ssh.URL("cfg.git"), Credentials: anonymous.WithSSH(read)}, gitcommit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	good := with(ssh.Identity, ssh.KnownHosts())
	tip, err := good.Tip(timeout(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	built, err := good.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", write("b", "1"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		r    *gitcommit.Repository
		want gitcommit.Class
	}{
		{"a key that is not let in", with(other.Identity, ssh.KnownHosts()), gitcommit.Auth},
		{"a host that is not known", with(ssh.Identity, other.KnownHosts()), gitcommit.Configuration},
		{"a host with another key", with(ssh.Identity, gittest.KnownHost(ssh.Addr, other.HostKeys["ed25519"])), gitcommit.Configuration},
		{"the right one", good, gitcommit.Landed},
	} {
		if outcome, err := c.r.Push(timeout(t), built); outcome.Class != c.want || (err == nil) != (c.want == gitcommit.Landed) {
			t.Errorf("%s: got %s, %v; want %s", c.name, outcome.Class, err, c.want)
		}
	}
}

// TestAnswersLostOnOtherConnections: an SSH connection that breaks and an HTTP/2 stream that is reset are settled by
// the branch as well.
func TestAnswersLostOnOtherConnections(t *testing.T) {
	t.Run("ssh", func(t *testing.T) {
		server := gittest.NewServer(t)
		repo := server.Repository("cfg.git")
		repo.Commit("main", "first", map[string]string{"a": "1\n"})
		ssh := server.SSH(gittest.SSHOptions{})
		identity, err := gitauth.NewSSH(ssh.Identity, "", ssh.KnownHosts())
		if err != nil {
			t.Fatal(err)
		}
		var anonymous *gitauth.Credentials
		// The branch has moved, and the server does not say so before the connection is gone.
		gone := filepath.Join(t.TempDir(), "gone")
		repo.Hook("reference-transaction", `[ "$1" != committed ] || while [ ! -e '`+gone+`' ]; do sleep 0.05; done`)
		lost(t, repo, gitcommit.Remote{URL: ssh.URL("cfg.git"), Credentials: anonymous.WithSSH(identity)}, func() {
			ssh.Drop()
			if err := os.WriteFile(gone, nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("http2", func(t *testing.T) {
		server := gittest.NewTLSServer(t)
		repo := server.Repository("cfg.git")
		repo.Commit("main", "first", map[string]string{"a": "1\n"})
		credentials, err := gitauth.Basic("alice", "pw").WithTLS(server.CA, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		server.Inject(gittest.Pushes, 1, gittest.LoseAnswer)
		lost(t, repo, gitcommit.Remote{URL: repo.URL, Credentials: credentials}, func() {})
	})
}

// lost pushes, calls cut once the branch has moved, and wants the push recognised.
func lost(t *testing.T, repo *gittest.Repository, remote gitcommit.Remote, cut func()) {
	t.Helper()
	r, err := gitcommit.Open(remote, gitcommit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := r.Tip(timeout(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	built, err := r.Build(timeout(t), tip, []gitcommit.Commit{commitOf("m", write("b", "1\n"))})
	if err != nil {
		t.Fatal(err)
	}
	var cutting sync.WaitGroup
	ctx := timeout(t)
	cutting.Go(func() {
		for repo.Tip("main") == tip.ID.String() && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cut()
	})
	outcome, err := r.Push(ctx, built)
	cutting.Wait()
	if err != nil || outcome.Class != gitcommit.Landed || !outcome.Settled {
		t.Errorf("got %+v, %v; want it settled as landed", outcome, err)
	}
}
