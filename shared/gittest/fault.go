package gittest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Fault answers a request instead of git, or around it.
type Fault func(w http.ResponseWriter, r *http.Request, git http.Handler)

// Match picks the requests that a fault is for.
type Match func(*http.Request) bool

// Pushes matches the requests that push.
func Pushes(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-receive-pack") }

// Reads matches the requests that list refs or fetch.
func Reads(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-upload-pack") }

type ordered struct {
	match Match
	times int
	fault Fault
}

// Inject answers the next requests that match, as many as times says, with the fault.
func (s *Server) Inject(match Match, times int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &ordered{match, times, fault})
}

// ClearFaults forgets the faults that were not used.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) takeFault(r *http.Request) Fault {
	for _, o := range s.faults {
		if o.times > 0 && o.match(r) {
			o.times--
			return o.fault
		}
	}
	return nil
}

// Refuse answers with a status, and a Retry-After header unless after is empty, without reaching git.
func Refuse(status int, after string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		http.Error(w, http.StatusText(status), status)
	}
}

// LoseRequest hangs up before git hears of the request.
func LoseRequest(w http.ResponseWriter, _ *http.Request, _ http.Handler) { hangUp(w) }

// LoseAnswer lets git do its work and hangs up instead of answering.
func LoseAnswer(w http.ResponseWriter, r *http.Request, git http.Handler) {
	git.ServeHTTP(httptest.NewRecorder(), r)
	hangUp(w)
}

// ActLate hangs up at once and lets git do its work only after the pause: the answer is lost, and the push lands later.
func ActLate(pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
		body, _ := io.ReadAll(r.Body)
		r = r.Clone(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		hangUp(w)
		time.Sleep(pause)
		git.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// CutAnswer passes the first n bytes of git's answer, says that more follow, and hangs up.
func CutAnswer(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
		recorder := httptest.NewRecorder()
		git.ServeHTTP(recorder, r)
		copyAnswer(w, recorder, n)
		_ = http.NewResponseController(w).Flush()
		hangUp(w)
	}
}

// Before does something right before git gets the request: the window in which other writers win.
func Before(do func()) Fault {
	return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
		do()
		git.ServeHTTP(w, r)
	}
}

// HoldLock holds the branch's lock file while git handles the request.
func (r *Repository) HoldLock(branch string) Fault {
	return func(w http.ResponseWriter, req *http.Request, git http.Handler) {
		lock := filepath.Join(r.Dir, "refs", "heads", filepath.FromSlash(branch)+".lock")
		_ = os.MkdirAll(filepath.Dir(lock), 0o755)
		file, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			_ = file.Close()
			defer os.Remove(lock)
		} else if !errors.Is(err, os.ErrExist) {
			r.t.Errorf("hold the lock of %s: %v", branch, err)
		}
		git.ServeHTTP(w, req)
	}
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no connection to take over; aborting resets the stream
	}
	_ = conn.Close()
}

// After is git, with something done right after each request.
func After(git http.Handler, do func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		git.ServeHTTP(w, r)
		do()
	})
}

// DelayAnswer lets git do its work at once and answers after the pause.
func DelayAnswer(pause time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, git http.Handler) {
		recorder := httptest.NewRecorder()
		git.ServeHTTP(recorder, r)
		time.Sleep(pause)
		copyAnswer(w, recorder, recorder.Body.Len())
	}
}

func copyAnswer(w http.ResponseWriter, recorder *httptest.ResponseRecorder, n int) {
	for name, values := range recorder.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes()[:min(n, recorder.Body.Len())])
}
