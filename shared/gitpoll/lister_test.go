package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestList(t *testing.T) {
	server := gittest.NewServer(t)
	r := server.Repository("r.git")
	commit := r.Commit("main", "first", map[string]string{"f": "x"})
	r.Git("tag", "-a", "-m", "x", "v1", "main")
	tag := r.Git("rev-parse", "v1")
	want := map[string]string{"refs/heads/main": commit, "refs/tags/v1": tag, "refs/tags/v1^{}": commit}
	for _, head := range []string{"symbolic", "detached"} {
		if head == "detached" {
			r.Git("update-ref", "--no-deref", "HEAD", commit)
		}
		for _, version := range []string{"v2", "v0"} {
			if version == "v0" {
				server.WithoutV2()
			}
			got, err := gitpoll.NewGoGitLister(10*time.Second).List(t.Context(), r.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s HEAD, %s (-want +got):\n%s", head, version, diff)
			}
		}
	}
	empty := server.Repository("empty.git")
	if _, err := gitpoll.NewGoGitLister(0).List(t.Context(), empty.URL, nil); !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		t.Errorf("an empty repository: %v, want ErrEmptyRemoteRepository in the chain", err)
	}
}

func TestListWithCredentials(t *testing.T) {
	server := gittest.NewServer(t)
	r := server.Repository("r.git")
	r.Commit("main", "first", map[string]string{"f": "x"})
	withUser := strings.Replace(r.URL, "http://", "http://alice:pw@", 1)
	lister := gitpoll.NewGoGitLister(10 * time.Second)
	for _, tt := range []struct {
		name, url string
		auth      transport.AuthMethod
		token     bool
		want      error
	}{
		{name: "basic", url: r.URL, auth: &githttp.BasicAuth{Username: "alice", Password: "pw"}},
		{name: "in the URL", url: withUser},
		{name: "wrong", url: r.URL, auth: &githttp.BasicAuth{Username: "alice", Password: "no"}, want: transport.ErrAuthenticationRequired},
		{name: "none", url: r.URL, want: transport.ErrAuthenticationRequired},
		{name: "bearer", url: r.URL, auth: &githttp.TokenAuth{Token: "tok"}, token: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if server.RequirePassword("alice", "pw"); tt.token {
				server.RequireToken("tok")
			}
			refs, err := lister.List(t.Context(), tt.url, tt.auth)
			if !errors.Is(err, tt.want) || err == nil && len(refs) != 1 {
				t.Errorf("refs %v, error %v, want %v", refs, err, tt.want)
			}
		})
	}
	var unknown unknownAuth
	if _, err := lister.List(t.Context(), r.URL, unknown); !errors.Is(err, transport.ErrInvalidAuthMethod) {
		t.Errorf("an unknown method: %v, want ErrInvalidAuthMethod", err)
	}
}

type unknownAuth struct{}

func (unknownAuth) String() string { return "unknown" }
func (unknownAuth) Name() string   { return "unknown" }

func TestListOverSSH(t *testing.T) {
	server := gittest.NewServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	// The server prefers a key of a type that known_hosts holds for another host only.
	door := server.SSH(gittest.SSHOptions{HostKeys: []string{"ecdsa", "ed25519", "rsa"}})
	foreign := gittest.KnownHost("other.example.org:22", gittest.HostKey(t, "ecdsa").PublicKey())
	lister := gitpoll.NewGoGitLister(10 * time.Second)
	for _, kind := range []string{"ed25519", "rsa"} {
		known := append(slices.Clone(foreign), door.KnownHosts(kind)...)
		auth, err := gitpoll.AuthFromSecret(door.URL("r.git"), map[string][]byte{"identity": door.Identity, "known_hosts": known})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			refs, err := lister.List(t.Context(), door.URL("r.git"), auth)
			if err != nil || refs["refs/heads/main"] != commit {
				t.Fatalf("%s: refs %v, error %v", kind, refs, err)
			}
		}
	}
	if n := door.Handshakes(); n != 2 {
		t.Errorf("%d handshakes for two credentials, want 2", n)
	}
	// An identity of go-git's own works too.
	keys, err := gitssh.NewPublicKeys("git", door.Identity, "")
	if err != nil {
		t.Fatal(err)
	}
	keys.HostKeyCallback = ssh.InsecureIgnoreHostKey() //nolint:gosec // the server is this test's own
	if refs, err := lister.List(t.Context(), door.URL("r.git"), keys); err != nil || len(refs) != 1 {
		t.Errorf("go-git's own identity: refs %v, error %v", refs, err)
	}
	missing, err := gitpoll.AuthFromSecret(door.URL("r.git"), map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lister.List(t.Context(), door.URL("none.git"), missing); !errors.Is(err, transport.ErrRepositoryNotFound) {
		t.Errorf("no such repository: %v, want ErrRepositoryNotFound", err)
	}
}

