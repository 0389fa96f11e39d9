package refsweep

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/host"
)

func commit(r *gittest.Repository, text string) string {
	return r.Commit("main", text, map[string]string{"f": text})
}

func TestThreeRepositoriesOneMovesOneNotification(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.git.Repository("a.git"), w.git.Repository("b.git"), w.git.Repository("c.git")
	first := commit(a, "1")
	commit(b, "1")
	commit(c, "1")
	w.targets(document("a", a.URL, onMain), document("b", b.URL, onMain), document("c", c.URL, onMain))

	s := w.tick()
	if s.Listed != 3 || len(s.Moved) != 0 || names(s.Appeared) != "a b c" || !s.Notified {
		t.Errorf("first sweep: %+v", s)
	}
	if n := w.sink.take(t); len(n) != 1 || names(n[0].Appeared) != "a b c" || len(n[0].Moved) != 0 {
		t.Errorf("first notification: %+v", n)
	}

	w.start() // nothing is kept in memory
	if s := w.tick(); s.Listed != 3 || len(s.Moved)+len(s.Appeared) != 0 {
		t.Errorf("a sweep in which nothing moved: %+v", s)
	}
	if n := w.sink.take(t); len(n) != 0 {
		t.Errorf("notifications of nothing: %+v", n)
	}

	second := commit(a, "2")
	w.start()
	s = w.tick()
	if names(s.Moved) != "a" || s.Moved[0].Previous != first || s.Moved[0].SHA != second || len(s.Appeared) != 0 {
		t.Errorf("the sweep after one moved: %+v", s)
	}
	if n := w.sink.take(t); len(n) != 1 || names(n[0].Moved) != "a" || n[0].Moved[0].SHA != second || n[0].Sweep != s.Sweep {
		t.Errorf("its notification: %+v", n)
	}
	if got := w.observed()["a"]; got.SHA != second || got.TrackingRef != "refs/heads/main" || got.Error != "" || got.FirstObserved == nil || got.FirstObserved.After(got.ObservedAt) {
		t.Errorf("observation: %+v", got)
	}
	code, page := w.get("/metrics", "")
	for _, line := range []string{`tidemark_refsweep_moves_total 1`, `tidemark_refsweep_targets{kind="listed"} 3`, `tidemark_refsweep_sweeps_total{outcome="published"} 1`} {
		if code != http.StatusOK || !strings.Contains(page, line) {
			t.Errorf("metrics miss %s:\n%s", line, page)
		}
	}
}

func TestEveryKindOfTick(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	for name, tick := range map[string]struct {
		header http.Header
		body   string
	}{
		"plain":                 {},
		"PingSource":            {http.Header{"Ce-Type": {"dev.knative.sources.ping"}, "Ce-Id": {"1"}, "Ce-Source": {"/x"}, "Ce-Specversion": {"1.0"}, "Content-Type": {"application/json"}}, "{}"},
		"structured CloudEvent": {http.Header{"Content-Type": {"application/cloudevents+json"}}, `{"specversion":"1.0","id":"1","source":"/x","type":"y"}`},
		"EventBridge Scheduler": {http.Header{"Content-Type": {"application/json"}}, `{"version":"0","detail-type":"Scheduled Event","detail":{}}`},
		"something else at all": {nil, "\x00\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tick.body))
			req.Header = tick.header
			rec := httptest.NewRecorder()
			w.h.ServeHTTP(rec, req)
			var s Summary
			if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil || rec.Code != http.StatusOK || s.Listed != 1 {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, httptest.NewRequest(method, "/", nil))
		if rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, rec.Code)
		}
	}
}

func TestANotificationIsRepeatedUntilItIsSent(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	w.tick()
	w.sink.take(t)
	second := commit(r, "2")
	w.sink.set(http.StatusBadRequest) // one that is not worth another try
	if code, body := w.post(t.Context(), ""); code != http.StatusServiceUnavailable {
		t.Errorf("a sink that refuses: %d %s", code, body)
	}
	if got := w.observed()["a"]; got.SHA != second {
		t.Errorf("published nevertheless: %+v", got)
	}
	w.sink.set(0)
	w.start()
	if s := w.tick(); names(s.Moved) != "a" {
		t.Errorf("the next sweep: %+v", s)
	}
	if n := w.sink.take(t); len(n) != 1 || names(n[0].Moved) != "a" || n[0].Moved[0].SHA != second {
		t.Errorf("the repeated notification: %+v", n)
	}
	w.tick()
	if n := w.sink.take(t); len(n) != 0 {
		t.Errorf("repeated once too often: %+v", n)
	}
}

func TestASinkGetsThreeTries(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	w.sink.set(http.StatusBadGateway)
	if code, _ := w.post(t.Context(), ""); code != http.StatusServiceUnavailable || w.sink.posts != sinkTries {
		t.Errorf("%d after %d tries, want 503 after %d", code, w.sink.posts, sinkTries)
	}
}

