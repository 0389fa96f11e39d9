// Package gittest gives tests real git repositories behind a real git server: git http-backend on a loopback
// address, with protocol v2, hooks, credentials, and faults to order. When the test ends every repository
// must pass git fsck --strict.
package gittest

import (
	"bytes"
	"crypto/subtle"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
)

// Server serves repositories for one test.
type Server struct {
	URL  string
	Root string // the folder that holds the repositories
	CA   []byte // the certificate to trust, in PEM; nil without TLS

	t       testing.TB
	http    *httptest.Server
	git     http.Handler
	mu      sync.Mutex
	auth    func(*http.Request) bool
	old     bool
	faults  []*ordered
	records []Record
	serving int        // requests, those that nobody waits for any more included
	rested  *sync.Cond // of mu: serving is 0
}

// Record is one request that the server saw.
type Record struct {
	Method   string
	Path     string // with the query
	Protocol string // the Git-Protocol header
	Auth     string // the Authorization header
	Up, Down int64  // bytes of the two bodies
	Status   int
}

// NewServer starts a server that speaks HTTP.
func NewServer(t testing.TB) *Server { return start(t, false) }

// NewTLSServer starts a server that speaks HTTPS, HTTP/2 included, with a certificate of its own.
func NewTLSServer(t testing.TB) *Server { return start(t, true) }

func start(t testing.TB, secure bool) *Server {
	t.Helper()
	s := &Server{Root: t.TempDir(), t: t}
	s.rested = sync.NewCond(&s.mu)
	git, err := backend.Handler(s.Root, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.git = git
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		s.http.EnableHTTP2 = true
		s.http.StartTLS()
		s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	} else {
		s.http.Start()
	}
	s.URL = s.http.URL
	t.Cleanup(s.http.Close)
	return s
}

// RequirePassword refuses requests without this name and password.
func (s *Server) RequirePassword(name, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = func(r *http.Request) bool {
		n, p, ok := r.BasicAuth()
		return ok && n == name && subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 1
	}
}

// RequireToken refuses requests without this bearer token.
func (s *Server) RequireToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }
}

// WithoutV2 makes the server one of those that know nothing of protocol v2.
func (s *Server) WithoutV2() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = true
}

// Records returns the requests since the last call of Records, and forgets them.
func (s *Server) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.records
	s.records = nil
	return out
}

// Rest waits until no request is being handled. A client that went away, or that was hung up on, leaves one behind that
// may yet change the repository. Whoever calls it sends nothing meanwhile.
func (s *Server) Rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.serving > 0 {
		s.rested.Wait()
	}
}

func (s *Server) count(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving += more; s.serving == 0 {
		s.rested.Broadcast()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.count(1)
	defer s.count(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away while sending
	}
	record := Record{Method: r.Method, Path: r.URL.RequestURI(), Protocol: r.Header.Get("Git-Protocol"),
		Auth: r.Header.Get("Authorization"), Up: int64(len(body))}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	s.mu.Lock()
	allowed, old := s.auth == nil || s.auth(r), s.old
	fault := s.takeFault(r)
	s.mu.Unlock()
	if old {
		r.Header.Del("Git-Protocol")
	}
	counted := &countingWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		record.Down, record.Status = counted.n, counted.status
		s.mu.Lock()
		s.records = append(s.records, record)
		s.mu.Unlock()
	}()
	switch {
	case !allowed:
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(counted, "credentials, please", http.StatusUnauthorized)
	case fault != nil:
		fault(counted, r, s.git)
	default:
		s.git.ServeHTTP(counted, r)
	}
}

type countingWriter struct {
	http.ResponseWriter
	n      int64
	status int
}

func (c *countingWriter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Repository makes an empty bare SHA-1 repository that is checked with git fsck --strict when the test ends.
func (s *Server) Repository(name string) *Repository { return s.repository(name, "sha1") }

// RepositorySHA256 makes an empty bare SHA-256 repository.
func (s *Server) RepositorySHA256(name string) *Repository { return s.repository(name, "sha256") }

func (s *Server) repository(name, format string) *Repository {
	s.t.Helper()
	dir := filepath.Join(s.Root, filepath.FromSlash(name))
	if err := backend.Init(dir, format); err != nil {
		s.t.Fatal(err)
	}
	r := &Repository{URL: strings.TrimSuffix(s.URL, "/") + "/" + name, Dir: dir, t: s.t}
	s.t.Cleanup(func() {
		s.Rest()
		r.fsck()
	})
	return r
}
