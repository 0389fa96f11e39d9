package refsweep

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/kube"
)

// cluster is an API server that knows GitRepository objects, one Secret, and patches.
type cluster struct {
	*httptest.Server
	mu      sync.Mutex
	objects []map[string]any
	lists   []string // queries
	reads   []string // Secrets
	patches []string // path and body
	refuse  int      // status for patches
	expire  bool     // the next continued list has expired
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) client(t *testing.T) *kube.Client {
	t.Helper()
	client, err := kube.NewClient(&rest.Config{Host: c.URL}, "refsweep")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (c *cluster) add(name string, spec map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = append(c.objects, map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"namespace": "flux", "name": name}, "spec": spec,
	})
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		c.patches = append(c.patches, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
		if c.refuse != 0 {
			w.WriteHeader(c.refuse)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, c.refuse, map[int]string{403: "Forbidden", 500: "InternalError"}[c.refuse])
			return
		}
		_ = json.NewEncoder(w).Encode(c.objects[0])
	case strings.Contains(r.URL.Path, "/secrets/"):
		c.reads = append(c.reads, r.URL.Path)
		value := base64.StdEncoding.EncodeToString([]byte("alice"))
		fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"creds"},"data":{"username":%q,"password":%q}}`, value, value)
	case strings.HasSuffix(r.URL.Path, "/gitrepositories"):
		c.lists = append(c.lists, r.URL.Path+"?"+r.URL.RawQuery)
		if c.expire && r.URL.Query().Get("continue") != "" {
			c.expire = false
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}`)
			return
		}
		half := len(c.objects) / 2
		page, next := c.objects[:half], "more"
		if r.URL.Query().Get("continue") != "" || half == 0 {
			page, next = c.objects[half:], ""
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "GitRepositoryList", "apiVersion": "source.toolkit.fluxcd.io/v1", "metadata": map[string]any{"continue": next}, "items": page})
	default:
		http.NotFound(w, r)
	}
}

func (c *cluster) take(of *[]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := *of
	*of = nil
	return out
}

func TestSourcesOfACluster(t *testing.T) {
	w, c := newWorld(t), newCluster(t)
	w.git.RequirePassword("alice", "alice")
	a, b := w.git.Repository("a.git"), w.git.Repository("b.git")
	commit(a, "1")
	commit(b, "1")
	branch := map[string]any{"branch": "main"}
	secret := map[string]any{"name": "creds"}
	c.add("a", map[string]any{"url": a.URL, "ref": branch, "secretRef": secret, "interval": "1m", "somethingNew": true})
	c.add("b", map[string]any{"url": b.URL, "ref": branch, "secretRef": secret})
	c.add("suspended", map[string]any{"url": b.URL, "ref": branch, "suspend": true})
	c.add("broken", map[string]any{"url": 7})
	flux := NewFlux(c.client(t), "", "team=shop")
	w.deps.Targets, w.deps.Secrets, w.deps.Annotate = flux, flux, flux.RequestReconcile
	c.expire = true
	w.start()

	s := w.tick()
	if s.Listed != 2 || s.Failed[gitpoll.KindSuspended] != 1 || s.Failed[gitpoll.KindConfiguration] != 1 || names(s.Appeared) != "a b" {
		t.Errorf("summary: %+v", s)
	}
	lists := c.take(&c.lists)
	if len(lists) != 6 || lists[0] != "/apis/source.toolkit.fluxcd.io/v1/gitrepositories?labelSelector=team%3Dshop&limit=500" {
		t.Errorf("lists %q, want three of two pages, the first one expired", lists)
	}
	if reads := c.take(&c.reads); len(reads) != 1 || reads[0] != "/api/v1/namespaces/flux/secrets/creds" {
		t.Errorf("Secrets read: %q, want one once", reads)
	}
	if patches := c.take(&c.patches); len(patches) != 0 {
		t.Errorf("new sources were annotated: %q", patches)
	}

	commit(a, "2")
	w.tick()
	patches := c.take(&c.patches)
	if len(patches) != 1 || !strings.HasPrefix(patches[0], "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux/gitrepositories/a application/merge-patch+json ") ||
		!strings.Contains(patches[0], `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"2`) {
		t.Errorf("patches: %q", patches)
	}

	// What cannot be annotated now is tried again; what may not be is not.
	commit(a, "3")
	c.refuse = http.StatusInternalServerError
	if code, body := w.post(t.Context(), ""); code != http.StatusServiceUnavailable {
		t.Errorf("an API server that fails: %d %s", code, body)
	}
	c.take(&c.patches)
	c.refuse = http.StatusForbidden
	w.tick()
	if patches := c.take(&c.patches); len(patches) != 1 {
		t.Errorf("patches of the next sweep: %q, want one", patches)
	}
	if s := w.tick(); len(s.Moved) != 0 {
		t.Errorf("a move that may not be annotated is notified for ever: %+v", s)
	}
}

func TestAClusterThatDoesNotAnswerChangesNothing(t *testing.T) {
	w, c := newWorld(t), newCluster(t)
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	w.tick()
	flux := NewFlux(c.client(t), "flux", "")
	w.deps.Targets = flux
	c.Close()
	w.start()
	if code, _ := w.post(t.Context(), ""); code != http.StatusServiceUnavailable {
		t.Errorf("%d, want 503", code)
	}
	if o := w.observed(); len(o) != 1 {
		t.Errorf("observations: %+v", o)
	}
}
