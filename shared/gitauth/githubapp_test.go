package gitauth_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
)

// github is the part of GitHub's API that mints tokens.
type github struct {
	*httptest.Server
	t       *testing.T
	key     *rsa.PrivateKey
	mu      sync.Mutex
	asked   []string
	expires time.Duration
	status  int // of the next answers, if not 0
}

// appKey is made once: it takes a while.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newGitHub(t *testing.T) *github {
	t.Helper()
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	g := &github{t: t, key: key, expires: time.Hour}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r.Method+" "+r.URL.Path)
	g.checkJWT(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch {
	case g.status != 0:
		w.WriteHeader(g.status)
		fmt.Fprint(w, "s3cr3t-pw")
	case r.URL.Path == "/app/installations/42/access_tokens":
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": fmt.Sprint("token-", len(g.asked)), "expires_at": time.Now().Add(g.expires)})
	case r.URL.Path == "/users/alice/installation":
		fmt.Fprint(w, `{"id": 42}`)
	default:
		http.NotFound(w, r)
	}
}

// checkJWT verifies who the app says it is, as GitHub does.
func (g *github) checkJWT(jwt string) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		g.t.Errorf("JWT of %d parts", len(parts))
		return
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		g.t.Error(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		g.t.Errorf("JWT: %v", err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		g.t.Error(err)
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil || claims.Issuer != "7" || claims.Issued > time.Now().Unix() || claims.Expires > time.Now().Add(10*time.Minute).Unix() {
		g.t.Errorf("claims %s, %v", raw, err)
	}
}

func (g *github) take() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := strings.Join(g.asked, ", ")
	g.asked = nil
	return asked
}

func (g *github) secret(pairs ...string) map[string][]byte {
	d := data(append([]string{"githubAppID", "7", "githubAppBaseURL", g.URL + "/"}, pairs...)...)
	d["githubAppPrivateKey"] = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})
	return d
}

func authorization(t *testing.T, cred *gitauth.Credentials) string {
	t.Helper()
	h := http.Header{}
	if err := cred.Authorize(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	value := strings.TrimPrefix(h.Get("Authorization"), "Basic ")
	text, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGitHubApp(t *testing.T) {
	g := newGitHub(t)
	ep := endpoint(t, "https://github.com/org/r")
	d := g.secret("githubAppInstallationID", "42")
	// Credentials are made anew for each sweep, and so is every token that does not last.
	for range 3 {
		cred, err := gitauth.FromSecret(ep, d)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if got := authorization(t, cred); got != "x-access-token:token-1" {
					t.Errorf("sends %q", got)
				}
			})
		}
		all.Wait()
	}
	if asked := g.take(); asked != "POST /app/installations/42/access_tokens" {
		t.Errorf("asked %q, want one token", asked)
	}
}

func TestGitHubAppTokensThatExpireAreRenewed(t *testing.T) {
	g := newGitHub(t)
	g.expires = time.Minute // less than a sweep should rely on
	cred, err := gitauth.FromSecret(endpoint(t, "https://github.com/org/r"), g.secret("githubAppInstallationID", "42"))
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 2; want++ {
		if got := authorization(t, cred); got != fmt.Sprint("x-access-token:token-", want) {
			t.Errorf("sends %q, want token %d", got, want)
		}
	}
}

func TestGitHubAppOfAnOwner(t *testing.T) {
	g := newGitHub(t)
	cred, err := gitauth.FromSecret(endpoint(t, "https://github.com/org/r"), g.secret("githubAppInstallationOwner", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	authorization(t, cred)
	if asked := g.take(); asked != "GET /orgs/alice/installation, GET /users/alice/installation, POST /app/installations/42/access_tokens" {
		t.Errorf("asked %q", asked)
	}
}

// Who waits for another's token waits no longer than its own context allows.
func TestGitHubAppWaitersHaveContextsOfTheirOwn(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	}))
	t.Cleanup(api.Close)
	cred, err := gitauth.FromSecret(endpoint(t, "https://github.com/org/r"), newGitHub(t).secret("githubAppInstallationID", "42", "githubAppBaseURL", api.URL))
	if err != nil {
		t.Fatal(err)
	}
	minted := make(chan error)
	go func() { minted <- cred.Authorize(t.Context(), http.Header{}) }()
	<-asked
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	waited := make(chan error)
	go func() { waited <- cred.Authorize(gone, http.Header{}) }()
	select {
	case err := <-waited:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	case err := <-minted:
		t.Errorf("whoever asks was given up first: %v", err)
	}
	close(answer)
	<-minted
}

func TestGitHubAppMistakes(t *testing.T) {
	g := newGitHub(t)
	ep := endpoint(t, "https://github.com/org/r")
	broken := g.secret("githubAppInstallationID", "42")
	broken["githubAppPrivateKey"] = []byte("s3cr3t-pw")
	for name, d := range map[string]map[string][]byte{
		"no installation": g.secret(),
		"two of them":     g.secret("githubAppInstallationID", "42", "githubAppInstallationOwner", "alice"),
		"a broken key":    broken,
		"a broken URL":    g.secret("githubAppInstallationID", "42", "githubAppBaseURL", "ftp://s3cr3t-pw"),
	} {
		if _, err := gitauth.FromSecret(ep, d); err == nil || !strings.HasPrefix(err.Error(), "parsing GitHub App: ") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for status, refused := range map[int]bool{http.StatusUnauthorized: true, http.StatusNotFound: true, http.StatusForbidden: false, http.StatusBadGateway: false} {
		g.status = status
		cred, err := gitauth.FromSecret(ep, g.secret("githubAppInstallationID", "42"))
		if err != nil {
			t.Fatal(err)
		}
		if err := cred.Authorize(t.Context(), http.Header{}); err == nil || errors.Is(err, gitauth.ErrRefused) != refused {
			t.Errorf("an API that answers %d: %v, refused %v", status, err, !refused)
		}
	}
	g.status = http.StatusForbidden
	cred, err := gitauth.FromSecret(ep, g.secret("githubAppInstallationID", "42"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cred.Authorize(t.Context(), http.Header{}); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a refusal: %v", err)
	}
}
