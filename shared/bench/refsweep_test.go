//go:build bench

package bench

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

const tracked = "refs/heads/main"

// refsweepRows measures listings of refs beside go-git's Remote.List, which pollers of this kind use.
func refsweepRows(t *testing.T) []Row {
	rows := listingRows(t)
	rows = append(rows, sweepRows(t)...)
	return append(rows, sshRows(t)...)
}

// goGitLister is what a poller with go-git does.
type goGitLister struct{}

func (goGitLister) List(ctx context.Context, url string, auth transport.AuthMethod) (map[string]string, error) {
	remote := gogit.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "origin", URLs: []string{url}})
	refs, err := remote.ListContext(ctx, &gogit.ListOptions{Auth: auth, PeelingOption: gogit.AppendPeeled})
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(refs))
	for _, ref := range refs {
		out[ref.Name().String()] = ref.Hash().String()
	}
	return out, nil
}

// packRefs gives a repository a commit at main and more branches, to n refs in all.
func packRefs(t *testing.T, r *gittest.Repository, n int) string {
	t.Helper()
	head := r.Commit("main", "first", map[string]string{"f": "x"})
	var b strings.Builder
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range n - 1 {
		fmt.Fprintf(&b, "%s refs/heads/branch-%07d\n", head, i)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "packed-refs"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return head
}

// sweepOnce lists the targets and fails the test unless each is at want.
func sweepOnce(t *testing.T, s *gitpoll.Sweeper, targets []gitpoll.Target, want string) {
	t.Helper()
	results := s.Sweep(t.Context(), targets)
	for _, r := range results {
		if r.Err != nil || r.SHA != want {
			t.Fatalf("%s: %q, %v, want %s", r.Target.Source, r.SHA, r.Err, want)
		}
	}
	if len(results) != len(targets) {
		t.Fatalf("%d results for %d targets", len(results), len(targets))
	}
}

// listingRows is one unchanged repository that grows.
func listingRows(t *testing.T) []Row {
	var rows []Row
	server := gittest.NewServer(t)
	for _, n := range []int{1, 1000, 10_000, 100_000} {
		r := server.Repository(fmt.Sprintf("r%d.git", n))
		head := packRefs(t, r, n)
		through := startWire(t, strings.TrimPrefix(server.URL, "http://"), 0)
		target := []gitpoll.Target{{Source: types.NamespacedName{Name: "r"}, URL: strings.Replace(r.URL, server.URL, "http://"+through.address, 1), TrackingRef: tracked}}
		wire := gitpoll.NewWireLister(time.Minute)
		defer wire.Close()
		ours := &gitpoll.Sweeper{Lister: wire, Strategy: selection.TrackRef()}
		theirs := &gitpoll.Sweeper{Lister: goGitLister{}, Strategy: selection.TrackRef()}
		var size [2]float64
		measure := func(i int, s *gitpoll.Sweeper) func() float64 {
			return func() float64 {
				before, start := through.down.Load(), time.Now()
				sweepOnce(t, s, target, head)
				took := time.Since(start)
				size[i] = float64(through.down.Load() - before)
				return Seconds(took) * 1000
			}
		}
		rounds := 9
		if Quick() {
			rounds = 3
		}
		m := Interleave(rounds, measure(0, ours), measure(1, theirs))
		what := fmt.Sprintf("list one repository, %d refs", n)
		rows = append(rows,
			LessIsBetter(what, "ms", m[0], m[1], "go-git Remote.List"),
			LessIsBetter(what, "bytes from the server", size[0], size[1], "go-git Remote.List"))
	}
	return rows
}

// sweepRows is a thousand repositories of 500 refs on one TLS host, 20 ms away, four at a time. git answers each kind of
// request once, and the server repeats what it said: a process of git's for each request would cost more than the
// clients that are compared, on the same cores.
func sweepRows(t *testing.T) []Row {
	repositories := 1000
	if Quick() {
		repositories = 100
	}
	disk := gittest.NewServer(t)
	head := packRefs(t, disk.Repository("r.git"), 500)
	git, err := backend.Handler(disk.Root, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
		server := httptest.NewUnstartedServer(repeat(git, "/r.git/"))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.EnableHTTP2 = version == "HTTP/2"
		server.StartTLS()
		defer server.Close()
		through := startWire(t, server.Listener.Addr().String(), 10*time.Millisecond)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		var targets []gitpoll.Target
		trust := types.NamespacedName{Name: "trust"}
		for i := range repositories {
			targets = append(targets, gitpoll.Target{Source: types.NamespacedName{Name: fmt.Sprint(i)}, SecretRef: &trust,
				URL: fmt.Sprintf("https://%s/r%04d.git", through.address, i), TrackingRef: tracked})
		}
		secrets := secret{"ca.crt": ca}
		// go-git with one transport for all, as it is with a public certificate; a CABundle makes one per listing.
		trusting := server.Client().Transport.(*http.Transport).Clone()
		trusting.ForceAttemptHTTP2 = version == "HTTP/2"
		client.InstallProtocol("https", githttp.NewClient(&http.Client{Transport: trusting}))
		defer client.InstallProtocol("https", githttp.DefaultClient)
		theirs := &gitpoll.Sweeper{Lister: goGitLister{}, Secrets: secrets, Strategy: selection.TrackRef(), PerHost: 4}
		var conns, down [2]float64
		measure := func(i int, sweep func()) func() float64 {
			return func() float64 {
				c, d, start := through.conns.Load(), through.down.Load(), time.Now()
				sweep()
				took := time.Since(start)
				conns[i], down[i] = float64(through.conns.Load()-c), float64(through.down.Load()-d)
				return Seconds(took)
			}
		}
		rounds := 3
		if Quick() {
			rounds = 1
		}
		m := Interleave(rounds,
			measure(0, func() { // a cold start each time
				wire := gitpoll.NewWireLister(time.Minute)
				defer wire.Close()
				sweepOnce(t, &gitpoll.Sweeper{Lister: wire, Secrets: secrets, Strategy: selection.TrackRef(), PerHost: 4}, targets, head)
			}),
			measure(1, func() {
				sweepOnce(t, theirs, targets, head)
				trusting.CloseIdleConnections()
			}))
		what := fmt.Sprintf("sweep %d repositories of 500 refs, %s over TLS, 20 ms away", repositories, version)
		rows = append(rows,
			LessIsBetter(what, "s", m[0], m[1], "go-git Remote.List"),
			LessIsBetter(what, "connections", conns[0], conns[1], "go-git Remote.List"),
			LessIsBetter(what, "MB from the server", down[0]/1e6, down[1]/1e6, "go-git Remote.List"))
	}
	return rows
}

// repeat answers requests for any repository with what git says to the same request for the one at path.
func repeat(git http.Handler, path string) http.Handler {
	var mu sync.Mutex
	said := map[string]*httptest.ResponseRecorder{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away while sending
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		question := strings.Join([]string{r.Method, rest, r.URL.RawQuery, r.Header.Get("Git-Protocol"), string(body)}, " ")
		mu.Lock()
		answer, ok := said[question]
		if !ok {
			answer = httptest.NewRecorder()
			r.URL.Path, r.Body = path+rest, io.NopCloser(bytes.NewReader(body))
			git.ServeHTTP(answer, r)
			said[question] = answer
		}
		mu.Unlock()
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		_ = http.NewResponseController(w).Flush() // as git does: its end comes when its process has ended
	})
}

