//go:build e2e

// Package knative_test applies what this folder and terraform/stacks/knative have to a real API server with the custom
// resources of Knative and cert-manager. Run it by `make knative-check`.
package knative_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// releases are where the custom resources come from. The sums are checked, as go.sum does not hold these modules.
var releases = []struct{ module, sum, files string }{
	{"knative.dev/serving@v0.51.0", "h1:yN2Q7eYqJgoPfZkATjoBZyGbZ2P1Qhns9HIMU4mF+to=", "config/core/300-resources/*.yaml"},
	{"knative.dev/eventing@v0.49.2", "h1:eUrW+9EHznHGS/cwO/SpCIVqY+ZRyoRO+n0RLnYlIj0=", "config/core/resources/*.yaml"},
	{"github.com/cert-manager/cert-manager@v1.19.1", "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=", "deploy/crds/*.yaml"},
}

// customResources are the files of the CRDs.
func customResources(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, r := range releases {
		cmd := exec.Command("go", "mod", "download", "-json", r.module)
		cmd.Dir = t.TempDir() // outside of our module, so that its go.mod stays as it is
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		raw, err := cmd.Output()
		var m struct{ Dir, Sum, Error string }
		if jsonErr := json.Unmarshal(raw, &m); jsonErr != nil || err != nil || m.Error != "" {
			t.Fatalf("download %s: %v %v %s", r.module, err, jsonErr, m.Error)
		}
		if m.Sum != r.sum {
			t.Fatalf("%s has the sum %s, want %s", r.module, m.Sum, r.sum)
		}
		files, err := filepath.Glob(filepath.Join(m.Dir, filepath.FromSlash(r.files)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no %s: %v", r.module, r.files, err)
		}
		out = append(out, files...)
	}
	return out
}

// install creates the CRDs as Knative and cert-manager ship them, but for the conversion webhooks, which nothing answers,
// and waits until all are served.
func install(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	var kinds []schema.GroupVersionResource
	for _, file := range append(customResources(t), "testdata/clusterdomainclaim.yaml") {
		for _, crd := range c.Read(file) {
			if crd.GetKind() != "CustomResourceDefinition" {
				continue
			}
			unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
			refuseUnknownFields(crd)
			if _, err := c.ApplyObject(c.Client(kubetest.Admin), crd); err != nil {
				t.Fatalf("create %s: %v", crd.GetName(), err)
			}
			group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
			plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
			for _, v := range list(crd, "spec", "versions") {
				if v["served"] == true && v["storage"] == true {
					kinds = append(kinds, schema.GroupVersionResource{Group: group, Version: v["name"].(string), Resource: plural})
				}
			}
		}
	}
	for _, k := range kinds {
		c.Eventually("that "+k.String()+" is served", func(ctx context.Context) error {
			_, err := c.Client(kubetest.Admin).Resource(k).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
	}
}

// refuseUnknownFields takes from a CRD the leave to keep fields that it does not name directly under spec: a cluster would
// store a misspelt one and do nothing.
func refuseUnknownFields(crd *unstructured.Unstructured) {
	for _, v := range list(crd, "spec", "versions") {
		spec, ok, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema", "properties", "spec")
		if m, _ := spec.(map[string]any); ok && m["properties"] != nil {
			delete(m, "x-kubernetes-preserve-unknown-fields")
		}
	}
}

func list(u *unstructured.Unstructured, path ...string) []map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	items, _ := raw.([]any)
	var out []map[string]any
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// kustomized is what kustomize makes of a folder.
func kustomized(t *testing.T, folder string) string {
	t.Helper()
	tool := os.Getenv("KUSTOMIZE")
	if tool == "" {
		t.Fatal("KUSTOMIZE is not set: make knative-check sets it")
	}
	cmd := exec.Command(tool, "build", folder)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v\n%s", folder, err, stderr.String())
	}
	return string(out)
}

func TestEveryManifestIsTakenAsItIsAndASecondTimeChangesNothing(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	install(t, c)
	for _, folder := range []string{".", "webhooks", "../eks"} {
		objects := c.Objects(kustomized(t, folder))
		versions := map[string]string{}
		for round := range 2 {
			for _, o := range objects {
				name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
				var stored *unstructured.Unstructured
				c.Eventually("that "+name+" is taken", func(context.Context) (err error) {
					stored, err = c.ApplyObject(c.Client(kubetest.Admin), o.DeepCopy())
					if err != nil && !apierrors.IsNotFound(err) { // a kind is served a moment after its definition
						t.Fatalf("%s: %v", name, err)
					}
					return err
				})
				version := stored.GetResourceVersion()
				if o.GetKind() == "CustomResourceDefinition" { // the API server writes its status meanwhile
					version = fmt.Sprint(stored.GetGeneration())
				}
				if round == 1 && version != versions[name] {
					t.Errorf("%s: a second apply changed %s", folder, name)
				}
				versions[name] = version
			}
		}
		if len(objects) < 5 {
			t.Errorf("%s has %d objects, want at least 5", folder, len(objects))
		}
		for _, o := range objects {
			if _, ok, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec"); ok {
				podIsTaken(t, c, o)
			}
		}
	}
}

// podIsTaken creates, as a dry run, the pod that a workload's template describes: the namespace takes none that is not
// restricted.
func podIsTaken(t *testing.T, c *kubetest.Cluster, workload *unstructured.Unstructured) {
	t.Helper()
	spec, _, _ := unstructured.NestedMap(workload.Object, "spec", "template", "spec")
	for _, field := range []string{"containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds"} {
		delete(spec, field) // Knative's own
	}
	for _, container := range list(&unstructured.Unstructured{Object: spec}, "containers") {
		for _, probe := range []string{"readinessProbe", "livenessProbe"} {
			if _, ok, _ := unstructured.NestedMap(container, probe, "httpGet"); ok { // Knative knows the port
				_ = unstructured.SetNestedField(container, int64(8080), probe, "httpGet", "port")
			}
		}
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "probe-" + workload.GetName(), "namespace": workload.GetNamespace()},
		"spec":     spec,
	}}
	// StatefulSets add the volumes of their claims.
	for _, claim := range list(workload, "spec", "volumeClaimTemplates") {
		name, _, _ := unstructured.NestedString(claim, "metadata", "name")
		volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
		spec["volumes"] = append(volumes, map[string]any{"name": name, "emptyDir": map[string]any{}})
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	_, err := c.Client(kubetest.Admin).Resource(pods).Namespace(workload.GetNamespace()).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Errorf("the pod of %s %s: %v", workload.GetKind(), workload.GetName(), err)
	}
}

