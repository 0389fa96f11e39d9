package authorcapture_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// fakeStore keeps the first author, and fails the way networks fail.
type fakeStore struct {
	mu      sync.Mutex
	authors map[types.UID]queue.CommandAuthor
	before  func(ctx context.Context) error // fail and store nothing
	after   error                           // store and fail
}

func (s *fakeStore) RecordCommandAuthor(ctx context.Context, uid types.UID, author queue.CommandAuthor) error {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authors == nil {
		s.authors = map[types.UID]queue.CommandAuthor{}
	}
	if _, taken := s.authors[uid]; !taken {
		s.authors[uid] = author
	}
	return s.after
}

func config(change ...func(*authorcapture.Config)) authorcapture.Config {
	cfg := authorcapture.Config{
		Timeout:           time.Second,
		Kinds:             []string{"commitrequests.tidemark.dev", "commitrequests.configbutler.ai"},
		DisplayNameExtras: []string{"configbutler.ai/claims/display-name"},
		EmailExtras:       []string{"configbutler.ai/claims/email"},
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func newFunction(t testing.TB, cfg authorcapture.Config, store authorcapture.Store, logs io.Writer) http.Handler {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return authorcapture.New(cfg, store, telemetry.WriteTo(logs, "authorcapture"))
}

func send(f http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// answer is the response of a review, which must be an AdmissionReview v1 that allows.
type answer struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	AuditAnnotations map[string]string `json:"auditAnnotations"`
}

func review(t testing.TB, f http.Handler, body string) answer {
	t.Helper()
	w := send(f, "POST", authorcapture.Path, "", body)
	var out struct {
		Kind       string  `json:"kind"`
		APIVersion string  `json:"apiVersion"`
		Request    *any    `json:"request"`
		Response   *answer `json:"response"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); w.Code != 200 || err != nil || out.Kind != "AdmissionReview" || out.APIVersion != "admission.k8s.io/v1" || out.Response == nil || out.Request != nil {
		t.Fatalf("answered %d %s (%v)", w.Code, w.Body, err)
	}
	if !out.Response.Allowed {
		t.Fatalf("not allowed: %s", w.Body)
	}
	return *out.Response
}

const path = "../../events/samples/"

func TestOnlyTheFirstCreateOfACommandIsCaptured(t *testing.T) {
	text, err := os.ReadFile(path + "cases/join/18-admission-command-capture/input.json")
	if err != nil {
		t.Fatal(err)
	}
	var input struct{ Reviews []json.RawMessage }
	if err := json.Unmarshal(text, &input); err != nil {
		t.Fatal(err)
	}
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		redis, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		defer redis.Close()
		store := redis.CommandAuthorStore()
		f := newFunction(t, config(), store, io.Discard)
		want := []answer{
			{"rev-1", true, map[string]string{"author": "captured", "command-uid": "cr-1"}},
			{"rev-2", true, nil},
			{"rev-3", true, nil},
			{"rev-4", true, nil},
		}
		for i, r := range input.Reviews {
			if diff := cmp.Diff(want[i], review(t, f, string(r))); diff != "" {
				t.Errorf("review %d:\n%s", i+1, diff)
			}
		}
		// The same object once more, by somebody else.
		again := strings.Replace(string(input.Reviews[0]), "ana@example.test", "eve", 1)
		review(t, f, again)
		author, ok := store.LookupCommandAuthor(t.Context(), "cr-1")
		if !ok || author.Author != "ana@example.test" || author.DisplayName != "Ana" {
			t.Errorf("cr-1 is %+v (%t), want ana's", author, ok)
		}
		if at, err := time.Parse(time.RFC3339Nano, author.RequestedAt); err != nil || time.Since(at) > time.Minute || time.Since(at) < 0 {
			t.Errorf("requestedAt %q is not now by our clock (%v)", author.RequestedAt, err)
		}
		for _, uid := range []types.UID{"cr-2", "p-1", "rev-1", "rev-3"} {
			if author, ok := store.LookupCommandAuthor(t.Context(), uid); ok {
				t.Errorf("%s is captured: %+v", uid, author)
			}
		}
	})
}

// Recorded reviews of a real API server: each create of a CommitRequest that is no dry run is captured under its uid.
func TestRecordedReviews(t *testing.T) {
	captured := 0
	for _, pattern := range []string{"corpus/admission/*.jsonl", "sessions/*/admission.jsonl"} {
		files, err := filepath.Glob(path + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no recordings for %s (%v)", pattern, err)
		}
		for _, file := range files {
			captured += checkRecording(t, file)
		}
	}
	if captured < 5 {
		t.Errorf("only %d commands in the recordings", captured)
	}
}

func checkRecording(t *testing.T, file string) (captured int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct{ Body json.RawMessage }
		var in struct {
			Request struct {
				UID, Operation string
				DryRun         bool
				UserInfo       struct{ Username string }
				Object         struct{ Metadata struct{ UID types.UID } }
			}
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || json.Unmarshal(line.Body, &in) != nil {
			t.Fatalf("%s: %s", file, lines.Text())
		}
		store := &fakeStore{}
		got := review(t, newFunction(t, config(), store, io.Discard), string(line.Body))
		if got.UID != in.Request.UID {
			t.Errorf("%s: answered uid %q, want %q", file, got.UID, in.Request.UID)
		}
		want := map[types.UID]string{}
		if in.Request.Operation == "CREATE" && !in.Request.DryRun {
			want[in.Request.Object.Metadata.UID] = in.Request.UserInfo.Username
			captured++
		}
		stored := map[types.UID]string{}
		for uid, author := range store.authors {
			stored[uid] = author.Author
		}
		if diff := cmp.Diff(want, stored); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
	return captured
}

const create = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"rev","operation":"CREATE","resource":{"group":"tidemark.dev","version":"v1alpha1","resource":"commitrequests"},"userInfo":{"username":"alice"},"object":{"metadata":{"uid":"cr"}}}}`

func TestContract(t *testing.T) {
	token := func(c *authorcapture.Config) { c.Token = settings.NewSecret("sesame") }
	for _, c := range []struct {
		name, request, token, body string
		config                     func(*authorcapture.Config)
		status                     int
	}{
		{name: "a review", request: "POST /validate-operator-types", body: create, status: 200},
		{name: "a review that does not say its version", request: "POST /validate-operator-types", body: strings.Replace(create, `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`, "", 1), status: 200},
		{name: "a review with the token", request: "POST /validate-operator-types", token: "sesame", body: create, config: token, status: 200},
		{name: "no token", request: "POST /validate-operator-types", body: create, config: token, status: 401},
		{name: "another token", request: "POST /validate-operator-types", token: "sesam", body: create, config: token, status: 401},
		{name: "another path", request: "POST /", body: create, status: 404},
		{name: "a path below", request: "POST /validate-operator-types/x", body: create, status: 404},
		{name: "GET", request: "GET /validate-operator-types", status: 405},
		{name: "no JSON", request: "POST /validate-operator-types", body: "hello", status: 400},
		{name: "another version", request: "POST /validate-operator-types", body: strings.Replace(create, "k8s.io/v1", "k8s.io/v1beta1", 1), status: 400},
		{name: "another kind", request: "POST /validate-operator-types", body: strings.Replace(create, "AdmissionReview", "Review", 1), status: 400},
		{name: "no request", request: "POST /validate-operator-types", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, status: 400},
		{name: "too large", request: "POST /validate-operator-types", body: strings.Replace(create, `"alice"`, `"`+strings.Repeat("a", 9<<20)+`"`, 1), status: 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := c.config
			if change == nil {
				change = func(*authorcapture.Config) {}
			}
			store := &fakeStore{}
			method, path, _ := strings.Cut(c.request, " ")
			w := send(newFunction(t, config(change), store, io.Discard), method, path, c.token, c.body)
			if w.Code != c.status {
				t.Errorf("%s is answered %d %s, want %d", c.request, w.Code, w.Body, c.status)
			}
			if stored := len(store.authors) == 1; stored != (c.status == 200) {
				t.Errorf("stored: %v", store.authors)
			}
		})
	}
}

func TestWhatIsNotCaptured(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		annotation     string
	}{
		{"another group", "tidemark.dev", "example.com", ""},
		{"another resource", `"commitrequests"`, `"gittargets"`, ""},
		{"a subresource", `"operation"`, `"subResource":"status","operation"`, ""},
		{"a dry run", `"operation"`, `"dryRun":true,"operation"`, ""},
		{"an object without a uid", `"uid":"cr"`, `"name":"cr"`, "no_uid"},
		{"no object", `{"metadata":{"uid":"cr"}}`, `null`, "no_uid"},
		{"an object of another shape", `{"metadata":{"uid":"cr"}}`, `[1]`, "no_uid"},
		{"nobody", `{"username":"alice"}`, `{}`, "no_username"},
	} {
		store := &fakeStore{}
		got := review(t, newFunction(t, config(), store, io.Discard), strings.Replace(create, c.from, c.to, 1))
		if len(store.authors) != 0 || got.AuditAnnotations["author"] != c.annotation {
			t.Errorf("%s: stored %v, annotations %v", c.name, store.authors, got.AuditAnnotations)
		}
	}
}

func TestTheAnswerNeverWaitsForTheStore(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		store   *fakeStore
		within  time.Duration
		outcome string
		stored  int
	}{
		{"fails", &fakeStore{before: func(context.Context) error { return down }}, 0, "store_failed", 0},
		{"stores and fails", &fakeStore{after: down}, 0, "store_failed", 1},
		{"hangs", &fakeStore{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, time.Second, "timed_out", 0},
		{"hangs and does not even listen", &fakeStore{before: func(context.Context) error { time.Sleep(time.Hour); return down }}, time.Second, "timed_out", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := review(t, newFunction(t, config(), c.store, io.Discard), create)
				if took := time.Since(start); took != c.within {
					t.Errorf("answered after %s, want %s", took, c.within)
				}
				if got.AuditAnnotations["author"] != c.outcome {
					t.Errorf("annotations %v, want %s", got.AuditAnnotations, c.outcome)
				}
				time.Sleep(2 * time.Hour)
				if len(c.store.authors) != c.stored {
					t.Errorf("stored %v", c.store.authors)
				}
			})
		})
	}
}

func TestAHangingStoreDoesNotGatherReviewsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{before: func(context.Context) error { time.Sleep(time.Hour); return errors.New("down") }}
		f := newFunction(t, config(), store, io.Discard)
		outcomes := map[string]int{}
		var mu sync.Mutex
		for range 300 {
			go func() {
				got := review(t, f, create)
				mu.Lock()
				outcomes[got.AuditAnnotations["author"]]++
				mu.Unlock()
			}()
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if outcomes["timed_out"] != 256 || outcomes["busy"] != 44 {
			t.Errorf("outcomes %v, want 256 that waited and 44 that did not", outcomes)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestConfigurationMistakesNameTheRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*authorcapture.Config)
		want   string
	}{
		{"a timeout beyond the webhook's", func(c *authorcapture.Config) { c.Timeout = 9 * time.Second }, "ADMISSION_TIMEOUT (9s) must be between 1ms and 5s: the API server waits 10 s by default"},
		{"no kinds", func(c *authorcapture.Config) { c.Kinds = nil }, "ADMISSION_KINDS is not set: there would be nothing to capture"},
		{"a kind without a group", func(c *authorcapture.Config) { c.Kinds = []string{"commitrequests"} }, "ADMISSION_KINDS (commitrequests) must be resource.group in lower case, such as commitrequests.tidemark.dev"},
		{"a kind and not a resource", func(c *authorcapture.Config) { c.Kinds = []string{"CommitRequest.tidemark.dev"} }, "ADMISSION_KINDS (CommitRequest.tidemark.dev) must be resource.group in lower case, such as commitrequests.tidemark.dev"},
	} {
		cfg := config(c.change)
		if err := cfg.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
