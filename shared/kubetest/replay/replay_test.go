package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	cdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const samples = "../../../events/samples/sessions/"

var configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func load(t *testing.T, name string) *Session {
	t.Helper()
	s, err := Load(samples + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve plays a session to a dynamic client; the clock stands at its beginning.
func serve(t *testing.T, name string) (*Server, *Clock, dynamic.Interface, *rest.Config) {
	t.Helper()
	session, clock := load(t, name), NewClock()
	clock.Set(session.Begin())
	server := NewServer(session, clock)
	hs := httptest.NewServer(server)
	t.Cleanup(func() { server.Disconnect(); hs.CloseClientConnections(); hs.Close() })
	cfg := &rest.Config{Host: hs.URL, QPS: -1}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return server, clock, client, cfg
}

func TestLoad(t *testing.T) {
	story := load(t, "story")
	if len(story.Audit) != 39 || len(story.Admission) != 2 || len(story.Truth) != 83 || len(story.Steps) != 43 || len(story.Watches) != 11 {
		t.Errorf("got %d posts, %d reviews, %d truths, %d steps, %d watches", len(story.Audit), len(story.Admission), len(story.Truth), len(story.Steps), len(story.Watches))
	}
	live := 0
	for _, w := range append(story.Watches, load(t, "small-metadata").Watches...) {
		for _, ev := range w.Live {
			if ev.Type != "BOOKMARK" {
				live++
			}
		}
		if namespaced := w.Resource != "namespaces" && w.Resource != "customresourcedefinitions"; w.Namespaced != namespaced || w.Kind == "" || w.Version == "" {
			t.Errorf("%+v: namespaced %v, kind %q", w.GroupVersionResource, w.Namespaced, w.Kind)
		}
		if late := w.Resource == "features"; late != (w.ServedFrom > 0) {
			t.Errorf("%s is served from %v", w.Resource, w.ServedFrom)
		}
	}
	if live != 83+36 {
		t.Errorf("got %d live events", live)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
}

// next reads one event, or reports that none comes.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case ev, open := <-w.ResultChan():
		if !open {
			return "closed"
		}
		if ev.Type == watch.Error {
			return "ERROR " + apierrors.FromObject(ev.Object).Error()
		}
		u := ev.Object.(*unstructured.Unstructured)
		end := ""
		if u.GetAnnotations()[initialEventsEnd] == "true" {
			end = " end"
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s%s", ev.Type, u.GetName(), u.GetResourceVersion(), end))
	case <-time.After(5 * time.Second):
		t.Fatal("no event within 5 s")
		return ""
	}
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, wanted := range want {
		if got := next(t, w); got != wanted {
			t.Fatalf("got %q, want %q", got, wanted)
		}
	}
}

func TestWatchFollowsTheClock(t *testing.T) {
	server, clock, client, _ := serve(t, "story")
	shop := client.Resource(configmaps).Namespace("shop")
	w, err := shop.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "270", AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	clock.Set(4 * time.Second)
	expect(t, w, "ADDED storefront 272", "ADDED prices 273")
	clock.Set(12 * time.Second) // platform/limits is another namespace's
	expect(t, w, "MODIFIED prices 288")

	later, err := shop.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "272"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, later, "ADDED prices 273", "MODIFIED prices 288")

	server.Disconnect()
	expect(t, w, "closed")
	if got := server.Requests()["watch configmaps"]; got != 2 {
		t.Errorf("%d watches were counted, want 2", got)
	}
}

func TestInitialEventsEndWithABookmark(t *testing.T) {
	_, clock, client, _ := serve(t, "story")
	clock.Set(4 * time.Second)
	yes := true
	opts := metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: "NotOlderThan", AllowWatchBookmarks: true}
	w, err := client.Resource(configmaps).Namespace("shop").Watch(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, w, "ADDED kube-root-ca.crt 254", "ADDED prices 273", "ADDED storefront 272", "BOOKMARK  273 end")
	clock.Set(12 * time.Second)
	expect(t, w, "MODIFIED prices 288")
	opts.AllowWatchBookmarks = false
	if _, err := client.Resource(configmaps).Watch(t.Context(), opts); !apierrors.IsInvalid(err) {
		t.Errorf("without bookmarks: got %v, want Invalid", err)
	}
}

