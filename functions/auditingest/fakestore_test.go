package auditingest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// fakeStore keeps events in memory and fails the way networks fail.
type fakeStore struct {
	mu      sync.Mutex
	stored  map[string]string // audit ID → route
	calls   int
	before  func(ctx context.Context) error // fail and store nothing
	after   func(ctx context.Context) error // store and fail
	arrived map[string]time.Time
}

func (s *fakeStore) RecordEvents(ctx context.Context, route string, events []attribution.Event) ([]attribution.Reason, error) {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	reasons := make([]attribution.Reason, len(events))
	for i := range events {
		reasons[i] = attribution.Admit(&events[i])
		to := route
		if to == "" {
			to = events[i].Route
		}
		switch {
		case reasons[i] != "":
			continue
		case to == "":
			reasons[i] = attribution.ReasonMissingRoute
		case len(attribution.Prove(nil, &events[i])) == 0:
			reasons[i] = attribution.ReasonNoFact
		default:
			reasons[i] = attribution.ReasonStored
			s.stored[strings.Clone(events[i].AuditID)] = strings.Clone(to)
		}
	}
	if s.after != nil {
		return nil, s.after(ctx)
	}
	return reasons, nil
}

func (s *fakeStore) RoutesHeard(ctx context.Context, routes []string) (map[string]time.Time, error) {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return nil, err
		}
	}
	out := map[string]time.Time{}
	for _, r := range routes {
		if at, ok := s.arrived[r]; ok {
			out[r] = at
		}
	}
	return out, nil
}

// config is that of a function with tokens for two routes.
func config(change ...func(*auditingest.Config)) auditingest.Config {
	cfg := auditingest.Config{
		Tokens:        settings.NewSecret("default=sesame, eu-1=open=up,eu-1=second,*=master"),
		FactTTL:       time.Minute,
		MaxEventBytes: 64 << 10, MaxBodyBytes: 1 << 20,
		Concurrency: 4, Queue: 4, QueueWait: time.Second, ReadTimeout: 5 * time.Second, StoreTimeout: 2 * time.Second,
		DisplayNameExtras: []string{"configbutler.ai/claims/display-name"}, EmailExtras: []string{"configbutler.ai/claims/email"},
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func newFunction(t testing.TB, cfg auditingest.Config, store auditingest.Store, logs io.Writer) http.Handler {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	tel := telemetry.WriteTo(logs, "auditingest")
	f, err := auditingest.New(cfg, store, tel)
	if err != nil {
		t.Fatal(err)
	}
	return tel.Handler(f, telemetry.Options{})
}

func update(auditID string) string {
	return fmt.Sprintf(`{"level":"RequestResponse","auditID":%q,"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps/prices","verb":"update","user":{"username":"alice"},"objectRef":{"resource":"configmaps","namespace":"shop","name":"prices"},"responseStatus":{"code":200},"responseObject":{"kind":"ConfigMap","metadata":{"name":"prices","namespace":"shop","uid":"u-1","resourceVersion":"7"}},"requestReceivedTimestamp":"2026-03-01T10:00:00.000000Z","stageTimestamp":"2026-03-01T10:00:00.010000Z"}`, auditID)
}

func list(items ...string) string {
	return `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

func send(f http.Handler, method, path string, header map[string]string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

type counts map[string]int
