package gitwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// manyRefs gives a repository a commit at refs/heads/main and n branches beside it, as one packed-refs file.
func manyRefs(t testing.TB, r *gittest.Repository, n int) (head string) {
	t.Helper()
	head = r.Commit("main", "first", map[string]string{"f": "x"})
	var b bytes.Buffer
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range n {
		fmt.Fprintf(&b, "%s refs/heads/branch-%07d\n", head, i)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "packed-refs"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return head
}

func credentials(t testing.TB, url string, data map[string][]byte) *gitauth.Credentials {
	t.Helper()
	cred, err := gitauth.FromSecret(endpoint(t, url), data)
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

func TestListRefsOfARealServer(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"v2", "v0"} {
			t.Run(format+" "+version, func(t *testing.T) {
				server := gittest.NewServer(t)
				if version == "v0" {
					server.WithoutV2()
				}
				r := server.Repository("r.git")
				if format == "sha256" {
					r = server.RepositorySHA256("s.git")
				}
				commit := r.Commit("main", "first", map[string]string{"f": "x"})
				r.Git("tag", "light", "main")
				r.Git("tag", "-a", "-m", "x", "v1", "main")
				r.Git("tag", "-a", "-m", "x", "v1-of-tag", "v1")
				r.Git("symbolic-ref", "HEAD", "refs/heads/main")
				want := map[string]string{
					"refs/heads/main":        commit,
					"refs/tags/light":        commit,
					"refs/tags/v1":           r.Git("rev-parse", "v1"),
					"refs/tags/v1^{}":        commit,
					"refs/tags/v1-of-tag":    r.Git("rev-parse", "v1-of-tag"),
					"refs/tags/v1-of-tag^{}": commit,
				}
				pool, ep := newPool(t), endpoint(t, r.URL)
				refs, known, err := pool.ListRefs(t.Context(), ep, nil, nil, gitwire.Knowledge{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, refs); diff != "" {
					t.Errorf("all refs (-want +got):\n%s", diff)
				}
				server.Records()
				refs, _, err = pool.ListRefs(t.Context(), ep, nil, []string{"refs/tags/v1"}, known)
				if err != nil {
					t.Fatal(err)
				}
				want = map[string]string{"refs/tags/v1": want["refs/tags/v1"], "refs/tags/v1^{}": commit}
				if diff := cmp.Diff(want, refs); diff != "" {
					t.Errorf("refs/tags/v1 (-want +got):\n%s", diff)
				}
				if records := server.Records(); len(records) != 1 {
					t.Errorf("a listing with knowledge %+v took %d requests, want 1", known, len(records))
				}
			})
		}
	}
}

func TestListRefsOfAnEmptyServerRepository(t *testing.T) {
	server := gittest.NewServer(t)
	for _, r := range []*gittest.Repository{server.Repository("a.git"), server.RepositorySHA256("b.git")} {
		refs, _, err := newPool(t).ListRefs(t.Context(), endpoint(t, r.URL), nil, nil, gitwire.Knowledge{})
		if err != nil || len(refs) != 0 {
			t.Errorf("%s: refs %v, error %v", r.URL, refs, err)
		}
	}
}

// One unchanged repository costs less than 1 kB from server to client and 150 allocations, however many refs it has.
func TestAListingDoesNotGrowWithTheRepository(t *testing.T) {
	server := gittest.NewServer(t)
	for _, n := range []int{0, 999, 9_999, 99_999} {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			r := server.Repository(fmt.Sprintf("r%d.git", n))
			head := manyRefs(t, r, n)
			wire := newCountingProxy(t, server.URL)
			pool, ep := newPool(t), endpoint(t, strings.Replace(r.URL, server.URL, wire.url, 1))
			one := func() {
				refs, _, err := pool.ListRefs(t.Context(), ep, nil, []string{"refs/heads/main"}, gitwire.Knowledge{})
				if err != nil || len(refs) != 1 || refs["refs/heads/main"] != head {
					t.Fatalf("refs %v, error %v", refs, err)
				}
			}
			one()
			if down := wire.down.Load(); down >= 1000 {
				t.Errorf("%d bytes from server to client, want less than 1000", down)
			}
			// The server runs in this process, so its recorded answer stands in for it when allocations are counted.
			pool, ep = newPool(t), endpoint(t, gittest.Replay(t, wire.answer())+"/"+filepath.Base(r.Dir))
			one()
			if allocs := testing.AllocsPerRun(20, one); allocs >= 150 {
				t.Errorf("%v allocations per listing, want less than 150", allocs)
			} else {
				t.Logf("%d bytes, %v allocations", wire.down.Load(), allocs)
			}
		})
	}
}

