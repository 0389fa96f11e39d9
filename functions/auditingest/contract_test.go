package auditingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

func TestContract(t *testing.T) {
	annotated := func(c *auditingest.Config) { c.RouteAnnotationKey = "kcp.io/cluster" }
	anonymous := func(c *auditingest.Config) { c.Tokens, c.AllowAnonymous = settings.Secret{}, true }
	small := func(c *auditingest.Config) { c.MaxEventBytes = 4096 }
	tiny := func(c *auditingest.Config) { c.MaxBodyBytes = 300 }
	one := list(update("a"))
	large := `{"auditID":"l","requestObject":{"data":"` + strings.Repeat("x", 8000) + `"}}`
	for _, c := range []struct {
		name    string
		request string // method and path
		scheme  string // empty: Bearer
		token   string
		body    string
		config  func(*auditingest.Config)
		status  int
		counts  counts
	}{
		{name: "an event is stored", request: "POST /audit-webhook/default", token: "sesame", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "an empty list", request: "POST /audit-webhook/default", token: "sesame", body: list(), status: 200, counts: counts{}},
		{name: "a token with = in it", request: "POST /audit-webhook/eu-1", token: "open=up", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "a second token of a route", request: "POST /audit-webhook/eu-1", token: "second", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "the token of every route", request: "POST /audit-webhook/anything", token: "master", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "an escaped route", request: "POST /audit-webhook/root%3Aorg%25", token: "master", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "a scheme in small letters", request: "POST /audit-webhook/default", scheme: "bearer ", token: "sesame", body: one, status: 200, counts: counts{"stored": 1}},
		{name: "another scheme", request: "POST /audit-webhook/default", scheme: "Basic ", token: "sesame", body: one, status: 401},
		{name: "no token", request: "POST /audit-webhook/default", body: one, status: 401},
		{name: "an unknown token", request: "POST /audit-webhook/default", token: "guess", body: one, status: 401},
		{name: "an unknown token beyond the known one", request: "POST /audit-webhook/default", token: "sesame1", body: one, status: 401},
		{name: "the token of another route", request: "POST /audit-webhook/default", token: "second", body: one, status: 403},
		{name: "a token for a route without any", request: "POST /audit-webhook/unknown", token: "sesame", body: one, status: 403},
		{name: "anybody, where allowed", request: "POST /audit-webhook/default", body: one, config: anonymous, status: 200, counts: counts{"stored": 1}},
		{name: "GET", request: "GET /audit-webhook/default", token: "sesame", status: 405},
		{name: "PUT", request: "PUT /audit-webhook/default", token: "sesame", body: one, status: 405},
		{name: "the bare path", request: "POST /audit-webhook", token: "master", body: one, status: 400},
		{name: "the bare path with a slash", request: "POST /audit-webhook/", token: "master", body: one, status: 400},
		{name: "the bare path with an annotation", request: "POST /audit-webhook", token: "master", body: one, config: annotated, status: 200, counts: counts{"missing_cluster_annotation": 1}},
		{name: "the bare path with a slash and an annotation", request: "POST /audit-webhook/", token: "master", body: one, config: annotated, status: 400},
		{name: "the bare path opens with the token of every route only", request: "POST /audit-webhook", token: "sesame", body: one, config: annotated, status: 403},
		{name: "a trailing slash", request: "POST /audit-webhook/default/", token: "sesame", body: one, status: 400},
		{name: "two segments", request: "POST /audit-webhook/default/more", token: "sesame", body: one, status: 400},
		{name: "an escaped slash", request: "POST /audit-webhook/a%2Fb", token: "master", body: one, status: 400},
		{name: "a control character", request: "POST /audit-webhook/a%0Ab", token: "master", body: one, status: 400},
		{name: "a star for a route", request: "POST /audit-webhook/*", token: "master", body: one, status: 400},
		{name: "another path", request: "POST /", token: "master", body: one, status: 404},
		{name: "a path that only begins so", request: "POST /audit-webhooks/default", token: "master", body: one, status: 404},
		{name: "no JSON", request: "POST /audit-webhook/default", token: "sesame", body: "hello", status: 400},
		{name: "another kind", request: "POST /audit-webhook/default", token: "sesame", body: `{"kind":"Pod"}`, status: 400},
		{name: "a malformed event costs itself", request: "POST /audit-webhook/default", token: "sesame", body: list(update("a"), `{"stage":7}`, update("b")), status: 200, counts: counts{"stored": 2, "event_malformed": 1}},
		{name: "a large event costs itself", request: "POST /audit-webhook/default", token: "sesame", body: list(update("a"), large, update("b")), config: small, status: 200, counts: counts{"stored": 2, "event_too_large": 1}},
		{name: "a large body", request: "POST /audit-webhook/default", token: "sesame", body: list(update("a"), update("b")), config: tiny, status: 413},
		{name: "reasons", request: "POST /audit-webhook/default", token: "sesame", status: 200,
			body: list(update("a"), strings.Replace(update("b"), "ResponseComplete", "RequestReceived", 1), strings.Replace(update("c"), `"update"`, `"get"`, 1),
				strings.Replace(update("d"), `"code":200`, `"code":409`, 1), strings.Replace(update("e"), `configmaps/prices`, `configmaps/prices?dryRun=All`, 1)),
			counts: counts{"stored": 1, "stage": 1, "read_only_or_unknown_verb": 1, "failed_request": 1, "dry_run": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &fakeStore{}
			change := c.config
			if change == nil {
				change = func(*auditingest.Config) {}
			}
			f := newFunction(t, config(change), store, io.Discard)
			method, path, _ := strings.Cut(c.request, " ")
			header := map[string]string{}
			if c.token != "" {
				header = bearer(c.token)
			}
			if c.scheme != "" {
				header["Authorization"] = c.scheme + c.token
			}
			w := send(f, method, path, header, strings.NewReader(c.body))
			if w.Code != c.status {
				t.Fatalf("%s is answered %d %s, want %d", c.request, w.Code, w.Body, c.status)
			}
			if c.status != 200 {
				if store.calls > 0 && c.status != 413 {
					t.Error("a refused request reached the store")
				}
				return
			}
			var answer struct {
				Stored int
				Counts counts
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if answer.Counts == nil {
				answer.Counts = counts{}
			}
			if diff := cmp.Diff(c.counts, answer.Counts); diff != "" || answer.Stored != c.counts["stored"] {
				t.Errorf("answer %s, want %v", w.Body, c.counts)
			}
		})
	}
}

func TestARouteIsStoredAsItReads(t *testing.T) {
	store := &fakeStore{}
	f := newFunction(t, config(), store, io.Discard)
	for path, want := range map[string]string{"/audit-webhook/root%3Aorg%25": "root:org%", "/audit-webhook/ws%20a": "ws a", "/audit-webhook/plain": "plain"} {
		if w := send(f, "POST", path, bearer("master"), strings.NewReader(list(update(path)))); w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if store.stored[path] != want {
			t.Errorf("%s is stored under %q, want %q", path, store.stored[path], want)
		}
	}
}

func TestWhoIsNotLetInIsToldWhyAndLoggedOnceAMinute(t *testing.T) {
	var logs bytes.Buffer
	f := newFunction(t, config(), &fakeStore{}, &logs)
	for token, want := range map[string]string{"": "no Bearer token was sent; an API server sends its token over https only", "hunter2": "the Bearer token does not open this route"} {
		var header map[string]string
		if token != "" {
			header = bearer(token)
		}
		if w := send(f, "POST", "/audit-webhook/default", header, strings.NewReader(list())); w.Code != 401 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("token %q: %d %q, want %q", token, w.Code, w.Body, want)
		}
	}
	if got := logs.String(); strings.Count(got, "not let in") != 1 || !strings.Contains(got, `"route":"default","status":401`) || strings.Contains(got, "hunter2") {
		t.Errorf("logged:\n%s", got)
	}
}

