package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func sample(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "events", "samples", "corpus", "protocol", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// document is one answer of a pretended API server.
type document struct {
	code int
	kind string
	etag string
	body []byte
}

// apiServer serves documents by path and counts the requests.
func apiServer(t *testing.T, docs map[string]document) (*Client, map[string]int) {
	t.Helper()
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		doc, ok := docs[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
			return
		case doc.etag != "" && r.Header.Get("If-None-Match") == doc.etag:
			asked["unchanged"]++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", doc.kind)
		w.Header().Set("ETag", doc.etag)
		if doc.code != 0 {
			w.WriteHeader(doc.code)
		}
		_, _ = w.Write(doc.body)
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return client, asked
}

func gr(group, resource string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: resource}
}

func TestResolveByTheAggregatedDocument(t *testing.T) {
	client, asked := apiServer(t, map[string]document{"/apis": {kind: aggregatedType, etag: `"v7"`, body: sample(t, "discovery-aggregated-v2.json")}})
	wanted := []schema.GroupResource{gr("apps", "deployments"), gr("rbac.authorization.k8s.io", "clusterroles"), gr("apps", "boats"), gr("nowhere.example", "boats"),
		gr("authorization.k8s.io", "subjectaccessreviews")}
	for range 2 {
		served, missing, err := client.Resolve(context.Background(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if got := served[wanted[0]]; got.Version != "v1" || got.Kind != "Deployment" || !got.Namespaced {
			t.Errorf("deployments: %+v", got)
		}
		if got := served[wanted[1]]; got.Version != "v1" || got.Kind != "ClusterRole" || got.Namespaced {
			t.Errorf("clusterroles: %+v", got)
		}
		for i, want := range map[int]string{
			2: "boats.apps: the API server does not serve it",
			3: "boats.nowhere.example: the API server does not serve the group nowhere.example",
			4: "subjectaccessreviews.authorization.k8s.io: it cannot be listed and watched",
		} {
			if got := missing[wanted[i]]; got == nil || got.Error() != want || got.Temporary {
				t.Errorf("got %+v, want %s", got, want)
			}
		}
	}
	if asked["/apis"] != 2 || asked["unchanged"] != 1 || len(asked) != 2 {
		t.Errorf("requests %v, want two for /apis, the second answered as unchanged", asked)
	}
}

func TestResolveTakesTheFirstVersionThatServesTheResource(t *testing.T) {
	body := `{"items":[{"metadata":{"name":"example.com"},"versions":[
		{"version":"v2","resources":[{"resource":"boats","responseKind":{"kind":"Boat"},"scope":"Namespaced","verbs":["get"]}]},
		{"version":"v1","resources":[{"resource":"boats","responseKind":{"kind":"Boat"},"scope":"Namespaced","verbs":["list","watch"]}]},
		{"version":"v1beta1","resources":[{"resource":"boats","responseKind":{"kind":"Boat"},"scope":"Namespaced","verbs":["list","watch"]}]}]},
		{"metadata":{"name":"stale.example"},"versions":[{"version":"v1","freshness":"Stale","resources":[]}]}]}`
	client, _ := apiServer(t, map[string]document{"/apis": {kind: aggregatedType, body: []byte(body)}})
	served, missing, err := client.Resolve(context.Background(), []schema.GroupResource{gr("example.com", "boats"), gr("stale.example", "metrics")})
	if err != nil {
		t.Fatal(err)
	}
	if got := served[gr("example.com", "boats")].Version; got != "v1" {
		t.Errorf("version %s, want v1: v2 cannot be watched", got)
	}
	if got := missing[gr("stale.example", "metrics")]; got == nil || !got.Temporary || !strings.Contains(got.Why, "does not answer") {
		t.Errorf("a group whose server is down: %+v", got)
	}
}

func TestResolveByTheOlderDocuments(t *testing.T) {
	groups := map[string]any{"groups": []any{
		map[string]any{"name": "apps", "preferredVersion": map[string]any{"version": "v1"}, "versions": []any{map[string]any{"version": "v1"}}},
		map[string]any{"name": "example.com", "preferredVersion": map[string]any{"version": "v1"}, "versions": []any{map[string]any{"version": "v1"}}},
		map[string]any{"name": "stale.example", "preferredVersion": map[string]any{"version": "v1"}, "versions": []any{map[string]any{"version": "v1"}}},
	}}
	raw, err := json.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	const plain = "application/json"
	client, asked := apiServer(t, map[string]document{
		"/api":                   {kind: plain, body: []byte(`{"kind":"APIVersions","versions":["v1"]}`)},
		"/api/v1":                {kind: plain, body: sample(t, "discovery-api-v1.json")},
		"/apis":                  {kind: plain, body: raw},
		"/apis/apps/v1":          {kind: plain, body: sample(t, "discovery-apps-v1.json")},
		"/apis/example.com/v1":   {kind: plain, body: sample(t, "discovery-example.com-v1.json")},
		"/apis/stale.example/v1": {kind: plain, code: http.StatusServiceUnavailable},
	})
	wanted := []schema.GroupResource{gr("", "configmaps"), gr("", "nodes"), gr("apps", "deployments"), gr("apps", "statefulsets"), gr("example.com", "widgets"), gr("stale.example", "x"), gr("no.example", "x")}
	served, missing, err := client.Resolve(context.Background(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got := served[wanted[0]]; got.GroupVersionResource != (schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}) || got.Kind != "ConfigMap" || !got.Namespaced {
		t.Errorf("configmaps: %+v", got)
	}
	if got := served[wanted[1]]; got.Namespaced || got.Kind != "Node" {
		t.Errorf("nodes: %+v", got)
	}
	if len(served) != 5 || !missing[wanted[5]].Temporary || missing[wanted[6]].Temporary {
		t.Errorf("served %v, missing %v", served, missing)
	}
	if asked["/apis/apps/v1"] != 1 {
		t.Errorf("apps was asked for %d times, want once", asked["/apis/apps/v1"])
	}
}

func TestResolveTellsAnAPIServerThatFailsFromAMissingResource(t *testing.T) {
	client, _ := apiServer(t, map[string]document{"/apis": {code: http.StatusInternalServerError}})
	_, _, err := client.Resolve(context.Background(), []schema.GroupResource{gr("apps", "deployments")})
	if err == nil || !strings.Contains(err.Error(), "GET /apis: the API server answered 500") {
		t.Errorf("got %v", err)
	}
}

func TestShards(t *testing.T) {
	target := validTarget()
	target.Spec.Resources = []ResourceRule{
		{Group: "apps", Resource: "deployments"},
		{Resource: "configmaps", Namespaces: []string{"shop", "platform"}},
		{Resource: "secrets"},
		{Resource: "nodes", Namespaces: []string{"shop"}},
		{Group: "example.com", Resource: "boats"},
	}
	served := map[schema.GroupResource]Resource{
		gr("apps", "deployments"): {Namespaced: true}, gr("", "configmaps"): {Namespaced: true}, gr("", "nodes"): {}, gr("", "secrets"): {Namespaced: true},
	}
	missing := map[schema.GroupResource]*NotServed{gr("example.com", "boats"): {Resource: gr("example.com", "boats"), Why: "gone"}}
	shards, not := target.Shards(served, missing)
	var namespaces []string
	for _, s := range shards {
		namespaces = append(namespaces, s.Namespace)
	}
	if got := strings.Join(namespaces, ","); got != ",shop,platform" {
		t.Errorf("shards of namespaces %q, want the whole cluster, shop and platform", got)
	}
	if len(not) != 2 || !strings.Contains(not[0].Why, "belongs to the whole cluster") || not[1].Why != "gone" {
		t.Errorf("not served: %v", not)
	}
}