// TestTheStackIsAppliedAndASecondPlanIsEmpty needs Terraform and, for its provider, the registry or what TF_CLI_CONFIG_FILE
// names in its place.
func TestTheStackIsAppliedAndASecondPlanIsEmpty(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Controllers: []string{"namespace-controller"}})
	install(t, c)
	waitForSchemas(t, c)
	work := copyOf(t, "../../terraform", "../../infra")
	for name, vars := range map[string]string{
		"the example":         "terraform.tfvars.example",
		"everything is given": "tests/everything.tfvars",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(work, "terraform", "stacks", "knative")
			terraform := func(want int, args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, "terraform", append([]string{"-chdir=" + dir}, args...)...)
				cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1")
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
					t.Fatalf("terraform %s: %v, want exit status %d\n%s", args[0], err, want, out)
				}
				return string(out)
			}
			given := []string{"-no-color", "-var-file=" + vars, "-var=kubeconfig=" + c.Kubeconfig(kubetest.Admin)}
			// Also after a failure: the other case wants an empty cluster.
			destroy := sync.OnceFunc(func() { terraform(0, append([]string{"destroy", "-auto-approve"}, given...)...) })
			defer destroy()
			terraform(0, "init", "-no-color")
			terraform(2, append([]string{"plan", "-detailed-exitcode"}, given...)...)
			terraform(0, append([]string{"apply", "-auto-approve"}, given...)...)
			terraform(0, append([]string{"plan", "-detailed-exitcode"}, given...)...)
			for kind, want := range map[schema.GroupVersionResource]int{
				{Group: "serving.knative.dev", Version: "v1", Resource: "services"}:         5,
				{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}:      2,
				{Group: "sources.knative.dev", Version: "v1", Resource: "apiserversources"}: 1,
			} {
				if got := len(c.List(kubetest.Listing{GVR: kind, Namespace: "tidemark"})); got != want {
					t.Errorf("%d %s in the cluster, want %d", got, kind.Resource, want)
				}
			}
			if state := terraform(0, "show", "-json"); strings.Contains(state, `"kind":"Secret"`) {
				t.Error("the state holds a Secret")
			}
			destroy()
			c.Eventually("that the namespace is gone", func(context.Context) error {
				for _, ns := range c.List(kubetest.Listing{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}}) {
					if ns.GetName() == "tidemark" {
						return errors.New("it is still there")
					}
				}
				return nil
			})
		})
	}
}

// waitForSchemas waits until the OpenAPI document, which the provider reads, shows the custom resources.
func waitForSchemas(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	config := c.Config(kubetest.Admin)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually("that the OpenAPI document shows Knative", func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/openapi/v2", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var doc struct{ Definitions map[string]any }
		if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
			return err
		}
		for _, want := range []string{"dev.knative.serving.v1.Service", "dev.knative.serving.v1beta1.DomainMapping", "dev.knative.internal.networking.v1alpha1.ClusterDomainClaim", "dev.knative.sources.v1.ApiServerSource", "dev.knative.sources.v1.PingSource"} {
			if doc.Definitions[want] == nil {
				return fmt.Errorf("%s is missing", want)
			}
		}
		return nil
	})
}

// copyOf copies folders, so that Terraform's files stay out of ours.
func copyOf(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range folders {
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(f)), os.DirFS(f)); err != nil {
			t.Fatal(err)
		}
	}
	// A state or a lock of the caller is none of ours.
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".terraform":
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return filepath.SkipDir
		case e.Name() == ".terraform.lock.hcl" || strings.Contains(e.Name(), ".tfstate"):
			return os.Remove(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
