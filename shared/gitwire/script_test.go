package gitwire_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// answer is one scripted HTTP answer.
type answer struct {
	Status   int
	BodyFile string `json:"body_file"`
	Headers  map[string]string
	body     []byte
}

// script is a server that answers "METHOD /path" as told and 404 otherwise, and keeps what it was asked.
type script struct {
	*httptest.Server
	answers map[string]answer
	mu      sync.Mutex
	asked   []string // "METHOD path"
	auth    []string // the Authorization header of each
	sent    string   // every request in full
}

func serve(t *testing.T, answers map[string]answer) *script {
	t.Helper()
	s := &script{answers: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// set changes the answers.
func (s *script) set(answers map[string]answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := r.Method + " " + r.URL.Path
	s.asked = append(s.asked, line)
	s.auth = append(s.auth, r.Header.Get("Authorization"))
	var b strings.Builder
	_ = r.Write(&b)
	s.sent += b.String()
	a, ok := s.answers[line]
	if !ok {
		http.NotFound(w, r)
		return
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	switch {
	case strings.HasSuffix(a.BodyFile, ".html"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case strings.HasSuffix(line, "info/refs"):
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	default:
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.body)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func endpoint(t testing.TB, raw string) *giturl.Endpoint {
	t.Helper()
	ep, err := giturl.Parse(raw)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return ep
}

func newPool(t testing.TB) *gitwire.Pool {
	t.Helper()
	pool := &gitwire.Pool{}
	t.Cleanup(pool.Close)
	return pool
}

// list lists with a fresh pool and a deadline.
func list(t *testing.T, url string, cred *gitauth.Credentials, names []string) (map[string]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	refs, _, err := newPool(t).ListRefs(ctx, endpoint(t, url), cred, names, gitwire.Knowledge{})
	return refs, err
}