// secret is the one Secret there is.
type secret map[string][]byte

func (s secret) SecretData(context.Context, types.NamespacedName) (map[string][]byte, error) {
	return s, nil
}

// sshRows is sixty listings of a repository with 10,000 refs.
func sshRows(t *testing.T) []Row {
	const listings = 60
	server := gittest.NewServer(t)
	head := packRefs(t, server.Repository("r.git"), 10_000)
	door := server.SSH(gittest.SSHOptions{})
	url := door.URL("r.git")
	identity := types.NamespacedName{Name: "identity"}
	secrets := secret{"identity": door.Identity, "known_hosts": door.KnownHosts()}
	target := []gitpoll.Target{{Source: types.NamespacedName{Name: "r"}, URL: url, SecretRef: &identity, TrackingRef: tracked}}
	wire := gitpoll.NewWireLister(time.Minute)
	defer wire.Close()
	var shakes [2]float64
	measure := func(i int, lister gitpoll.Lister) func() float64 {
		return func() float64 {
			s := &gitpoll.Sweeper{Lister: lister, Secrets: secrets, Strategy: selection.TrackRef()}
			before, start := door.Handshakes(), time.Now()
			for range listings {
				sweepOnce(t, s, target, head)
			}
			took := time.Since(start)
			shakes[i] = float64(door.Handshakes() - before)
			wire.Close()
			return Seconds(took)
		}
	}
	rounds := 3
	if Quick() {
		rounds = 1
	}
	m := Interleave(rounds, measure(0, wire), measure(1, goGitLister{}))
	what := fmt.Sprintf("%d listings over SSH, 10000 refs", listings)
	return []Row{
		LessIsBetter(what, "s", m[0], m[1], "go-git Remote.List"),
		LessIsBetter(what, "handshakes", shakes[0], shakes[1], "go-git Remote.List"),
	}
}
