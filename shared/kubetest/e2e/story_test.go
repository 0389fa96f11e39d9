//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// TestStory is a working day in a cluster: everybody changes things in their own way, and each change is in git under
// the name of whoever made it.
func TestStory(t *testing.T) {
	w := newWorld(t, kubetest.Options{Controllers: []string{"*"}}, `
  resources:
  - {resource: configmaps, namespaces: [shop, platform]}
  - {group: apps, resource: deployments}
  - {resource: secrets}
  ignoreActors: ["system:serviceaccount:kube-system:root-ca-cert-publisher", "system:serviceaccount:kube-system:deployment-controller"]
  prune: Always
`, "WATCH_WINDOW=0", "ATTRIBUTION_GRACE=20s")
	tr := &truth{}
	as := func(u kubetest.User) *person {
		return &person{t: t, name: string(u), client: w.cluster.Client(u), truth: tr}
	}
	alice, bob, dave := as(kubetest.Alice), as(kubetest.Bob), as(kubetest.Dave)
	carol := &person{t: t, name: "carol", client: w.cluster.ClientFor(w.carol()), truth: tr}
	deployer := &person{t: t, name: "system:serviceaccount:shop:deployer", client: w.cluster.ClientFor(w.cluster.ServiceAccount("shop", "deployer")), truth: tr}

	w.eventually("the target is mirrored", func() bool { return strings.HasPrefix(w.condition("Ready"), "True") })
	if got := w.condition("SecretsSkipped"); !strings.HasPrefix(got, "True") {
		t.Errorf("the status says %q about Secrets", got)
	}

	// Creates, updates, a patch, and a re-apply that changes nothing.
	alice.create(deployments, deployment("shop", "web", 1))
	bob.create(configMaps, configMap("shop", "prices", "1"))
	bob.update(configMaps, "shop", "prices", set("2", "data", "v"))
	carol.patch(configMaps, "shop", "prices", `{"data":{"v":"3"}}`)
	deployer.patch(deployments, "shop", "web", `{"spec":{"template":{"metadata":{"annotations":{"release":"7"}}}}}`)
	dave.apply(configMaps, configMap("shop", "prices", "3"))
	// A scale goes by a subresource, a status by another, and only the first is a change of what is wanted.
	bob.patch(deployments, "shop", "web", `{"spec":{"replicas":3}}`, "scale")
	// A generated name, and names of other people's objects taken again.
	generated := configMap("platform", "", "1")
	generated.SetGenerateName("job-")
	alice.create(configMaps, generated)
	bob.create(configMaps, configMap("platform", "reborn", "1"))
	alice.remove(configMaps, "platform", "reborn")
	carol.create(configMaps, configMap("platform", "reborn", "2"))
	// A removal that a finalizer holds up belongs to whoever asked for it, not to whoever let go.
	held := configMap("shop", "held", "1")
	held.SetFinalizers([]string{"example.com/hold"})
	alice.create(configMaps, held)
	bob.remove(configMaps, "shop", "held")
	if _, err := alice.on(configMaps, "shop").Patch(context.Background(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// A whole collection at once.
	for _, name := range []string{"a", "b", "c"} {
		dave.create(configMaps, labelled(configMap("platform", "batch-"+name, "1")))
	}
	if err := carol.on(configMaps, "platform").DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "batch=yes"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		tr.add(did{verb: history.Delete, object: object(configMaps, "platform", "batch-"+name), who: "carol"})
	}
	// What nobody may do, what was only tried, and what is told of another type, leaves no trace.
	if err := alice.on(configMaps, "shop").Delete(context.Background(), "prices", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}

	listings := []kubetest.Listing{{GVR: configMaps, Namespace: "shop"}, {GVR: configMaps, Namespace: "platform"}, {GVR: deployments}}
	w.eventually("all changes are in git", func() bool { return countOf(w.records()) >= len(tr.done) && w.settled() })
	w.wantHistory(tr)
	w.wantTree("clusters/prod", listings...)
	w.wantCarol()
	w.wantNoSecret()
	w.wantTreeByFile(listings)
}

// wantTreeByFile has the same resources written to another folder by a target that is in a file, not in the cluster.
func (w *world) wantTreeByFile(listings []kubetest.Listing) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "targets.yaml")
	target := `
apiVersion: tidemark.dev/v1alpha1
kind: GitTarget
metadata: {name: by-file}
spec:
  repository: {url: "` + w.repo.URL + `", path: clusters/by-file, secretRef: {namespace: tidemark, name: cfg-git}}
  resources: [{resource: configmaps, namespaces: [shop, platform]}, {group: apps, resource: deployments}]
`
	if err := os.WriteFile(file, []byte(target), 0o600); err != nil {
		w.t.Fatal(err)
	}
	start(w.t, "watchcommit", append(w.settings, "TARGETS_FILE="+file)...).tick()
	w.wantTree("clusters/by-file", listings...)
}

// countOf is how many changes are in history that somebody made.
func countOf(m map[string][]did) (n int) {
	for _, ds := range m {
		for _, d := range ds {
			if d.who != "(replay)" && d.who != "(ignored)" {
				n++
			}
		}
	}
	return n
}

// settled says whether nothing waits behind a cursor.
func (w *world) settled() bool {
	shards, _, _ := unstructured.NestedSlice(w.target().Object, "status", "shards")
	for _, s := range shards {
		if one, ok := s.(map[string]any); ok && one["waiting"] != nil {
			return false
		}
	}
	return len(shards) > 0
}

// wantCarol looks for the name and address that came with the impersonation.
func (w *world) wantCarol() {
	w.t.Helper()
	for _, c := range w.history() {
		if c.message.Actor != "carol" {
			continue
		}
		if c.author != "Carol Example" || c.email != "carol@example.com" || c.message.ImpersonatedBy != "portal" || c.committer != "Tidemark" {
			w.t.Errorf("commit %s is by %s <%s>, impersonated by %q, committed by %s", c.sha, c.author, c.email, c.message.ImpersonatedBy, c.committer)
		}
		return
	}
	w.t.Error("no commit is carol's")
}

// wantNoSecret looks for the passwords in everything that was written.
func (w *world) wantNoSecret() {
	w.t.Helper()
	places := map[string]string{"auditingest's log": w.ingest.said(), "watchcommit's log": w.watch.said(), "the history": w.repo.Git("log", "-p", "main")}
	raw, err := w.target().MarshalJSON()
	if err != nil {
		w.t.Fatal(err)
	}
	places["the target"] = string(raw)
	for place, content := range places {
		for i, s := range w.secrets {
			if strings.Contains(content, s) {
				w.t.Errorf("secret %d is in %s", i, place)
			}
		}
	}
}

func configMap(namespace, name, v string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": map[string]any{"v": v},
	}}
}

func labelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{"batch": "yes"})
	return u
}

func deployment(namespace, name string, replicas int64) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "it", "image": "registry.example.com/it:1"}}},
			},
		},
	}}
}

func set(v any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, v, path...) }
}
