// Package allinone runs every function in one process, with a ticker in the place of a scheduler: for a laptop, a
// small machine, a demonstration. The functions are the same, and so is their safety: they share nothing in memory,
// and a second copy elsewhere may run at any time.
//
// Without REDIS_ADDR it embeds a store of its own, which is gone when the process ends. After a restart the state of
// the cluster is reconciled with git in one commit, without the names of those who changed it meanwhile.
package allinone

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Function is one of the functions and how this process uses it.
type Function struct {
	Name    string
	Handler http.Handler
	// Paths are what it serves beside /NAME; one that ends in a slash takes everything below it.
	Paths []string
	// Every is the pause between two ticks, which never overlap; 0 is a function that only answers.
	Every time.Duration
}

// allinone is the http.Handler.
type allinone struct {
	functions []Function
	mux       *http.ServeMux
	tel       *telemetry.Telemetry
	end       context.CancelFunc
	ticking   sync.WaitGroup
	release   func() error
}

// New serves the functions and begins to tick. The hosts find Stop on what it returns; release, if
// not nil, is called when everything has stopped.
func New(functions []Function, tel *telemetry.Telemetry, release func() error) http.Handler {
	ctx, end := context.WithCancel(context.Background())
	a := &allinone{functions: functions, mux: http.NewServeMux(), tel: tel, end: end, release: release}
	a.mux.HandleFunc(telemetry.MetricsPath, a.metrics)
	for _, path := range []string{telemetry.ReadinessPath, telemetry.LivenessPath} {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	}
	for _, f := range functions {
		a.mux.Handle("/"+f.Name, f.Handler)
		for _, path := range f.Paths {
			a.mux.Handle(path, f.Handler)
		}
		if f.Every > 0 {
			a.ticking.Go(func() { a.tick(host.WithDraining(context.WithoutCancel(ctx), ctx.Done()), ctx.Done(), f) })
		}
	}
	return a
}

func (a *allinone) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// tick calls a function again and again until the process is asked to end.
func (a *allinone) tick(ctx context.Context, end <-chan struct{}, f Function) {
	for failures := 0; ; {
		select {
		case <-end:
			return
		default:
		}
		began := time.Now()
		status, body := call(ctx, f.Handler, http.MethodPost, "/"+f.Name, nil)
		answer := string(bytes.TrimSpace(body))
		if status >= 300 {
			failures++
			a.tel.Log.Warn("tick failed", "ticked", f.Name, "status", status, "answer", answer)
		} else {
			failures = 0
			a.tel.Log.Debug("tick", "ticked", f.Name, "answer", answer)
		}
		select {
		case <-end:
			return
		case <-time.After(rest(f.Every, failures, time.Since(began))):
		}
	}
}

// patience is the longest time between the beginnings of two ticks because of failures. It is far below what an API
// server remembers of changes.
const patience = 30 * time.Second

// rest is the pause after a tick. After failures ticks begin twice as far apart each time: a git server that refuses
// the credentials is not asked every second, or it may lock the account. What a long tick took counts as waited, so
// that one branch's failure does not hold up the others.
func rest(every time.Duration, failures int, took time.Duration) time.Duration {
	if failures == 0 || every >= patience {
		return every
	}
	return max(every, min(every<<min(failures, 30), patience)-took)
}

// call serves one request without a network. The answer is cut at 1 MiB.
func call(ctx context.Context, h http.Handler, method, path string, header http.Header) (int, []byte) {
	r, err := http.NewRequestWithContext(ctx, method, path, http.NoBody)
	if err != nil {
		return http.StatusInternalServerError, []byte(err.Error())
	}
	if header != nil {
		r.Header = header.Clone()
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(w, r)
	return w.status, w.body.Bytes()
}

type answer struct {
	header http.Header
	status int
	sent   bool
	body   bytes.Buffer
}

const maxAnswer = 1 << 20

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.sent && status >= 200 {
		a.sent, a.status = true, status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.sent = true
	if left := maxAnswer - a.body.Len(); left > 0 {
		a.body.Write(b[:min(left, len(b))])
	}
	return len(b), nil
}

// metrics serves the metrics of all functions as one page: those of the process once, every function's own.
func (a *allinone) metrics(w http.ResponseWriter, r *http.Request) {
	var page bytes.Buffer
	for i, f := range a.functions {
		status, body := call(r.Context(), f.Handler, http.MethodGet, telemetry.MetricsPath, http.Header{"Authorization": r.Header["Authorization"]})
		if status != http.StatusOK {
			http.Error(w, fmt.Sprintf("%s: %s", f.Name, bytes.TrimSpace(body)), status)
			return
		}
		copyMetrics(&page, bytes.NewReader(body), i == 0)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // a scraper that is gone does not mind
}

// copyMetrics copies a page of metrics, with or without those that the runtime gives to every registry.
func copyMetrics(to io.Writer, from io.Reader, runtimeToo bool) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		name := strings.TrimPrefix(strings.TrimPrefix(lines.Text(), "# HELP "), "# TYPE ")
		if runtimeToo || !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			fmt.Fprintln(to, lines.Text())
		}
	}
}

// Stop lets running ticks come to their next resting point, then stops the functions in reverse.
func (a *allinone) Stop(ctx context.Context) error {
	a.end()
	rested := make(chan struct{})
	go func() { a.ticking.Wait(); close(rested) }()
	var errs []error
	select {
	case <-rested:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("wait for running ticks: %w", ctx.Err()))
	}
	for _, f := range slices.Backward(a.functions) {
		if err := host.Stop(ctx, f.Handler); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", f.Name, err))
		}
	}
	if a.release != nil {
		errs = append(errs, a.release())
	}
	return errors.Join(errs...)
}