func TestSSH(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(fmt.Sprintf("old git %v, %s", old, format), func(t *testing.T) {
				server := gittest.NewServer(t)
				r := server.Repository("r.git")
				if format == "sha256" {
					r = server.RepositorySHA256("r2.git")
				}
				commit := r.Commit("main", "first", map[string]string{"f": "x"})
				r.Git("tag", "-a", "-m", "x", "v1", "main")
				door := server.SSH(gittest.SSHOptions{OldGit: old})
				url := door.URL(filepath.Base(r.Dir))
				cred := credentials(t, url, map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()})
				pool := newPool(t)
				for range 5 {
					refs, _, err := pool.ListRefs(t.Context(), endpoint(t, url), cred, nil, gitwire.Knowledge{})
					if err != nil {
						t.Fatal(err)
					}
					if refs["refs/heads/main"] != commit || refs["refs/tags/v1^{}"] != commit || len(refs) != 3 {
						t.Errorf("refs %v, want main and v1 at %s", refs, commit)
					}
				}
				if door.Handshakes() != 1 || door.Sessions() != 5 {
					t.Errorf("%d handshakes and %d sessions for 5 listings, want 1 and 5", door.Handshakes(), door.Sessions())
				}
			})
		}
	}
}

func TestAnSSHServerNeedNotAnswerWhatComesBeforeTheCommand(t *testing.T) {
	server := gittest.NewServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	door := server.SSH(gittest.SSHOptions{Terse: true})
	url := door.URL("r.git")
	cred := credentials(t, url, map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	refs, _, err := newPool(t).ListRefs(ctx, endpoint(t, url), cred, []string{"refs/heads/main"}, gitwire.Knowledge{})
	if err != nil || refs["refs/heads/main"] != commit {
		t.Errorf("refs %v, error %v", refs, err)
	}
}

func TestSSHListingsShareOneConnection(t *testing.T) {
	server := gittest.NewServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	door := server.SSH(gittest.SSHOptions{})
	url := door.URL("r.git")
	cred := credentials(t, url, map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()})
	pool := newPool(t)
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			refs, _, err := pool.ListRefs(t.Context(), endpoint(t, url), cred, []string{"refs/heads/main"}, gitwire.Knowledge{})
			if err != nil || refs["refs/heads/main"] != commit {
				t.Errorf("refs %v, error %v", refs, err)
			}
		})
	}
	all.Wait()
	if door.Handshakes() != 1 {
		t.Errorf("%d handshakes for listings at the same time, want 1", door.Handshakes())
	}
	door.Drop()
	refs, _, err := pool.ListRefs(t.Context(), endpoint(t, url), cred, []string{"refs/heads/main"}, gitwire.Knowledge{})
	if err != nil || len(refs) != 1 {
		t.Errorf("after the server had hung up: refs %v, error %v", refs, err)
	}
}

func TestSSHSaysWhatIsWrong(t *testing.T) {
	server := gittest.NewServer(t)
	server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	door := server.SSH(gittest.SSHOptions{})
	other := server.SSH(gittest.SSHOptions{})
	good := map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()}
	var remote *gitwire.RemoteError
	tests := []struct {
		name, url string
		data      map[string][]byte
		check     func(error) bool
	}{
		{"no such repository", door.URL("none.git"), good, func(err error) bool {
			return errors.As(err, &remote) && strings.Contains(remote.Text, "does not appear to be a git repository")
		}},
		{"a host that is not known", other.URL("r.git"), good, func(err error) bool { return errors.Is(err, gitauth.ErrUnknownHost) }},
		{"a key that is not the host's", door.URL("r.git"), map[string][]byte{"identity": door.Identity,
			"known_hosts": gittest.KnownHost(door.Addr, other.HostKeys["ed25519"])},
			func(err error) bool { return errors.Is(err, gitauth.ErrHostKey) }},
		{"an identity that is not let in", door.URL("r.git"), map[string][]byte{"identity": other.Identity, "known_hosts": door.KnownHosts()},
			func(err error) bool { return errors.Is(err, gitauth.ErrRefused) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			refs, err := list(t, tt.url, credentials(t, tt.url, tt.data), nil)
			if !tt.check(err) {
				t.Errorf("refs %v, error %v", refs, err)
			}
		})
	}
}

