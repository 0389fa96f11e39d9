package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// script answers a session's requests, one function each, in order; the last one goes on answering.
type script struct {
	t     *testing.T
	mu    sync.Mutex
	steps []func(w http.ResponseWriter, r *http.Request)
	asked []url.Values
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Query())
	if len(s.steps) == 0 {
		s.mu.Unlock()
		s.t.Errorf("unexpected request %s", r.URL)
		http.Error(w, "unexpected", http.StatusTeapot)
		return
	}
	step := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.mu.Unlock()
	step(w, r)
}

func (s *script) requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.asked...)
}

// quickTiming tries again at once, and gives a busy machine time to deliver what was sent.
var quickTiming = timing{
	open: 10 * time.Second, initial: 10 * time.Second, silence: 10 * time.Second, watch: time.Minute,
	backoff: time.Millisecond, retries: 4, pageSize: 2,
}

func scriptedSession(t *testing.T, shard Shard, from string, steps ...func(http.ResponseWriter, *http.Request)) (*Session, *script) {
	t.Helper()
	s := &script{t: t, steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL}, "watchcommit")
	if err != nil {
		t.Fatal(err)
	}
	if shard.Resource.Resource == "" {
		shard.Resource = Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	}
	session := client.NewSession(shard, from, nil)
	session.timing = quickTiming
	return session, s
}

// listed answers a LIST.
func listed(rv, next string, items ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, rv, next, strings.Join(items, ","))
	}
}

func refused(code int, reason string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	}
}

// watched answers a WATCH with the events and keeps the connection for hold.
func watched(hold time.Duration, events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, e := range events {
			fmt.Fprintln(w, e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(hold):
		}
	}
}

func item(name, rv string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","uid":"u-%s","resourceVersion":%q}}`, name, name, rv)
}

func added(name, rv string) string    { return `{"type":"ADDED","object":` + item(name, rv) + `}` }
func modified(name, rv string) string { return `{"type":"MODIFIED","object":` + item(name, rv) + `}` }
func deleted(name, rv string) string  { return `{"type":"DELETED","object":` + item(name, rv) + `}` }

func bookmark(rv string, end bool) string {
	notes := "{}"
	if end {
		notes = `{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":%q,"annotations":%s}}}`, rv, notes)
}

const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old resource version: 100 (400)"}}`

const forever = time.Minute

// tell runs the session until the wanted number of signals has come and writes them as words.
func tell(t *testing.T, s *Session, want int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out := make(chan Signal)
	go func() {
		s.Run(ctx, out)
		close(out)
	}()
	var got []string
	for signal := range out {
		got = append(got, word(signal))
		if len(got) == want {
			cancel()
		}
	}
	return got
}

func word(s Signal) string {
	name := ""
	if s.Object != nil {
		name = s.Object.GetName()
	}
	switch s.Kind {
	case InitialStart:
		return "start"
	case Initial:
		return "initial " + name + "@" + s.RV
	case InitialEnd:
		return "end@" + s.RV
	case Change:
		return strings.ToLower(string(s.Type)) + " " + name + "@" + s.RV
	case Bookmark:
		return "bookmark@" + s.RV
	case CaughtUp:
		return "caught up"
	case Expired:
		return "expired"
	default:
		return fmt.Sprintf("failed: %v", s.Err)
	}
}