// The process is gone after it published and before it sent anything.
func TestACrashBetweenPublishingAndSending(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	second := commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	sweep, err := w.deps.Fleet.Begin(t.Context(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := w.deps.Targets.Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.Publish(t.Context(), []gitpoll.Result{{Target: list[0], SHA: second, At: time.Now()}}, list, nil, 10); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond) // its lease is over
	if s := w.tick(); names(s.Appeared) != "a" {
		t.Errorf("the next sweep: %+v", s)
	}
	if n := w.sink.take(t); len(n) != 1 || names(n[0].Appeared) != "a" {
		t.Errorf("the notification of the next sweep: %+v", n)
	}
}

func TestSourcesThatCannotBeListed(t *testing.T) {
	w := newWorld(t)
	r, private := w.git.Repository("a.git"), w.git.Repository("private.git")
	head := commit(r, "1")
	commit(private, "1")
	w.secret("empty", "username", "alice")
	w.targets(
		document("good", r.URL, onMain),
		document("suspended", r.URL, onMain+"  suspend: true\n"),
		document("range", r.URL, "  ref: {semver: not a range}\n"),
		document("cloud", r.URL, onMain+"  provider: azure\n"),
		document("missing", r.URL, onMain+"  secretRef: {name: missing}\n"),
		document("branch", r.URL, "  ref: {branch: none}\n"),
		document("gone", w.git.URL+"/none.git", onMain),
		document("scheme", "file:///etc/passwd", onMain),
		document("injection", r.URL, "  ref: {name: \"refs/heads/a\\nref-prefix refs/\"}\n"),
		document("dead", "http://"+gittest.Dead(t)+"/r.git", onMain),
	)
	s := w.tick()
	want := map[gitpoll.Kind]int{gitpoll.KindSuspended: 1, gitpoll.KindConfiguration: 4, gitpoll.KindCredentials: 1, gitpoll.KindNotAdvertised: 1, gitpoll.KindNotFound: 1, gitpoll.KindUnreachable: 1}
	got, _ := json.Marshal(s.Failed)
	expected, _ := json.Marshal(want)
	if string(got) != string(expected) || s.Listed != 1 || s.Targets != 10 {
		t.Errorf("failed %s, want %s (%+v)", got, expected, s)
	}
	o := w.observed()
	if len(o) != 10 || o["good"].SHA != head || o["suspended"].Error != "suspended" || !strings.HasPrefix(o["missing"].Error, "getting secret flux/missing: ") {
		t.Errorf("observations: %+v", o)
	}
	_, page := w.get("/metrics", "")
	if !strings.Contains(page, "wavefront_credential_read_failures_total 1") || !strings.Contains(page, "wavefront_ref_list_failures_total{host=") {
		t.Errorf("the wavefront counters are missing:\n%s", page)
	}
	// A source that was seen keeps its commit while it is suspended.
	w.targets(document("good", r.URL, onMain+"  suspend: true\n"))
	w.tick()
	if got := w.observed(); len(got) != 1 || got["good"].SHA != head || got["good"].Kind != gitpoll.KindSuspended {
		t.Errorf("a suspended source: %+v", got)
	}
}

func TestAnOldServerIsRememberedByTheNextTick(t *testing.T) {
	w := newWorld(t)
	w.git.WithoutV2()
	r := w.git.Repository("a.git")
	commit(r, "1")
	sha256 := w.git.RepositorySHA256("b.git")
	commit(sha256, "1")
	w.targets(document("a", r.URL, onMain), document("b", sha256.URL, onMain))
	for i, want := range []int{4, 2} {
		w.start()
		w.git.Records()
		if s := w.tick(); s.Listed != 2 {
			t.Fatalf("tick %d: %+v", i, s)
		}
		records := w.git.Records()
		if len(records) != want {
			t.Errorf("tick %d took %d requests, want %d", i, len(records), want)
		}
		for _, record := range records[len(records)-1:] {
			if record.Method != http.MethodGet {
				t.Errorf("tick %d ends with %s %s, want the discovery", i, record.Method, record.Path)
			}
		}
	}
}

func TestAThrottledHostIsLeftAloneByTheNextTick(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	head := commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	w.tick()
	w.git.Inject(gittest.Reads, 1, gittest.Refuse(http.StatusTooManyRequests, "120"))
	w.start()
	if s := w.tick(); s.Failed[gitpoll.KindThrottled] != 1 {
		t.Errorf("the refused tick: %+v", s)
	}
	w.git.Records()
	w.start()
	if s := w.tick(); s.Failed[gitpoll.KindThrottled] != 1 {
		t.Errorf("the next tick: %+v", s)
	}
	if n := len(w.git.Records()); n != 0 {
		t.Errorf("the next tick asked %d times", n)
	}
	if got := w.observed()["a"]; got.SHA != head || !strings.HasPrefix(got.Error, "host asked to be left alone until ") {
		t.Errorf("observation: %+v", got)
	}
}

func TestReadToken(t *testing.T) {
	w := newWorld(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	w.cfg.ReadToken = token("s3cr3t")
	w.start()
	code, body := w.post(t.Context(), "")
	if code != http.StatusOK || strings.Contains(string(body), "a.git") || !strings.Contains(string(body), `"listed":1`) {
		t.Errorf("a tick of somebody unknown: %d %s, want numbers only", code, body)
	}
	if code, body := w.post(host.WithTrust(t.Context()), ""); code != http.StatusOK || !strings.Contains(string(body), `"slowestHosts"`) {
		t.Errorf("a tick of the platform: %d %s", code, body)
	}
	for tok, want := range map[string]int{"": 401, "wrong": 401, "s3cr3t": 200} {
		if code, _ := w.get("/observations?namespace=flux&name=a", tok); code != want {
			t.Errorf("observations with token %q: %d, want %d", tok, code, want)
		}
	}
	w.targets(document("secret-source", r.URL, onMain), document("secret-source", r.URL, onMain))
	if code, body := w.post(t.Context(), ""); code != http.StatusServiceUnavailable || strings.Contains(string(body), "secret-source") {
		t.Errorf("a failed tick of somebody unknown: %d %s, want no names", code, body)
	}
	if _, body := w.post(host.WithTrust(t.Context()), ""); !strings.Contains(string(body), "secret-source is already document 1") {
		t.Errorf("a failed tick of the platform: %s, want what is wrong", body)
	}
	_, body2 := w.get("/observations?name=b", "s3cr3t")
	if !strings.Contains(body2, `"sources":[]`) {
		t.Errorf("a source that is not there: %s", body2)
	}
}

func TestMethods(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ method, path, allow string }{
		{http.MethodGet, "/", "POST"}, {http.MethodPut, "/tick", "POST"},
		{http.MethodPost, "/observations", "GET"}, {http.MethodDelete, "/observations", "GET"},
	} {
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, httptest.NewRequest(tt.method, tt.path, nil))
		if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, Allow %q; want 405, %q", tt.method, tt.path, rec.Code, rec.Header().Get("Allow"), tt.allow)
		}
	}
}