func TestTheTimeoutIsPerListingAndHoldsWhileDialling(t *testing.T) {
	addr := gittest.Silent(t)
	door := gittest.NewServer(t).SSH(gittest.SSHOptions{})
	known := gittest.KnownHost(addr, door.HostKeys["ed25519"])
	lister := gitpoll.NewGoGitLister(50 * time.Millisecond)
	for _, url := range []string{"http://" + addr + "/r.git", "ssh://git@" + addr + "/r.git"} {
		var auth transport.AuthMethod
		if strings.HasPrefix(url, "ssh") {
			var err error
			if auth, err = gitpoll.AuthFromSecret(url, map[string][]byte{"identity": door.Identity, "known_hosts": known}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := lister.List(t.Context(), url, auth); !errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil {
				t.Errorf("%s: %v, want the listing's deadline", url, err)
			}
		}
	}
}

func TestAuthFromSecret(t *testing.T) {
	type data = map[string][]byte
	door := gittest.NewServer(t).SSH(gittest.SSHOptions{HostKeys: []string{"rsa"}})
	encrypted := gittest.NewServer(t).SSH(gittest.SSHOptions{Passphrase: "open sesame"})
	identity := data{"identity": door.Identity, "known_hosts": door.KnownHosts()}
	basic := func(u, p string) func(transport.AuthMethod) bool {
		return func(a transport.AuthMethod) bool {
			b, ok := a.(*githttp.BasicAuth)
			return ok && b.Username == u && b.Password == p
		}
	}
	anonymous := func(a transport.AuthMethod) bool { return a == nil }
	tests := []struct {
		name, url string
		data      data
		want      func(transport.AuthMethod) bool
		err       string
	}{
		{name: "no Secret", url: "https://h/r", want: anonymous},
		{name: "over plain HTTP too", url: "http://h/r", want: anonymous},
		{name: "a Secret that holds nothing of use", url: "https://h/r", data: data{"x": nil}, want: anonymous},
		{name: "user name and password", url: "https://h/r", data: data{"username": []byte("alice"), "password": []byte("pw")}, want: basic("alice", "pw")},
		{name: "a user name alone", url: "https://h/r", data: data{"username": []byte("alice")}, want: basic("alice", "")},
		{name: "a password alone", url: "https://h/r", data: data{"password": []byte("s3cr3t-pw")}, err: "building auth options: "},
		{name: "the URL's userinfo", url: "https://alice:s3cr3t-pw@h/r", want: basic("alice", "s3cr3t-pw")},
		{name: "a token", url: "https://h/r", data: data{"bearerToken": []byte("tok")}, want: func(a transport.AuthMethod) bool {
			b, ok := a.(*githttp.TokenAuth)
			return ok && b.Token == "tok"
		}},
		{name: "trust does not get in the way", url: "https://h/r", data: data{"ca.crt": []byte("x"), "username": []byte("alice"), "password": []byte("pw")}, want: basic("alice", "pw")},
		{name: "an SSH identity", url: door.URL("r.git"), data: identity, want: func(a transport.AuthMethod) bool {
			method, ok := a.(gitssh.AuthMethod)
			if !ok {
				return false
			}
			config, err := method.ClientConfig()
			return err == nil && config.User == "git" && slices.Equal(config.HostKeyAlgorithms, []string{"rsa-sha2-512", "rsa-sha2-256"})
		}},
		{name: "an encrypted one", url: encrypted.URL("r.git"), data: data{"identity": encrypted.Identity, "known_hosts": encrypted.KnownHosts(), "password": []byte("open sesame")},
			want: func(a transport.AuthMethod) bool { return a != nil }},
		{name: "with the wrong passphrase", url: encrypted.URL("r.git"), data: data{"identity": encrypted.Identity, "known_hosts": encrypted.KnownHosts(), "password": []byte("s3cr3t-pw")}, err: "parsing SSH identity: "},
		{name: "SSH without a Secret", url: "ssh://git@h/r", err: "building auth options: "},
		{name: "SSH without known_hosts", url: "ssh://git@h/r", data: data{"identity": door.Identity}, err: "building auth options: "},
		{name: "the scp-like form", url: "git@h:r", data: data{"identity": door.Identity}, err: "building auth options: "},
		{name: "a broken identity", url: "ssh://git@h/r", data: data{"identity": []byte("s3cr3t-pw"), "known_hosts": door.KnownHosts()}, err: "parsing SSH identity: "},
		{name: "broken known_hosts", url: "ssh://git@h/r", data: data{"identity": door.Identity, "known_hosts": []byte("h s3cr3t-pw")}, err: "parsing known_hosts: "},
		{name: "a URL that is none", url: "https://alice:s3cr3t-pw@h:port/r", err: "parsing repository URL: "},
		{name: "with a control byte", url: "https://alice:s3cr3t-pw@h/\x7fr", err: "parsing repository URL: "},
		{name: "a scheme that is not spoken", url: "ftp://alice:s3cr3t-pw@h/r", err: "building auth options: "},
		{name: "a local path", url: "/srv/git/r", err: "building auth options: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			auth, err := gitpoll.AuthFromSecret(tt.url, tt.data)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || strings.Contains(err.Error(), "s3cr3t-pw") {
					t.Errorf("error %v, want %s… without a secret", err, tt.err)
				}
				return
			}
			if err != nil || !tt.want(auth) {
				t.Errorf("auth %T, error %v", auth, err)
			}
		})
	}
}