// A server that gives up in the middle of a large request has said why.
func TestAnSSHServerThatStopsReadingHasSaidWhy(t *testing.T) {
	server := gittest.NewServer(t)
	server.Repository("r.git")
	door := server.SSH(gittest.SSHOptions{})
	cred := credentials(t, door.URL("r.git"), map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := newPool(t).Exchange(ctx, endpoint(t, door.URL("r.git")), cred, gitwire.Request{Service: gitwire.ReceivePack, Body: make([]byte, 8<<20)})
	if remote := new(gitwire.RemoteError); !errors.As(err, &remote) || !strings.Contains(remote.Text, "bad line length") {
		t.Errorf("error %v, want the server's words", err)
	}
}

// Every wait ends with the context: dialling, shaking hands, opening a session, and reading.
func TestSilentServers(t *testing.T) {
	silent := gittest.Silent(t)
	server := gittest.NewServer(t)
	door := server.SSH(gittest.SSHOptions{})
	identity := map[string][]byte{"identity": door.Identity, "known_hosts": append(door.KnownHosts(), gittest.KnownHost(silent, door.HostKeys["ed25519"])...)}
	for _, url := range []string{"http://" + silent + "/r.git", "https://" + silent + "/r.git", "ssh://git@" + silent + "/r.git"} {
		t.Run(strings.Split(url, ":")[0], func(t *testing.T) {
			var cred *gitauth.Credentials
			if strings.HasPrefix(url, "ssh") {
				cred = credentials(t, url, identity)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, _, err := newPool(t).ListRefs(ctx, endpoint(t, url), cred, nil, gitwire.Knowledge{})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline's", err)
			}
		})
	}
}

// Who waits for a connection that another dials is not given up with the other's deadline.
func TestADiallersDeadlineIsItsOwn(t *testing.T) {
	silent := gittest.Silent(t)
	door := gittest.NewServer(t).SSH(gittest.SSHOptions{})
	url := "ssh://git@" + silent + "/r.git"
	cred := credentials(t, url, map[string][]byte{"identity": door.Identity, "known_hosts": gittest.KnownHost(silent, door.HostKeys["ed25519"])})
	pool := newPool(t)
	ask := func(patience time.Duration) (context.Context, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		_, _, err := pool.ListRefs(ctx, endpoint(t, url), cred, nil, gitwire.Knowledge{})
		return ctx, err
	}
	ended := make(chan error)
	go func() {
		_, err := ask(300 * time.Millisecond)
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // the other dials
	if ctx, err := ask(time.Second); ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, context %v; want both to be its own deadline's", err, ctx.Err())
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who dialled: %v", err)
	}
}

// A server that stops reading in the middle of a request holds nobody beyond the context: neither who sends, nor who
// shares the connection.
func TestASilentServerHoldsNoSender(t *testing.T) {
	server := gittest.NewServer(t)
	server.Repository("r.git")
	door := server.SSH(gittest.SSHOptions{})
	address := deafAfter(t, door.Addr, 64<<10)
	url := "ssh://git@" + address + "/r.git"
	cred := credentials(t, url, map[string][]byte{"identity": door.Identity, "known_hosts": gittest.KnownHost(address, door.HostKeys["ed25519"])})
	pool := newPool(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	command := gitwire.AppendPacket(nil, strings.Repeat("0", 40)+" "+strings.Repeat("a", 40)+" refs/heads/main\n")
	body := bytes.Repeat(command, (8<<20)/len(command))
	ended := make(chan error)
	const senders = 6 // more than the buffers of the connection hold
	for range senders {
		go func() {
			_, err := pool.Exchange(ctx, endpoint(t, url), cred, gitwire.Request{Service: gitwire.ReceivePack, Body: body})
			ended <- err
		}()
	}
	for range senders {
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline's", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a sender still waits long after the deadline")
		}
	}
}
