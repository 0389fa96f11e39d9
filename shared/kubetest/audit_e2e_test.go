//go:build e2e

package kubetest

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// sink receives audit events.
type sink struct {
	mu     sync.Mutex
	events []auditv1.Event
	raw    strings.Builder
	tokens map[string]int
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var list auditv1.EventList
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, list.Items...)
	s.raw.Write(body)
	s.tokens[r.Header.Get("Authorization")]++
}

// about are the events on one resource, of which there is at least one.
func (s *sink) about(c *Cluster, resource string) []auditv1.Event {
	var out []auditv1.Event
	c.Eventually("that an audit event about "+resource+" has come", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		out = nil
		for _, e := range s.events {
			if ref := e.ObjectRef; ref != nil && ref.Namespace == "default" && strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/") == resource && e.User.Username == "admin" {
				out = append(out, e)
			}
		}
		if len(out) == 0 {
			return fmt.Errorf("none among %d", len(s.events))
		}
		return nil
	})
	return out
}

// TestAuditPolicy looks at what the API server sends under the shipped policy and webhook file.
func TestAuditPolicy(t *testing.T) {
	s := &sink{tokens: map[string]int{}}
	server := httptest.NewTLSServer(s)
	defer server.Close()
	c := Start(t, Options{AuditURL: server.URL + "/audit-webhook/default", AuditToken: "sesame", AuditCA: CABundle(server)})
	admin, ctx := c.Client(Admin), context.Background()
	const marked = "aHVudGVyMg=="
	c.ApplyText(`
apiVersion: v1
kind: Secret
metadata: {namespace: default, name: keys}
data: {password: ` + marked + `}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: default, name: robot}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: default, name: lock}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: default, name: web}
data: {a: b}`)
	c.ServiceAccount("default", "robot") // a token
	maps := admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if _, err := maps.List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	web, err := maps.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, "web", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The last write is in the last batch, so after it everything else has come as well.
	if _, err := maps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "last"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.apiserver.stop() // sends what it has collected
	events := s.about(c, "configmaps")

	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.raw.String(), marked) || strings.Contains(s.raw.String(), "eyJhbGciOi") {
		t.Error("a Secret's value or a token was sent")
	}
	if len(s.tokens) != 1 || s.tokens["Bearer sesame"] == 0 {
		t.Errorf("sent with %v, want the token of the file", s.tokens)
	}
	if strings.Contains(s.raw.String(), "managedFields") {
		t.Error("managedFields were sent")
	}
	for _, e := range s.events {
		if e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" || e.Stage != auditv1.StageResponseComplete && e.Stage != auditv1.StagePanic ||
			e.ObjectRef == nil || e.ObjectRef.Resource == "leases" || e.ObjectRef.Resource == "events" {
			t.Errorf("was sent: %s %s at %s", e.Verb, e.RequestURI, e.Stage)
		}
		if e.ObjectRef != nil && (e.ObjectRef.Resource == "secrets" || e.ObjectRef.Subresource == "token") && (e.Level != auditv1.LevelMetadata || e.RequestObject != nil || e.ResponseObject != nil) {
			t.Errorf("%s has level %s and bodies", e.RequestURI, e.Level)
		}
	}
	var verbs []string
	for _, e := range events {
		verbs = append(verbs, e.Verb)
		if e.Level != auditv1.LevelRequestResponse || e.ResponseObject == nil {
			t.Errorf("%s %s has level %s", e.Verb, e.RequestURI, e.Level)
			continue
		}
		switch {
		case e.Verb == "patch" && !strings.Contains(string(e.ResponseObject.Raw), `"resourceVersion":"`+web.GetResourceVersion()+`"`):
			t.Errorf("the answer has no resourceVersion: %s", e.ResponseObject.Raw)
		case e.Verb == "delete" && !strings.Contains(string(e.ResponseObject.Raw), string(web.GetUID())):
			t.Errorf("the answer to the delete has no uid: %s", e.ResponseObject.Raw)
		}
	}
	if got := strings.Join(verbs, " "); strings.Count(got, "patch") != 1 || strings.Count(got, "delete") != 2 || strings.Count(got, "create") != 1 {
		t.Errorf("configmaps were told of as %q, want a patch, two deletes (one tried only) and a create", got)
	}
}

func TestTheAuditWebhookFileNamesARoute(t *testing.T) {
	config, err := clientcmd.LoadFromFile(Manifest("audit/webhook.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["auditingest"].Server; !strings.HasSuffix(got, "/audit-webhook/default") {
		t.Errorf("server %s, want one that ends with /audit-webhook/default, the default of spec.auditRoute", got)
	}
	if config.AuthInfos["kube-apiserver"].TokenFile == "" || config.AuthInfos["kube-apiserver"].Token != "" {
		t.Error("the token is not in a file of its own")
	}
}