func TestNothingSecretLeaves(t *testing.T) {
	w := newWorld(t)
	secret := "s3cr3t-pw"
	w.secret("creds", "username", "alice")
	w.secret("creds", "password", secret)
	w.git.RequirePassword("nobody", "nothing")
	userinfo := func(url string) string { return strings.Replace(url, "http://", "http://alice:"+secret+"@", 1) }
	r := w.git.Repository("a.git")
	w.targets(
		document("one", userinfo(r.URL)+"?private_token="+secret, onMain),
		document("two", r.URL, onMain+"  secretRef: {name: creds}\n"),
		document("three", userinfo("http://"+gittest.Dead(t)+"/r.git"), onMain),
		document("four", "https://alice:"+secret+"@h:port/r.git", onMain),
		document("five", "ssh://git:"+secret+"@127.0.0.1:1/r.git", onMain),
	)
	_, body := w.post(t.Context(), "")
	_, observations := w.get("/observations", "")
	_, metrics := w.get("/metrics", "")
	for what, text := range map[string]string{"answer": string(body), "observations": observations, "metrics": metrics, "log": w.log.String(), "redis": w.dump()} {
		if strings.Contains(text, secret) || strings.Contains(text, "alice") || text == "" {
			t.Errorf("%s holds credentials, or nothing at all:\n%s", what, text)
		}
	}
}

// dump is everything that the function has stored, keys and values.
func (w *world) dump() string {
	var b strings.Builder
	for _, part := range []string{"sources", "hosts", "known"} {
		key := w.store.KeyPrefix() + ":refs:v1:{test}:" + part
		fields, err := w.store.Client().HGetAll(w.t.Context(), key).Result()
		if err != nil {
			w.t.Fatal(err)
		}
		b.WriteString(key)
		for field, value := range fields {
			b.WriteString(field + value + "\n")
		}
	}
	return b.String()
}

func TestAStoreThatIsDownIsWorthAnotherTry(t *testing.T) {
	w := newWorld(t)
	w.targets()
	_ = w.store.Close()
	code, body := w.post(t.Context(), "")
	if code != http.StatusServiceUnavailable || !strings.Contains(string(body), "begin") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := w.get("/observations", ""); code != http.StatusServiceUnavailable {
		t.Errorf("observations: %d, want 503", code)
	}
}