func TestSelectorsSeeObjectsComeAndGo(t *testing.T) {
	_, clock, client, _ := serve(t, "story")
	w, err := client.Resource(configmaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "270", LabelSelector: "season=winter"})
	if err != nil {
		t.Fatal(err)
	}
	clock.Set(47 * time.Second)
	expect(t, w, "ADDED promo-1 329", "ADDED promo-2 330", "ADDED promo-3 331", "DELETED promo-1 338", "DELETED promo-2 339", "DELETED promo-3 340")

	session := load(t, "story")
	st := newStore(session.Watches[0])
	obj := func(season, rv string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName("a")
		u.SetResourceVersion(rv)
		u.SetLabels(map[string]string{"season": season})
		return u
	}
	rec := httptest.NewRecorder()
	f := filter{}
	f.labels, _ = labels.Parse("season=winter")
	f.fields = fields.Everything()
	out := &stream{store: st, filter: f, enc: json.NewEncoder(rec), flush: func() {}, seen: map[string]*unstructured.Unstructured{}, left: -1}
	for i, season := range []string{"summer", "winter", "winter", "summer", "summer"} {
		out.send(Event{Type: "MODIFIED", Object: obj(season, fmt.Sprint(i))})
	}
	var got []string
	for line := range strings.Lines(rec.Body.String()) {
		var e struct {
			Type   string
			Object unstructured.Unstructured
		}
		if err := json.Unmarshal([]byte(strings.Replace(line, `{"metadata"`, `{"kind":"A","apiVersion":"v1","metadata"`, 1)), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+e.Object.GetResourceVersion()+" "+e.Object.GetLabels()["season"])
	}
	if diff := cmp.Diff([]string{"ADDED 1 winter", "MODIFIED 2 winter", "DELETED 3 winter"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestListNowThenAndInPages(t *testing.T) {
	_, clock, client, _ := serve(t, "story")
	clock.Set(60 * time.Second)
	shop := client.Resource(configmaps).Namespace("shop")
	names := func(l *unstructured.UnstructuredList) (out []string) {
		for _, item := range l.Items {
			out = append(out, item.GetName()+" "+item.GetResourceVersion())
		}
		return out
	}
	now, err := shop.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"kube-root-ca.crt 254", "prices 335", "storefront 305"}
	if diff := cmp.Diff(want, names(now)); diff != "" || now.GetResourceVersion() != "349" {
		t.Errorf("at %s (-want +got)\n%s", now.GetResourceVersion(), diff)
	}
	var paged []string
	opts := metav1.ListOptions{Limit: 2}
	for {
		page, err := shop.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, names(page)...)
		clock.Set(65 * time.Second) // later pages are still of the first page's version
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if diff := cmp.Diff(want, paged); diff != "" {
		t.Errorf("paged (-want +got)\n%s", diff)
	}
	exact := metav1.ListOptions{FieldSelector: "metadata.name=prices", ResourceVersion: "290", ResourceVersionMatch: "Exact"}
	old, err := shop.List(t.Context(), exact)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"prices 288"}, names(old)); diff != "" || old.GetResourceVersion() != "290" {
		t.Errorf("exact, at %s (-want +got)\n%s", old.GetResourceVersion(), diff)
	}
	exact.ResourceVersion = "100"
	if _, err := shop.List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("an exact version from before the recording: got %v, want Expired", err)
	}
	got, err := shop.Get(t.Context(), "prices", metav1.GetOptions{})
	if err != nil || got.GetResourceVersion() != "335" {
		t.Errorf("get: %v %v", got, err)
	}
	if _, err := shop.Get(t.Context(), "banner", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of a deleted object: got %v, want NotFound", err)
	}
}

func TestExpiryRestartAndCompaction(t *testing.T) {
	server, clock, client, _ := serve(t, "story")
	clock.Set(20 * time.Second)
	all := client.Resource(configmaps)
	open := func(rv string) watch.Interface {
		w, err := all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: rv})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	expect(t, open("100"), "ERROR too old resource version: 100 (270)", "closed")
	running := open("288")
	expect(t, running, "MODIFIED storefront 305")
	server.Restart()
	expect(t, running, "closed")
	expect(t, open("288"), "ERROR too old resource version: 288 (305)", "closed")
	exact := metav1.ListOptions{FieldSelector: "metadata.name=prices", ResourceVersion: "288", ResourceVersionMatch: "Exact"}
	if _, err := all.List(t.Context(), exact); err != nil {
		t.Errorf("after a restart etcd still has the version: %v", err)
	}
	server.Compact()
	if _, err := all.List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("after a compaction: got %v, want Expired", err)
	}
	fresh := open(server.CurrentVersion())
	clock.Set(35 * time.Second)
	expect(t, fresh, "ADDED promo-1 329")
}

