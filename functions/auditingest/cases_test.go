package auditingest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// joinCase is the input of a recorded case.
type joinCase struct {
	Route  string
	Path   string
	Post   json.RawMessage
	Config struct{ RouteAnnotationKey string }
}

func readCase(t *testing.T, name string) joinCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../events/samples/cases/join", name, "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c joinCase
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// stored posts the body to a function over a store and returns the counts and who is named for a version of a ConfigMap.
func stored(t *testing.T, server valkeytest.Server, cfg auditingest.Config, path string, body string) (counts, func(route, uid, rv string) queue.AuthorResolution) {
	t.Helper()
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w := send(newFunction(t, cfg, auditingest.NewStore(cfg, store), io.Discard), "POST", path, bearer("master"), strings.NewReader(body))
	if w.Code != 200 {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	var answer struct{ Counts counts }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	index := store.AttributionIndex(time.Minute)
	return answer.Counts, func(route, uid, rv string) queue.AuthorResolution {
		got, err := index.LookupAuthors(t.Context(), []queue.AuthorQuery{{
			AuditRoute: route, GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, UID: types.UID(uid), RV: rv, ExactCapable: true,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
}

func TestAPatchThatIsAnArrayCostsNothing(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		c := readCase(t, "05-json-patch-array-body")
		got, author := stored(t, server, config(), "/audit-webhook/eu-1", string(c.Post))
		if diff := cmp.Diff(counts{"stored": 1, "no_fact": 1}, got); diff != "" {
			t.Error(diff)
		}
		if a := author("eu-1", "u-100", "170"); a.Fact.Author != "ana@example.test" || a.Result != queue.AttributionExactUser {
			t.Errorf("version 170 is %+v, want ana", a)
		}
		if a := author("eu-1", "u-100", "171"); a.Result != queue.AttributionAbsent {
			t.Errorf("a version that no answer holds is %+v, want nobody's", a)
		}
	})
}

func TestTheImpersonatedUserIsTheAuthor(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		c := readCase(t, "07-impersonation-and-extras")
		cfg := config(func(c *auditingest.Config) {
			c.DisplayNameExtras = []string{"configbutler.ai/claims/display-name", "username"}
		})
		got, author := stored(t, server, cfg, "/audit-webhook/eu-1", string(c.Post))
		if got["stored"] != 3 {
			t.Errorf("counts %v, want 3 stored", got)
		}
		for rv, want := range map[string][2]string{"180": {"u-h9vkf", "carol"}, "181": {"dave", "Dave <dave@evil.test>\nCo-authored-by: x"}, "182": {"erin", ""}} {
			if a := author("eu-1", "u-100", rv); a.Fact.Author != want[0] || a.Fact.DisplayName != want[1] {
				t.Errorf("version %s is %q (%q), want %q", rv, a.Fact.Author, a.Fact.DisplayName, want)
			}
		}
	})
}

func TestEventsOfManyClustersInOnePost(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		c := readCase(t, "12-shared-stream-routing")
		cfg := config(func(cfg *auditingest.Config) { cfg.RouteAnnotationKey = c.Config.RouteAnnotationKey })
		got, author := stored(t, server, cfg, c.Path, string(c.Post))
		if diff := cmp.Diff(counts{"stored": 2, "missing_cluster_annotation": 1}, got); diff != "" {
			t.Error(diff)
		}
		for route, want := range map[string]string{"ws-a": "ana@example.test", "ws-b": "ben@example.test", "default": ""} {
			if a := author(route, "u-100", "150"); a.Fact.Author != want {
				t.Errorf("on route %s the author is %q, want %q", route, a.Fact.Author, want)
			}
		}
		escaped := strings.NewReplacer(`"ws-a"`, `"root:org:%41"`, `"ws-b"`, `"root:org%3AA"`).Replace(string(c.Post))
		if _, author = stored(t, server, cfg, c.Path, escaped); author("root:org:%41", "u-100", "150").Fact.Author != "ana@example.test" || author("root:org%3AA", "u-100", "150").Fact.Author != "ben@example.test" {
			t.Error("routes with : and % run into each other")
		}
	})
}

func TestOneBadEventDoesNotLoseTheOthers(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		var items []string
		for i := range 3 {
			items = append(items, strings.Replace(update(fmt.Sprint("good-", i)), `"resourceVersion":"7"`, fmt.Sprintf(`"resourceVersion":"7%d"`, i), 1))
		}
		large := strings.Replace(update("large"), `"kind":"ConfigMap"`, `"data":{"k":"`+strings.Repeat("v", 8000)+`"},"kind":"ConfigMap"`, 1)
		wrong := strings.Replace(update("wrong"), `"ResponseComplete"`, "7", 1)
		cfg := config(func(c *auditingest.Config) { c.MaxEventBytes = 4096 })
		got, author := stored(t, server, cfg, "/audit-webhook/eu-1", list(items[0], large, items[1], wrong, items[2]))
		if diff := cmp.Diff(counts{"stored": 3, "event_too_large": 1, "event_malformed": 1}, got); diff != "" {
			t.Error(diff)
		}
		for i := range 3 {
			if a := author("eu-1", "u-1", fmt.Sprintf("7%d", i)); a.Fact.Author != "alice" {
				t.Errorf("good event %d is lost: %+v", i, a)
			}
		}
	})
}

func TestOnePostIsOneRoundTrip(t *testing.T) {
	server := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	trips := &valkeytest.Counter{}
	store.AddHook(trips)
	cfg := config(func(c *auditingest.Config) { c.MaxBodyBytes = 64 << 20 })
	f := newFunction(t, cfg, auditingest.NewStore(cfg, store), io.Discard)
	post := func(n int) {
		t.Helper()
		items := make([]string, n)
		for i := range items {
			items[i] = strings.Replace(update("x"), `"uid":"u-1"`, fmt.Sprintf(`"uid":"u-%d"`, i), 1)
		}
		if w := send(f, "POST", "/audit-webhook/default", bearer("sesame"), strings.NewReader(list(items...))); w.Code != 200 {
			t.Fatalf("answered %d %s", w.Code, w.Body)
		}
	}
	post(1) // loads the scripts
	for n, want := range map[int]int{0: 0, 1: 1, 50: 1, 400: 1, 2000: 1, 4500: 3} {
		trips.Reset()
		post(n)
		if got := trips.Trips(); got != want {
			t.Errorf("a POST of %d events took %d round trips, want %d", n, got, want)
		}
	}
}
