//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// TestCommitRequests: changes are held back, a person asks for theirs, and gets them with their own words; nobody gets
// anybody else's.
func TestCommitRequests(t *testing.T) {
	w := newWorld(t, kubetest.Options{Controllers: []string{kubetest.AggregatedRoles}}, `
  resources: [{resource: configmaps, namespaces: [shop]}]
  commit: {hold: 30m}
  prune: Always
`, "WATCH_WINDOW=0", "ATTRIBUTION_GRACE=20s")
	tr := &truth{}
	as := func(u kubetest.User) *person {
		return &person{t: t, name: string(u), client: w.cluster.Client(u), truth: tr}
	}
	alice, bob := as(kubetest.Alice), as(kubetest.Bob)
	w.eventually("the target is mirrored", func() bool { return strings.HasPrefix(w.condition("Ready"), "True") })

	bob.create(configMaps, configMap("shop", "limits", "1"))
	alice.create(configMaps, configMap("shop", "prices", "1"))
	alice.patch(configMaps, "shop", "limits", `{"data":{"v":"2"}}`)
	bob.create(configMaps, configMap("shop", "later", "1"))
	w.watch.tick()
	if n := countOf(w.records()); n != 0 {
		t.Fatalf("%d changes are in git although they are held", n)
	}
	w.request(alice, "raise", "Raise the limits\n\nAs agreed on Monday.")
	w.eventually("the request is done", func() bool { return w.outcome("raise")["reason"] != nil && w.outcome("raise")["reason"] != "Waiting" })
	got := w.outcome("raise")
	if got["reason"] != "Pushed" || got["author"] != "alice" {
		t.Fatalf("the request ended as %v", got)
	}
	var mine *commit
	for _, c := range w.history() {
		if c.sha == got["sha"] {
			mine = &c
		}
		if strings.HasPrefix(c.subject, "Raise the limits") != (c.message.Request == "shop/raise") || c.message.Request != "" && c.message.Actor != "alice" {
			t.Errorf("commit %q is by %s for the request %q", c.subject, c.message.Actor, c.message.Request)
		}
	}
	if mine == nil || mine.author != "alice" || mine.subject != "Raise the limits" {
		t.Errorf("the request names the commit %v, which is %+v", got["sha"], mine)
	}
	// Bob's earlier change had to go first, his later one is still held.
	if n := countOf(w.records()); n != 3 {
		t.Errorf("%d changes are in git, want 3: bob's first and both of alice's", n)
	}

	w.request(alice, "again", "Once more")
	w.eventually("the second request is done", func() bool { return w.outcome("again")["reason"] == "NothingPending" })
	if again := w.outcome("again"); again["sha"] != got["sha"] {
		t.Errorf("nothing was pending, and the request names %v, want alice's last commit %v", again["sha"], got["sha"])
	}
	w.request(bob, "rest", "And the rest")
	w.eventually("bob's request is done", func() bool { return w.outcome("rest")["reason"] == "Pushed" })
	w.wantHistory(tr)
	w.wantTree("clusters/prod", kubetest.Listing{GVR: configMaps, Namespace: "shop"})

	lost := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest", "metadata": map[string]any{"namespace": "shop", "name": "lost"},
		"spec": map[string]any{"targetRef": map[string]any{"name": "nowhere"}, "message": "m"}}}
	if _, err := bob.on(commitRequests, "shop").Create(context.Background(), lost, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the request for a target that is not there is done", func() bool { return w.outcome("lost")["reason"] == "TargetNotFound" })

	brief := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest", "metadata": map[string]any{"namespace": "shop", "name": "brief"},
		"spec": map[string]any{"targetRef": map[string]any{"name": "prod"}, "message": "m", "ttlSecondsAfterFinished": int64(1)}}}
	if _, err := bob.on(commitRequests, "shop").Create(context.Background(), brief, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	there := func() (names []string) {
		for _, u := range w.cluster.List(kubetest.Listing{GVR: commitRequests, Namespace: "shop"}) {
			names = append(names, u.GetName())
		}
		return names
	}
	w.eventually("the request that was to stay for a second is gone", func() bool { return !slices.Contains(there(), "brief") })
	if got := strings.Join(there(), " "); got != "again lost raise rest" {
		t.Errorf("the requests %q are there, want those that were to stay", got)
	}

	// Nobody saw this one being created: no review, and no fact on the route that is asked.
	hooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	if err := w.cluster.Client(kubetest.Admin).Resource(hooks).Delete(context.Background(), "authorcapture.tidemark.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.patchTarget(`{"spec":{"auditRoute":"nobody-posts-here","attributionGrace":"1s"}}`)
	w.request(alice, "unseen", "By nobody")
	w.eventually("the request of an unknown author is done", func() bool { return w.outcome("unseen")["reason"] == "AuthorUnknown" })
	if got := w.outcome("unseen"); got["author"] != nil || got["sha"] != nil {
		t.Errorf("nobody knows who made the request, and it names %v", got)
	}
}

func (w *world) request(by *person, name, message string) {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest", "metadata": map[string]any{"namespace": "shop", "name": name},
		"spec": map[string]any{"targetRef": map[string]any{"name": "prod"}, "message": message},
	}}
	if _, err := by.on(commitRequests, "shop").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		w.t.Fatalf("%s asks for a commit: %v", by.name, err)
	}
}

// outcome is the reason of a request's condition, with its sha and author.
func (w *world) outcome(name string) map[string]any {
	w.t.Helper()
	u, err := w.cluster.Client(kubetest.Admin).Resource(commitRequests).Namespace("shop").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	status, _ := u.Object["status"].(map[string]any)
	out := map[string]any{"sha": status["sha"], "author": status["author"]}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if one, ok := c.(map[string]any); ok && one["type"] == "Committed" {
			out["reason"] = one["reason"]
		}
	}
	return out
}