func TestFaults(t *testing.T) {
	server, clock, client, cfg := serve(t, "story")
	clock.Set(20 * time.Second)
	all := client.Resource(configmaps)
	server.Inject(Fault{Path: "/configmaps", Status: 500})
	if _, err := all.List(t.Context(), metav1.ListOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v, want InternalError", err)
	}
	server.Inject(Fault{Path: "/configmaps", Watch: true, AfterEvents: 2})
	w, err := all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "270"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, w, "ADDED storefront 272", "ADDED prices 273", "closed")
	server.Inject(Fault{Path: "/version", Drop: true, Times: 3})
	if _, err := http.Get(cfg.Host + "/version"); err == nil {
		t.Error("a dropped request was answered")
	}
	server.Inject(Fault{Status: 429, RetryAfter: 1, Times: 2})
	for range 2 {
		resp, err := http.Get(cfg.Host + "/api/v1/configmaps")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), `"retryAfterSeconds":1`) {
			t.Errorf("got %d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
	if _, err := all.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestDiscoveryBothWaysAndOverTime(t *testing.T) {
	_, clock, _, cfg := serve(t, "story")
	for _, legacy := range []bool{false, true} {
		client, err := cdiscovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, l := range lists {
			for _, r := range l.APIResources {
				found[l.GroupVersion+" "+r.Name] = r.Namespaced
			}
		}
		want := map[string]bool{
			"v1 configmaps": true, "v1 namespaces": false, "v1 pods": true, "v1 secrets": true, "v1 serviceaccounts": true, "v1 services": true,
			"apps/v1 deployments": true, "apps/v1 replicasets": true, "apiextensions.k8s.io/v1 customresourcedefinitions": false,
			"configbutler.ai/v1alpha3 commitrequests": true,
		}
		if legacy { // by then the type exists
			want["shop.example/v1 features"] = true
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("legacy %v (-want +got)\n%s", legacy, diff)
		}
		clock.Set(22 * time.Second)
	}
}

func TestAWatchEndsInTimeWithABookmark(t *testing.T) {
	_, clock, client, _ := serve(t, "story")
	clock.Set(11 * time.Second)
	seconds := int64(3)
	w, err := client.Resource(configmaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "274", TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, w, "BOOKMARK  285", "closed")
}

// Played fast to its end, every watch delivers what was recorded, in order, and every POST arrives once.
func TestASessionPlaysWhole(t *testing.T) {
	for _, name := range []string{"story", "small-metadata"} {
		t.Run(name, func(t *testing.T) {
			session, clock := load(t, name), NewClock()
			api := httptest.NewServer(NewServer(session, clock))
			defer api.Close()
			defer api.CloseClientConnections()
			var mu sync.Mutex
			posts, refused := map[string]int{}, 1
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if refused > 0 { // the first is refused once: it must come again
					refused--
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				posts[r.URL.Path+" "+r.Header.Get("Authorization")]++
			}))
			defer receiver.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: api.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var readers sync.WaitGroup
			for _, recorded := range session.Watches {
				if recorded.ServedFrom > 0 {
					continue
				}
				w, err := client.Resource(recorded.GroupVersionResource).Watch(ctx, metav1.ListOptions{ResourceVersion: recorded.BaseRV})
				if err != nil {
					t.Fatal(err)
				}
				readers.Go(func() {
					for _, ev := range recorded.Live {
						if ev.Type == bookmark {
							continue
						}
						got, open := <-w.ResultChan()
						if !open || string(got.Type) != ev.Type {
							t.Errorf("%s: got %v %v, want %s %s", recorded.Resource, got.Type, open, ev.Type, ev.Object.GetName())
							return
						}
						if diff := cmp.Diff(ev.Object.Object, got.Object.(*unstructured.Unstructured).Object); diff != "" {
							t.Errorf("%s (-want +got)\n%s", recorded.Resource, diff)
						}
					}
				})
			}
			clock.Run(200)
			player := &Player{
				Session: session, Clock: clock, Client: &http.Client{Timeout: 5 * time.Second},
				AuditURL: receiver.URL + "/audit-webhook", AuditToken: "t", AdmissionURL: receiver.URL + "/validate",
			}
			if err := player.Play(ctx); err != nil {
				t.Fatal(err)
			}
			readers.Wait()
			if clock.Now() < session.Audit[len(session.Audit)-1].At {
				t.Error("the last POST came before its time")
			}
			want := map[string]int{"/audit-webhook/" + session.Audit[0].Route + " Bearer t": len(session.Audit)}
			if n := len(session.Admission); n > 0 {
				want["/validate "] = n
			}
			if diff := cmp.Diff(want, posts); diff != "" {
				t.Errorf("posts (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAPlayerIsMovedByHand(t *testing.T) {
	session, clock := load(t, "story"), NewClock()
	posts := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { posts++ }))
	defer receiver.Close()
	player := &Player{Session: session, Clock: clock, Client: receiver.Client(), AuditURL: receiver.URL}
	for at, want := range []int{0, 0, 0, 1, 1, 2} {
		if err := player.AdvanceTo(t.Context(), time.Duration(at)*time.Second); err != nil {
			t.Fatal(err)
		}
		if posts != want || clock.Now() != time.Duration(at)*time.Second {
			t.Errorf("at %d s: %d posts, clock %v, want %d", at, posts, clock.Now(), want)
		}
	}
}
