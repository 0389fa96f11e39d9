package who

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// messages are what the commits of the branch say, the oldest first.
var messages = []string{
	"create configmaps shop/prices\n\nActor: alice\nChange: create configmaps shop/prices rv=273 by=exact_user audit=a-1\n",
	"Fix a typo\n\nby hand",
	"update\n\nActor: bob, impersonated by ci-bot\nChange: update configmaps shop/prices rv=335 by=weak tier=replaced-version audit=a-2\nChange: update configmaps shop/limits rv=336 by=exact_user\n",
	"update\n\nChange: update configmaps shop/prices rv=340 by=absent why=several\n",
	"reconcile\n\nChange: update configmaps shop/prices rv=341 by=replay\n",
}

// world is a recorded cluster, a repository with those commits, and a store with the cluster's facts.
type world struct {
	cfg  Config
	deps Deps
	logs *bytes.Buffer
	repo *gittest.Repository
}

func newWorld(t *testing.T) *world {
	t.Helper()
	session, err := replay.Load("../../events/samples/sessions/story")
	if err != nil {
		t.Fatal(err)
	}
	clock := replay.NewClock()
	clock.Set(session.End())
	api := replay.NewServer(session, clock)
	hs := httptest.NewServer(api)
	t.Cleanup(func() { api.Disconnect(); hs.CloseClientConnections(); hs.Close() })
	cluster, err := kube.NewClient(&rest.Config{Host: hs.URL}, "who")
	if err != nil {
		t.Fatal(err)
	}
	redis := valkeytest.Mini(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: redis.Addr, KeyPrefix: redis.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	index := store.AttributionIndex(0)
	for _, post := range session.Audit {
		var list auditv1.EventList
		if err := json.Unmarshal(post.Body, &list); err != nil {
			t.Fatal(err)
		}
		if err := index.RecordFacts(context.Background(), "default", list.Items); err != nil {
			t.Fatal(err)
		}
	}
	repo := gittest.NewServer(t).Repository("cfg")
	for i, m := range messages {
		repo.Commit("main", m, map[string]string{"prod/shop/configmaps/prices.yaml": strings.Repeat("x", i+1)})
	}
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	document := "apiVersion: tidemark.dev/v1alpha1\nkind: GitTarget\nmetadata: {name: prod}\nspec:\n  repository: {url: " + repo.URL +
		", path: prod}\n  resources: [{resource: configmaps, namespaces: [shop]}]\n"
	if err := os.WriteFile(targets, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := &gitwire.Pool{}
	t.Cleanup(pool.Close)
	logs := &bytes.Buffer{}
	return &world{
		cfg:  Config{TargetsFile: targets, Commits: 100, Timeout: 20 * time.Second},
		deps: Deps{Cluster: cluster, Authors: index, Pool: pool, Telemetry: telemetry.WriteTo(logs, "who")},
		logs: logs, repo: repo,
	}
}

func (w *world) get(t *testing.T, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, c := range change {
		c(r)
	}
	recorder := httptest.NewRecorder()
	New(w.cfg, w.deps).ServeHTTP(recorder, r)
	return recorder
}

func (w *world) ask(t *testing.T, path string) Answer {
	t.Helper()
	recorder := w.get(t, path)
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s: %d %s\n%s", path, recorder.Code, recorder.Body, w.logs)
	}
	var answer Answer
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	for i := range answer.Changes {
		c := &answer.Changes[i]
		if len(c.Commit) != 40 || c.Time.IsZero() {
			t.Errorf("change %d: commit %q at %v", i, c.Commit, c.Time)
		}
		c.Commit, c.Time = "", time.Time{}
	}
	return answer
}

func TestWhoTellsHistoryAndTheLiveVersion(t *testing.T) {
	w := newWorld(t)
	want := Answer{
		Question: Question{Resource: "configmaps", Namespace: "shop", Name: "prices"},
		Targets:  []string{"prod"},
		Changes: []Change{
			{Target: "prod", Verb: "update", ResourceVersion: "341", Class: "replay"},
			{Target: "prod", Verb: "update", ResourceVersion: "340", Class: "absent", Why: "several"},
			{Target: "prod", Verb: "update", ResourceVersion: "335", Author: "bob", ImpersonatedBy: "ci-bot", Class: "weak", Tier: "replaced-version", AuditID: "a-2"},
			{Target: "prod", Verb: "create", ResourceVersion: "273", Author: "alice", Class: "exact_user", AuditID: "a-1"},
		},
	}
	got := w.ask(t, "/who?resource=configmaps&namespace=shop&name=prices")
	if live := got.Live; live == nil || live.ResourceVersion != "383" || live.Author != "alice" || live.Class != "exact_user" || live.AuditID == "" || live.Committed {
		t.Errorf("live: %+v, want alice's version 383, not committed", live)
	}
	got.Live = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := w.ask(t, "/who?resource=configmaps&namespace=shop&name=prices&limit=2"); len(got.Changes) != 2 || got.Changes[0].ResourceVersion != "341" {
		t.Errorf("limit 2: %+v", got.Changes)
	}
	if got := w.ask(t, "/who?resource=configmaps&namespace=shop&name=ledger"); len(got.Changes) != 0 || got.Live != nil || got.Incomplete != nil {
		t.Errorf("an object that is gone: %+v", got)
	}
	if got := w.ask(t, "/who?resource=configmaps&namespace=platform&name=limits"); len(got.Changes) != 0 || len(got.Targets) != 0 || got.Live != nil {
		t.Errorf("an object that no target mirrors: %+v", got)
	}
}

func TestTheOrderOfABranchIsKept(t *testing.T) {
	at := func(target string, seconds ...int) (out []Change) {
		for _, s := range seconds {
			out = append(out, Change{Target: target, Time: time.Unix(int64(s), 0)})
		}
		return out
	}
	for _, c := range []struct {
		name string
		a, b []Change
		want []Change
	}{
		{"one branch, a commit dated later than the next", at("a", 9, 4, 7, 1), nil, at("a", 9, 4, 7, 1)},
		{"two branches", at("a", 9, 4), at("b", 6, 2), append(append(append(at("a", 9), at("b", 6)...), at("a", 4)...), at("b", 2)...)},
		{"no branch", nil, nil, []Change{}},
	} {
		if diff := cmp.Diff(c.want, merge(c.a, c.b)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestWhoTellsWhatItCouldNotAsk(t *testing.T) {
	w := newWorld(t)
	raw, err := os.ReadFile(w.cfg.TargetsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.cfg.TargetsFile, bytes.ReplaceAll(raw, []byte("cfg"), []byte("gone")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := w.ask(t, "/who?resource=configmaps&namespace=shop&name=prices")
	if diff := cmp.Diff([]string{"history of target prod"}, got.Incomplete); diff != "" || got.Live == nil {
		t.Errorf("live %+v, incomplete %s", got.Live, diff)
	}
}

// A branch whose server never answers takes the whole time, and is the only one that is not told.
func TestASlowBranchHidesNoOther(t *testing.T) {
	w := newWorld(t)
	raw, err := os.ReadFile(w.cfg.TargetsFile)
	if err != nil {
		t.Fatal(err)
	}
	slow := strings.ReplaceAll(strings.Replace(string(raw), w.repo.URL, "http://"+gittest.Silent(t)+"/cfg", 1), "prod", "slow")
	if err := os.WriteFile(w.cfg.TargetsFile, []byte(slow+"---\n"+string(raw)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.cfg.Timeout = 3 * time.Second
	got := w.ask(t, "/who?resource=configmaps&namespace=shop&name=prices")
	if diff := cmp.Diff([]string{"history of target slow"}, got.Incomplete); diff != "" || len(got.Changes) != 4 || got.Live == nil {
		t.Errorf("%d changes, live %+v, incomplete %s", len(got.Changes), got.Live, diff)
	}
}

func TestWhoIsAskedWithAToken(t *testing.T) {
	w := newWorld(t)
	w.cfg.ReadToken = settings.NewSecret("s3cret")
	const path = "/who?resource=configmaps&namespace=shop&name=prices"
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, c := range []struct {
		name   string
		path   string
		change func(*http.Request)
		want   int
	}{
		{"no token", path, func(*http.Request) {}, http.StatusUnauthorized},
		{"a wrong token", path, bearer("other"), http.StatusUnauthorized},
		{"the token", path, bearer("s3cret"), http.StatusOK},
		{"a caller that the platform vouches for", path, func(r *http.Request) { *r = *r.WithContext(host.WithTrust(r.Context())) }, http.StatusOK},
		{"a POST", path, func(r *http.Request) { bearer("s3cret")(r); r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		{"another path", "/whom", bearer("s3cret"), http.StatusNotFound},
		{"no name", "/who?resource=configmaps", bearer("s3cret"), http.StatusBadRequest},
		{"a limit that is none", path + "&limit=many", bearer("s3cret"), http.StatusBadRequest},
	} {
		recorder := w.get(t, c.path, c.change)
		if recorder.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, recorder.Code, recorder.Body, c.want)
		}
		if c.want != http.StatusOK && strings.Contains(recorder.Body.String(), "alice") {
			t.Errorf("%s: the answer tells a name: %s", c.name, recorder.Body)
		}
	}
	if strings.Contains(w.logs.String(), "s3cret") {
		t.Errorf("the token is in the log:\n%s", w.logs)
	}
}

func TestAnEmptyAnswerSaysWhatItMeans(t *testing.T) {
	q := Question{Resource: "configmap", Namespace: "shop", Name: "prices"}
	for want, a := range map[string]*Answer{
		"no target mirrors configmap of namespace shop: is it the plural with its group, such as deployments.apps?": {Question: q},
		"no change of it in the last commits of prod":                                                               {Question: q, Targets: []string{"prod"}},
		"not asked: history of target prod":                                                                         {Question: q, Targets: []string{"prod"}, Incomplete: []string{"history of target prod"}},
	} {
		var out bytes.Buffer
		if err := a.print(&out); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || lines[1] != want {
			t.Errorf("printed\n%s\nwant the line %q", out.String(), want)
		}
	}
}

func TestTheCommandRefusesALimitThatIsNone(t *testing.T) {
	for _, limit := range []string{"0", "-3", "501"} {
		if err := Command([]string{"-limit", limit, "configmaps", "shop/prices"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "-limit ("+limit+") must be between 1 and 500") {
			t.Errorf("-limit %s: %v", limit, err)
		}
	}
}

func TestPrintedAnswersCannotActOnATerminal(t *testing.T) {
	var out bytes.Buffer
	a := Answer{
		Live:       &Live{ResourceVersion: "9", Author: "mallory\x1b[2J\nroot", Class: "exact_user"},
		Changes:    []Change{{Target: "prod", Commit: "0123456789abcdef", Verb: "update", Author: "alice", ImpersonatedBy: "ci-bot", Class: "weak", Tier: "written-name"}},
		Incomplete: []string{"history of target stage"},
	}
	if err := a.print(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 4 {
		t.Errorf("got %q", text)
	}
	for _, want := range []string{"alice (ci-bot)", "weak written-name", "0123456789 ", "not asked: history of target stage"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
