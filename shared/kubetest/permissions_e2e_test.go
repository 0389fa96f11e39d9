//go:build e2e

package kubetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// testPermissions logs in as each function's service account. Requests that its work needs succeed; what the API server
// says it may do at all is exactly the list here, so that nothing else slips in.
func testPermissions(t *testing.T, c *Cluster) {
	c.AwaitMirrored()
	c.ApplyText(`
apiVersion: v1
kind: Secret
metadata: {namespace: tidemark, name: other}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web}
data: {a: b}`)
	t.Run("watchcommit can do its work", func(t *testing.T) { watchcommitWorks(t, c) })
	for _, tc := range []struct{ account, namespace, may string }{
		{"watchcommit", "tidemark", "get secrets/cfg-git; " + watchcommitAnywhere},
		{"watchcommit", "default", "create events.events.k8s.io; " + watchcommitAnywhere},
		{"watchcommit", "shop", watchcommitAnywhere},
		{"refsweep", "tidemark", "get secrets/cfg-git; get,list gitrepositories.source.toolkit.fluxcd.io"},
		{"refsweep", "shop", "get,list gitrepositories.source.toolkit.fluxcd.io"},
		{"auditingest", "tidemark", ""},
		{"authorcapture", "tidemark", ""},
	} {
		t.Run(tc.account+" in "+tc.namespace+" may do nothing else", func(t *testing.T) {
			got := mayDo(t, c, tc.account, tc.namespace)
			want := strings.FieldsFunc(tc.may, func(r rune) bool { return r == ';' })
			for i := range want {
				want[i] = strings.TrimSpace(want[i])
			}
			slices.Sort(want)
			if strings.Join(got, "; ") != strings.Join(want, "; ") {
				t.Errorf("may do\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

const watchcommitAnywhere = "delete commitrequests.tidemark.dev; get namespaces/kube-system; get,list commitrequests.tidemark.dev; get,list gittargets.tidemark.dev; " +
	"patch commitrequests/status.tidemark.dev; patch gittargets/status.tidemark.dev; " +
	"list,watch configmaps; list,watch limitranges; list,watch namespaces; list,watch persistentvolumeclaims; list,watch resourcequotas; " +
	"list,watch serviceaccounts; list,watch services; list,watch daemonsets.apps; list,watch deployments.apps; list,watch statefulsets.apps; " +
	"list,watch cronjobs.batch; list,watch horizontalpodautoscalers.autoscaling; list,watch poddisruptionbudgets.policy; " +
	"list,watch ingresses.networking.k8s.io; list,watch networkpolicies.networking.k8s.io; list,watch storageclasses.storage.k8s.io; " +
	"list,watch priorityclasses.scheduling.k8s.io; list,watch customresourcedefinitions.apiextensions.k8s.io; " +
	"list,watch mutatingwebhookconfigurations.admissionregistration.k8s.io; list,watch validatingwebhookconfigurations.admissionregistration.k8s.io; " +
	"list,watch clusterrolebindings.rbac.authorization.k8s.io; list,watch clusterroles.rbac.authorization.k8s.io; " +
	"list,watch rolebindings.rbac.authorization.k8s.io; list,watch roles.rbac.authorization.k8s.io"

// mayDo is what the API server's own review says, without what every authenticated user has: the same review for a
// service account that nobody granted anything.
func mayDo(t *testing.T, c *Cluster, account, namespace string) []string {
	t.Helper()
	c.ApplyText("apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: tidemark, name: nobody}")
	everybody := rulesOf(t, c, "nobody", namespace)
	var out []string
	for _, rule := range rulesOf(t, c, account, namespace) {
		if !slices.Contains(everybody, rule) {
			out = append(out, rule)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func rulesOf(t *testing.T, c *Cluster, account, namespace string) []string {
	t.Helper()
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": namespace},
	}}
	gvr := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"}
	answer, err := c.ClientFor(c.ServiceAccount("tidemark", account)).Resource(gvr).Create(context.Background(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if incomplete, _, _ := unstructured.NestedBool(answer.Object, "status", "incomplete"); incomplete {
		t.Fatal("the review is incomplete")
	}
	rules, _, _ := unstructured.NestedSlice(answer.Object, "status", "resourceRules")
	var out []string
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		part := func(key string) []string { s, _, _ := unstructured.NestedStringSlice(rule, key); return s }
		verbs := part("verbs")
		slices.Sort(verbs)
		for _, group := range part("apiGroups") {
			for _, resource := range part("resources") {
				line := strings.Join(verbs, ",") + " " + resource
				if group != "" {
					line += "." + group
				}
				if names := part("resourceNames"); len(names) > 0 {
					line += "/" + strings.Join(names, ",")
				}
				out = append(out, line)
			}
		}
	}
	return out
}

func watchcommitWorks(t *testing.T, c *Cluster) {
	ctx := context.Background()
	as := c.ClientFor(c.ServiceAccount("tidemark", "watchcommit"))
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	tidemark := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "tidemark.dev", Version: "v1alpha1", Resource: resource}
	}
	status := []byte(`{"status":{"observedGeneration":1}}`)
	tests := []struct {
		name    string
		request func(dynamic.Interface) error
		denied  bool
	}{
		{"list GitTargets", list(ctx, tidemark("gittargets"), ""), false},
		{"list CommitRequests everywhere", list(ctx, tidemark("commitrequests"), ""), false},
		{"list configmaps everywhere", list(ctx, core("configmaps"), ""), false},
		{"list roles", list(ctx, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, ""), false},
		{"watch configmaps", func(d dynamic.Interface) error {
			w, err := d.Resource(core("configmaps")).Watch(ctx, metav1.ListOptions{})
			if err == nil {
				w.Stop()
			}
			return err
		}, false},
		{"read the named Secret", get(ctx, core("secrets"), "tidemark", "cfg-git"), false},
		{"name the cluster", get(ctx, core("namespaces"), "", "kube-system"), false},
		{"write a target's status", func(d dynamic.Interface) error {
			_, err := d.Resource(tidemark("gittargets")).Patch(ctx, "prod", types.MergePatchType, status, metav1.PatchOptions{}, "status")
			return err
		}, false},
		{"read another Secret", get(ctx, core("secrets"), "tidemark", "other"), true},
		{"list Secrets", list(ctx, core("secrets"), "tidemark"), true},
		{"list Secrets everywhere", list(ctx, core("secrets"), ""), true},
		{"read another namespace", get(ctx, core("namespaces"), "", "shop"), true},
		{"change a target", func(d dynamic.Interface) error {
			_, err := d.Resource(tidemark("gittargets")).Patch(ctx, "prod", types.MergePatchType, []byte(`{"spec":{"prune":"Always"}}`), metav1.PatchOptions{})
			return err
		}, true},
		{"delete what it mirrors", func(d dynamic.Interface) error {
			return d.Resource(core("configmaps")).Namespace("shop").Delete(ctx, "web", metav1.DeleteOptions{})
		}, true},
		{"change what it mirrors", func(d dynamic.Interface) error {
			_, err := d.Resource(core("configmaps")).Namespace("shop").Patch(ctx, "web", types.MergePatchType, []byte(`{"data":{"a":"c"}}`), metav1.PatchOptions{})
			return err
		}, true},
	}
	for _, tc := range tests {
		err := tc.request(as)
		switch {
		case tc.denied && !apierrors.IsForbidden(err):
			t.Errorf("%s: got %v, want it forbidden", tc.name, err)
		case !tc.denied && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func list(ctx context.Context, gvr schema.GroupVersionResource, namespace string) func(dynamic.Interface) error {
	return func(d dynamic.Interface) error {
		_, err := d.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
}

func get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) func(dynamic.Interface) error {
	return func(d dynamic.Interface) error {
		_, err := d.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}
