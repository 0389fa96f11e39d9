package kubetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// plurals are the resources of the kinds that the tests apply, where adding an s does not do.
var plurals = map[string]string{"ingress": "ingresses", "networkpolicy": "networkpolicies", "storageclass": "storageclasses", "priorityclass": "priorityclasses"}

// clusterScoped are the kinds without a namespace among them.
var clusterScoped = map[string]bool{
	"Namespace": true, "CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true, "StorageClass": true,
	"PriorityClass": true, "ValidatingWebhookConfiguration": true, "GitTarget": true,
}

// Read returns the documents of a YAML file.
func (c *Cluster) Read(file string) []*unstructured.Unstructured {
	c.t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Objects(string(raw))
}

// Objects returns the documents of a YAML text.
func (c *Cluster) Objects(text string) []*unstructured.Unstructured {
	c.t.Helper()
	var out []*unstructured.Unstructured
	docs := kyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			c.t.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(doc)
		if err != nil {
			c.t.Fatalf("%v in\n%s", err, doc)
		}
		if string(raw) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			c.t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, u)
	}
}

// Apply applies files of infra/kubernetes as the administrator and waits until their types are served.
func (c *Cluster) Apply(manifests ...string) {
	c.t.Helper()
	for _, m := range manifests {
		for _, u := range c.Read(Manifest(m)) {
			if _, err := c.ApplyObject(c.Client(Admin), u); err != nil {
				c.t.Fatalf("apply %s of %s: %v", u.GetName(), m, err)
			}
			if u.GetKind() == "CustomResourceDefinition" {
				c.waitServed(u)
			}
		}
	}
}

// ApplyText applies the documents of a YAML text as the administrator.
func (c *Cluster) ApplyText(text string) {
	c.t.Helper()
	for _, u := range c.Objects(text) {
		if _, err := c.ApplyObject(c.Client(Admin), u); err != nil {
			c.t.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// ApplyObject applies one object by a server-side apply with strict field validation.
func (c *Cluster) ApplyObject(client dynamic.Interface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resource := client.Resource(ResourceOf(u)).Namespace(u.GetNamespace())
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	return resource.Patch(ctx, u.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "kubetest", Force: &force, FieldValidation: metav1.FieldValidationStrict})
}

// ResourceOf is where objects of this kind are served.
func ResourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := u.GroupVersionKind()
	kind := strings.ToLower(gvk.Kind)
	plural, odd := plurals[kind]
	if !odd {
		plural = kind + "s"
	}
	if u.GetNamespace() == "" && !clusterScoped[gvk.Kind] && !strings.HasPrefix(gvk.Kind, "Cluster") {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	return gvk.GroupVersion().WithResource(plural)
}

func (c *Cluster) waitServed(crd *unstructured.Unstructured) {
	c.t.Helper()
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	c.Eventually("that "+gvr.String()+" is served", func(ctx context.Context) error {
		_, err := c.Client(Admin).Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// AwaitMirrored waits until what watchcommit may mirror has been gathered from its parts, which takes the controller
// AggregatedRoles.
func (c *Cluster) AwaitMirrored() {
	c.t.Helper()
	roles := c.Client(Admin).Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
	rules := func(role unstructured.Unstructured) int {
		list, _, _ := unstructured.NestedSlice(role.Object, "rules")
		return len(list)
	}
	c.Eventually("that the aggregated role has its rules", func(ctx context.Context) error {
		parts, err := roles.List(ctx, metav1.ListOptions{LabelSelector: "tidemark.dev/aggregate-to-mirrored=true"})
		if err != nil {
			return err
		}
		want := 0
		for _, part := range parts.Items {
			want += rules(part)
		}
		whole, err := roles.Get(ctx, "tidemark-mirrored", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := rules(*whole); got != want {
			return fmt.Errorf("it has %d of %d rules", got, want)
		}
		return nil
	})
}

// Eventually tries until it works, for as long as the servers may take for anything, and fails the test with the last
// error otherwise.
func (c *Cluster) Eventually(what string, try func(context.Context) error) {
	c.t.Helper()
	deadline := time.Now().Add(readyTimeout)
	var err error
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err = try(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("waited in vain for it to be so %s: %v", what, err)
}

// Listing names a resource, in one namespace or in all.
type Listing struct {
	GVR       schema.GroupVersionResource
	Namespace string
}

// List reads all objects of a resource, as they are now.
func (c *Cluster) List(l Listing) []unstructured.Unstructured {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := c.Client(Admin).Resource(l.GVR).Namespace(l.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatalf("list %s: %v", l.GVR.Resource, err)
	}
	return list.Items
}