func TestARefusalTellsWhatToDo(t *testing.T) {
	f := newFunction(t, config(), &fakeStore{}, io.Discard)
	if w := send(f, "GET", "/audit-webhook/default", bearer("sesame"), nil); w.Header().Get("Allow") != "POST" {
		t.Errorf("405 without Allow: POST: %v", w.Header())
	}
	if w := send(f, "POST", "/audit-webhook/default", nil, nil); w.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("401 without WWW-Authenticate: %v", w.Header())
	}
	if w := send(f, "POST", "/audit-webhook/default", map[string]string{"Authorization": "Bearer sesame", "Content-Encoding": "br"}, strings.NewReader(list())); w.Code != 415 {
		t.Errorf("an unknown encoding is answered %d, want 415", w.Code)
	}
}

// failingBody fails the test when it is read.
type failingBody struct{ t *testing.T }

func (b failingBody) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}

func TestABodyIsNotReadBeforeItsTokenIsKnown(t *testing.T) {
	f := newFunction(t, config(), &fakeStore{}, io.Discard)
	for _, token := range []string{"", "guess", "second"} {
		send(f, "POST", "/audit-webhook/default", bearer(token), failingBody{t})
	}
	large := httptest.NewRequest("POST", "/audit-webhook/default", failingBody{t})
	large.Header.Set("Authorization", "Bearer sesame")
	large.ContentLength = 2 << 20
	w := httptest.NewRecorder()
	f.ServeHTTP(w, large)
	if w.Code != 413 {
		t.Errorf("a body that says it is too large is answered %d, want 413", w.Code)
	}
}

