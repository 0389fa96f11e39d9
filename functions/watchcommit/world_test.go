package watchcommit

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

	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kube"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

const sessions = "../../events/samples/sessions/"

// world is everything around a function: a recorded cluster, a git server, a store.
type world struct {
	t       *testing.T
	session *recorded.Session
	clock   *recorded.Clock
	api     *recorded.Server
	apiURL  string
	git     *gittest.Server
	repo    *gittest.Repository
	redis   valkeytest.Server
	store   *queue.RedisStore
	targets string
	logs    *bytes.Buffer
	posted  int              // audit posts that were delivered
	now     func() time.Time // of the functions; nil is the real time
}

func newWorld(t *testing.T, session *recorded.Session, redis valkeytest.Server) *world {
	t.Helper()
	w := &world{t: t, session: session, clock: recorded.NewClock(), redis: redis, logs: &bytes.Buffer{}}
	w.clock.Set(session.Begin())
	w.api = recorded.NewServer(session, w.clock)
	hs := httptest.NewServer(w.api)
	t.Cleanup(func() { w.api.Disconnect(); hs.CloseClientConnections(); hs.Close() })
	w.apiURL = hs.URL
	w.git = gittest.NewServer(t)
	w.repo = w.git.Repository("cfg")
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: redis.Addr, KeyPrefix: redis.Prefix, AuthValue: os.Getenv("REDIS_PASSWORD")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w.store = store
	w.targets = filepath.Join(t.TempDir(), "targets.yaml")
	return w
}

// target writes the targets file: one document a string, each the spec's fields below its name.
func (w *world) target(documents ...string) {
	w.t.Helper()
	for i, d := range documents {
		documents[i] = "apiVersion: tidemark.dev/v1alpha1\nkind: GitTarget\n" + strings.ReplaceAll(d, "REPO", w.repo.URL)
	}
	if err := os.WriteFile(w.targets, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// function is a fresh copy, as a new process would be.
func (w *world) function(change ...func(*Config)) *Function {
	w.t.Helper()
	cluster, err := kube.NewClient(&rest.Config{Host: w.apiURL}, "watchcommit")
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := Config{Window: 0, Grace: 45 * time.Second, Lease: 30 * time.Second, TargetsFile: w.targets, FactTTL: 10 * time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	f, err := New(cfg, Deps{Store: w.store, Cluster: cluster, Telemetry: telemetry.WriteTo(w.logs, "watchcommit")})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.now != nil {
		f.now = w.now
	}
	return f
}

// tick posts a tick to a fresh copy and returns its answer.
func (w *world) tick(change ...func(*Config)) Result {
	w.t.Helper()
	status, result := post(w.t, w.function(change...))
	if status != http.StatusOK {
		w.t.Fatalf("tick: status %d, %+v\n%s", status, result, w.logs)
	}
	return result
}

func post(t *testing.T, handler http.Handler) (int, Result) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", nil))
	var result Result
	if err := json.Unmarshal(recorder.Body.Bytes(), &result); err != nil {
		t.Fatalf("answer %q: %v", recorder.Body, err)
	}
	return recorder.Code, result
}

// facts delivers the audit posts that had arrived by the clock's time.
func (w *world) facts() {
	w.t.Helper()
	index := w.store.AttributionIndex(0)
	for ; w.posted < len(w.session.Audit) && w.session.Audit[w.posted].At <= w.clock.Now(); w.posted++ {
		post := w.session.Audit[w.posted]
		var list auditv1.EventList
		if err := json.Unmarshal(post.Body, &list); err != nil {
			w.t.Fatal(err)
		}
		if err := index.RecordFacts(context.Background(), "default", list.Items); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settled drains until the last change is out of its grace, and judges the history. On a busy machine a drain may end
// before it has seen everything; what is lost or written twice stays so, however often it drains.
func (w *world) settled(grace time.Duration, path string, resources ...string) *verdict.Verdict {
	w.t.Helper()
	for drains := 1; ; drains++ {
		w.tick()
		if v := w.judge(path, resources...); v.Sound() || drains == 5 {
			return v
		}
		time.Sleep(grace)
	}
}

// judge holds the branch against what happened.
func (w *world) judge(path string, resources ...string) *verdict.Verdict {
	w.t.Helper()
	var grs []schema.GroupResource
	for _, r := range resources {
		grs = append(grs, schema.ParseGroupResource(r))
	}
	x, err := verdict.Expect(w.session, path, grs)
	if err != nil {
		w.t.Fatal(err)
	}
	log, err := verdict.Log(context.Background(), w.repo.Dir, "main")
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := verdict.Files(context.Background(), w.repo.Dir, "main")
	if err != nil {
		w.t.Fatal(err)
	}
	v := verdict.Judge(x, log, files, func(p string) bool { return filepath.Base(p) != ownerFile })
	if v.Changes+len(v.Open) < len(x.Changes) && v.Sound() {
		w.t.Errorf("%d of %d changes", v.Changes, len(x.Changes))
	}
	return v
}

func load(t *testing.T, name string) *recorded.Session {
	t.Helper()
	s, err := recorded.Load(sessions + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
