package refsweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// world is a function among real servers: git, Redis, and a sink.
type world struct {
	t       *testing.T
	git     *gittest.Server
	store   *queue.RedisStore
	counter *valkeytest.Counter
	sink    *recordingSink
	cfg     Config
	deps    Deps
	log     *bytes.Buffer
	tel     *telemetry.Telemetry
	h       http.Handler
	dir     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	fleet, err := gitpoll.NewFleet(store.Client(), store.KeyPrefix(), "test")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, git: gittest.NewServer(t), store: store, counter: &valkeytest.Counter{}, sink: newRecordingSink(t), log: &bytes.Buffer{}, dir: t.TempDir()}
	w.cfg = Config{Fleet: "test", PerHost: 4, ListingTimeout: 10 * time.Second, Timeout: time.Minute, MaxMoves: 100, Sink: w.sink.URL}
	w.deps = Deps{Fleet: fleet, Targets: FileTargets(filepath.Join(w.dir, "targets.yaml")), Secrets: DirSecrets(filepath.Join(w.dir, "secrets"))}
	w.start()
	// Which commands a connection begins with does not count.
	if err := store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.AddHook(w.counter)
	return w
}

// start makes the function anew, as a cold start does.
func (w *world) start() {
	w.tel = telemetry.WriteTo(w.log, "refsweep")
	w.h = w.tel.Handler(New(w.cfg, w.deps, w.tel), telemetry.Options{})
}

func (w *world) targets(documents ...string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "targets.yaml"), []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func document(name, url, more string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s, namespace: flux}\nspec:\n  interval: 1m\n  url: %q\n%s", name, url, more)
}

const onMain = "  ref: {branch: main}\n"

func (w *world) secret(name, key, value string) {
	w.t.Helper()
	folder := filepath.Join(w.dir, "secrets", "flux", name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, key), []byte(value), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// post is a tick.
func (w *world) post(ctx context.Context, body string) (int, []byte) {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).WithContext(ctx)
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec.Code, rec.Body.Bytes()
}

// tick is a tick that succeeds.
func (w *world) tick() Summary {
	w.t.Helper()
	code, body := w.post(w.t.Context(), "")
	var s Summary
	if err := json.Unmarshal(body, &s); err != nil || code != http.StatusOK || s.Sweep == 0 {
		w.t.Fatalf("tick: %d %s (%v)\n%s", code, body, err, w.log)
	}
	return s
}

func (w *world) get(path, token string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

func (w *world) observed() map[string]Observation {
	w.t.Helper()
	code, body := w.get("/observations", "")
	var o Observations
	if err := json.Unmarshal([]byte(body), &o); err != nil || code != http.StatusOK {
		w.t.Fatalf("observations: %d %s (%v)", code, body, err)
	}
	sources := map[string]Observation{}
	for _, s := range o.Sources {
		sources[s.Name] = s
	}
	return sources
}

func token(value string) settings.Secret { return settings.NewSecret(value) }

// recordingSink takes CloudEvents.
type recordingSink struct {
	*httptest.Server
	mu     sync.Mutex
	answer int // status; 0 is 202
	posts  int
	events []event.Event
}

func newRecordingSink(t *testing.T) *recordingSink {
	t.Helper()
	s := &recordingSink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.posts++
		if s.answer != 0 {
			w.WriteHeader(s.answer)
			return
		}
		body, err := io.ReadAll(r.Body)
		var e event.Event
		if err != nil || json.Unmarshal(body, &e) != nil || e.Validate() != nil || r.Header.Get("Content-Type") != "application/cloudevents+json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.events = append(s.events, e)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *recordingSink) set(answer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// take returns the events since the last call.
func (s *recordingSink) take(t *testing.T) []Notification {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Notification
	for _, e := range s.events {
		var n Notification
		if err := e.DataAs(&n); err != nil || e.Type() != EventType {
			t.Errorf("event %v: %v", e, err)
		}
		out = append(out, n)
	}
	s.events = nil
	return out
}

func names(moved []Moved) string {
	var out []string
	for _, m := range moved {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}