func TestNoSecretInErrors(t *testing.T) {
	var c struct {
		Forbidden, URLs []string
		Statuses        []int
		Echo            string `json:"echo_body"`
		Expect          struct {
			Max int `json:"max_error_length"`
		}
	}
	gittest.Case(t, "05-no-secret-in-errors", &c)
	lister := gitpoll.NewGoGitLister(5 * time.Second)
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", what)
			return
		}
		text := err.Error()
		for _, secret := range c.Forbidden {
			if strings.Contains(text, secret) {
				t.Errorf("%s: error holds %q: %s", what, secret, text)
			}
		}
		if len(text) > c.Expect.Max {
			t.Errorf("%s: error of %d bytes, want at most %d", what, len(text), c.Expect.Max)
		}
		if strings.Contains(text, "127.0.0.1:1/") || strings.Contains(text, "r.git") {
			t.Errorf("%s: error repeats the URL: %s", what, text)
		}
	}
	for _, url := range c.URLs {
		_, err := lister.List(t.Context(), url, nil)
		check(url, err)
		if err != nil && !strings.HasPrefix(err.Error(), "listing advertised refs: ") {
			t.Errorf("%s: error %q does not say what was being done", url, err)
		}
		if _, err := gitpoll.AuthFromSecret(url, map[string][]byte{"password": []byte("s3cr3t-pw")}); err != nil {
			check("AuthFromSecret "+url, err)
		}
	}
	for _, status := range c.Statuses {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, c.Echo, strings.Repeat("x", 10_000))
		}))
		url := strings.Replace(server.URL, "http://", "http://alice:s3cr3t-pw@", 1)
		_, err := lister.List(t.Context(), url+"/org/r.git", nil)
		check(fmt.Sprint(status), err)
		server.Close()
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := "ERR " + c.Echo + "\n"
		fmt.Fprintf(w, "%04x%s", len(line)+4, line)
	}))
	defer echo.Close()
	_, err := lister.List(t.Context(), echo.URL+"/x.git", nil)
	check("ERR packet", err)
}