func TestAPlatformThatKnowsTheCallerNeedsNoToken(t *testing.T) {
	f := newFunction(t, config(), &fakeStore{}, io.Discard)
	r := httptest.NewRequest("POST", "/audit-webhook/default", strings.NewReader(list(update("a"))))
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(host.WithTrust(r.Context())))
	if w.Code != 200 {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestGzippedPosts(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, list(update("a"), update("b")))
	w.Close()
	store := &fakeStore{}
	f := newFunction(t, config(), store, io.Discard)
	answer := send(f, "POST", "/audit-webhook/default", map[string]string{"Authorization": "Bearer sesame", "Content-Encoding": "gzip"}, &packed)
	if answer.Code != 200 || len(store.stored) != 2 {
		t.Errorf("answered %d %s, stored %v", answer.Code, answer.Body, store.stored)
	}
	packed.Reset()
	w.Reset(&packed)
	fmt.Fprint(w, list(`{"a":"`+strings.Repeat("x", 8<<20)+`"}`))
	w.Close()
	if answer := send(f, "POST", "/audit-webhook/default", map[string]string{"Authorization": "Bearer sesame", "Content-Encoding": "gzip"}, &packed); answer.Code != 413 {
		t.Errorf("8 MiB in %d bytes of gzip are answered %d, want 413", packed.Len(), answer.Code)
	}
}

func TestAStoreThatFailsIsTriedAgain(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		name      string
		store     *fakeStore
		persisted int
	}{
		{"fails", &fakeStore{before: func(context.Context) error { return down }}, 0},
		{"hangs", &fakeStore{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, 0},
		{"stores and fails", &fakeStore{after: func(context.Context) error { return down }}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFunction(t, config(func(c *auditingest.Config) { c.StoreTimeout = 50 * time.Millisecond }), c.store, io.Discard)
				w := send(f, "POST", "/audit-webhook/default", bearer("sesame"), strings.NewReader(list(update("a"))))
				if w.Code != 503 || w.Header().Get("Retry-After") == "" {
					t.Errorf("answered %d %v, want 503 with Retry-After", w.Code, w.Header())
				}
				if len(c.store.stored) != c.persisted {
					t.Errorf("%d events stored, want %d", len(c.store.stored), c.persisted)
				}
				c.store.before, c.store.after = nil, nil
				if w := send(f, "POST", "/audit-webhook/default", bearer("sesame"), strings.NewReader(list(update("a")))); w.Code != 200 || len(c.store.stored) != 1 {
					t.Errorf("the same post again is answered %d %s, %d stored", w.Code, w.Body, len(c.store.stored))
				}
			})
		})
	}
}

// What came whole before a body broke off is stored: the sender may never repeat it.
func TestABodyThatBreaksOff(t *testing.T) {
	store := &fakeStore{}
	f := newFunction(t, config(), store, io.Discard)
	text := list(update("a"), update("b"))
	body := io.MultiReader(strings.NewReader(text[:len(text)-100]), brokenReader{})
	w := send(f, "POST", "/audit-webhook/default", bearer("sesame"), body)
	if w.Code != 400 || store.stored["a"] != "default" || len(store.stored) != 1 {
		t.Errorf("answered %d, stored %v; want 400 and the first event", w.Code, store.stored)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestSelfTest(t *testing.T) {
	now := time.Now()
	store := &fakeStore{arrived: map[string]time.Time{"default": now.Add(-time.Minute), "eu-1": now.Add(-time.Hour)}}
	f := newFunction(t, config(), store, io.Discard)
	for _, c := range []struct {
		path, token string
		status      int
		arriving    bool
		meaning     string
	}{
		{"/audit-webhook/default/self-test", "sesame", 200, true, "facts arrive"},
		{"/audit-webhook/eu-1/self-test", "second", 200, false, "5 minutes"},
		{"/audit-webhook/new/self-test", "master", 200, false, "no fact ever"},
		{"/audit-webhook/default/self-test", "", 401, false, ""},
		{"/audit-webhook/default/self-test", "second", 403, false, ""},
		{"/audit-webhook/default/self-test/", "sesame", 400, false, ""},
	} {
		w := send(f, "GET", c.path, bearer(c.token), nil)
		if w.Code != c.status {
			t.Errorf("GET %s is answered %d %s, want %d", c.path, w.Code, w.Body, c.status)
			continue
		}
		var answer struct {
			Arriving bool
			Meaning  string
		}
		if c.status == 200 && (json.Unmarshal(w.Body.Bytes(), &answer) != nil || answer.Arriving != c.arriving || !strings.Contains(answer.Meaning, c.meaning)) {
			t.Errorf("GET %s is answered %s", c.path, w.Body)
		}
	}
	if w := send(f, "POST", "/audit-webhook/default/self-test", bearer("sesame"), nil); w.Code != 405 {
		t.Errorf("POST is answered %d, want 405", w.Code)
	}
	store.before = func(context.Context) error { return errors.New("down") }
	if w := send(f, "GET", "/audit-webhook/default/self-test", bearer("sesame"), nil); w.Code != 503 {
		t.Errorf("with the store down answered %d, want 503", w.Code)
	}
}
