package allinone

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// fake is a function with the endpoints that every function has.
func fake(name string, h http.HandlerFunc, opts telemetry.Options) http.Handler {
	tel := telemetry.WriteTo(&bytes.Buffer{}, name)
	tel.Counter("things_total", "Things.").WithLabelValues().Inc()
	return tel.Handler(h, opts)
}

func serve(t *testing.T, functions []Function, release func() error) (http.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	h := New(functions, telemetry.WriteTo(&log, "allinone"), release)
	t.Cleanup(func() { _ = host.Stop(context.Background(), h) })
	return h, &log
}

func get(h http.Handler, method, path string) (int, string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec.Code, rec.Body.String()
}

func TestEveryFunctionIsServedUnderItsPaths(t *testing.T) {
	says := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name+" "+r.Method+" "+r.URL.Path) }
	}
	h, _ := serve(t, []Function{
		{Name: "one", Handler: fake("one", says("one"), telemetry.Options{}), Paths: []string{"/audit-webhook", "/audit-webhook/"}},
		{Name: "two", Handler: fake("two", says("two"), telemetry.Options{})},
	}, nil)
	for _, c := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"POST", "/audit-webhook/prod", 200, "one POST /audit-webhook/prod"},
		{"POST", "/audit-webhook", 200, "one POST /audit-webhook"},
		{"POST", "/two", 200, "two POST /two"},
		{"GET", "/other", 404, "404 page not found\n"},
		{"GET", "/health/readiness", 200, "OK\n"},
		{"GET", "/health/liveness", 200, "OK\n"},
	} {
		if code, body := get(h, c.method, c.path); code != c.code || body != c.want {
			t.Errorf("%s %s: got %d %q, want %d %q", c.method, c.path, code, body, c.code, c.want)
		}
	}
	code, page := get(h, "GET", "/metrics")
	if code != 200 || strings.Count(page, "tidemark_one_things_total 1") != 1 || strings.Count(page, "tidemark_two_things_total 1") != 1 {
		t.Errorf("metrics: %d\n%s", code, page)
	}
}

func TestMetricsWantTheTokenOfEachFunction(t *testing.T) {
	guarded := telemetry.Options{ReadToken: settings.NewSecret("secret")}
	h, _ := serve(t, []Function{{Name: "one", Handler: fake("one", nil, telemetry.Options{})}, {Name: "two", Handler: fake("two", nil, guarded)}}, nil)
	if code, body := get(h, "GET", "/metrics"); code != 401 || strings.Contains(body, "things_total") {
		t.Errorf("metrics without the token: got %d %q", code, body)
	}
}

func TestTicksFollowEachOtherAndRestAtTheEnd(t *testing.T) {
	var running, most, ticks atomic.Int32
	tick := func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if ticks.Add(1) == 3 { // a long one: it goes on until the process is asked to end, and is not cut off then
			<-host.Draining(r.Context())
			if r.Context().Err() != nil {
				t.Error("the tick's context ended before the tick did")
			}
			return
		}
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "no such luck")
	}
	var stopped []string
	stop := func(name string) telemetry.Options {
		return telemetry.Options{Close: func(context.Context) error { stopped = append(stopped, name); return nil }}
	}
	h, log := serve(t, []Function{
		{Name: "one", Handler: fake("one", tick, stop("one")), Every: time.Millisecond},
		{Name: "two", Handler: fake("two", nil, stop("two"))},
	}, func() error { stopped = append(stopped, "store"); return nil })
	for deadline := time.Now().Add(10 * time.Second); ticks.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("three ticks did not happen within 10 s")
		}
	}
	if err := host.Stop(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 1 || ticks.Load() != 3 || running.Load() != 0 {
		t.Errorf("%d ticks, %d at once, %d running after the end", ticks.Load(), most.Load(), running.Load())
	}
	if got := strings.Join(stopped, " "); got != "two one store" {
		t.Errorf("stopped %s, want the store last", got)
	}
	if !strings.Contains(log.String(), `"ticked":"one","status":502,"answer":"no such luck"`) {
		t.Errorf("a failed tick is not logged: %s", log.String())
	}
}

func TestStopGivesUpWaitingInTime(t *testing.T) {
	began, stuck := make(chan struct{}), make(chan struct{})
	wait := func(http.ResponseWriter, *http.Request) { close(began); <-stuck }
	h, _ := serve(t, []Function{{Name: "one", Every: time.Hour, Handler: fake("one", wait, telemetry.Options{})}}, nil)
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := host.Stop(ctx, h); err == nil || !strings.Contains(err.Error(), "wait for running ticks") {
		t.Errorf("got %v", err)
	}
	close(stuck)
}

func TestFailedTicksComeLessAndLessOften(t *testing.T) {
	for _, c := range []struct {
		every       time.Duration
		failures    int
		took, pause time.Duration
	}{
		{time.Second, 0, 0, time.Second},
		{time.Second, 1, 0, 2 * time.Second},
		{time.Second, 3, time.Second, 7 * time.Second},
		{time.Second, 5, 0, 30 * time.Second},
		{time.Second, 1 << 20, 0, 30 * time.Second},
		{time.Second, 9, 55 * time.Second, time.Second}, // it listened: the others' changes go on
		{time.Minute, 9, 0, time.Minute},
	} {
		if got := rest(c.every, c.failures, c.took); got != c.pause {
			t.Errorf("after %d failures, every %s, a tick of %s: pause %s, want %s", c.failures, c.every, c.took, got, c.pause)
		}
	}
}

func TestAFailingTickIsNotRepeatedAtOnce(t *testing.T) {
	var ticks atomic.Int32
	again := make(chan struct{})
	tick := func(w http.ResponseWriter, _ *http.Request) {
		switch ticks.Add(1) {
		case 4: // failures before it: 20, 40 and 80 ms of rest
			close(again)
		case 1, 2, 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	began := time.Now()
	serve(t, []Function{{Name: "one", Handler: fake("one", tick, telemetry.Options{}), Every: 10 * time.Millisecond}}, nil)
	<-again
	if took := time.Since(began); took < 130*time.Millisecond { // a bound that no slow machine breaks
		t.Errorf("three failing ticks and a fourth took %s", took)
	}
}
