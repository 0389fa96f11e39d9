package knative_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/functions/refsweep"
	"github.com/tidemark-dev/tidemark/functions/watchcommit"
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

// known are the settings of each function, as -help lists them, with those of its hosts.
func known(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for function, config := range map[string]any{
		"auditingest": &auditingest.Config{}, "authorcapture": &authorcapture.Config{}, "refsweep": &refsweep.Config{}, "watchcommit": &watchcommit.Config{}, "who": &who.Config{},
	} {
		for _, c := range []any{config, &knative.Config{}, &awslambda.Config{}} {
			table, err := settings.Table(c)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(table) {
				if name, _, _ := strings.Cut(line, " "); name != "VARIABLE" {
					out[function] = append(out[function], name)
				}
			}
		}
	}
	return out
}

func documents(t *testing.T, files ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for {
			doc, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &u.Object); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			out = append(out, u)
		}
	}
	return out
}

// manifests are this folder's, with what they stand on.
func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rbac, err := filepath.Glob("../kubernetes/rbac/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(append(append(files, rbac...), "../valkey/valkey.yaml"), func(f string) bool { return f == "kustomization.yaml" })
	return documents(t, files...)
}

func values(u *unstructured.Unstructured, path ...string) []map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	list, _ := raw.([]any)
	var out []map[string]any
	for _, i := range list {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func text(m map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(m, path...)
	return s
}

func TestEveryVariableInAManifestIsASettingOfItsFunction(t *testing.T) {
	settings := known(t)
	seen := 0
	for _, u := range manifests(t) {
		if u.GroupVersionKind().Group != "serving.knative.dev" {
			continue
		}
		for _, container := range values(u, "spec", "template", "spec", "containers") {
			for _, e := range values(&unstructured.Unstructured{Object: container}, "env") {
				seen++
				if name := text(e, "name"); !slices.Contains(settings[u.GetName()], name) {
					t.Errorf("%s: %s is no setting of it", u.GetName(), name)
				}
			}
		}
	}
	if seen < 16 {
		t.Errorf("saw %d variables, want at least 16", seen)
	}
}

func TestEveryVariableInTheStacksIsASetting(t *testing.T) {
	var all []string
	for _, names := range known(t) {
		all = append(all, names...)
	}
	assignment := regexp.MustCompile(`(?m)^\s*(?:environment = |secrets = )?.*?\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\s*=`)
	seen := 0
	for _, stack := range []string{"lambda", "knative"} {
		files, err := filepath.Glob("../../terraform/stacks/" + stack + "/*.tf")
		if err != nil || len(files) < 5 {
			t.Fatalf("found %v: %v", files, err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range assignment.FindAllStringSubmatch(string(raw), -1) {
				seen++
				if !slices.Contains(all, m[1]) {
					t.Errorf("%s: %s is no setting of any function", f, m[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("saw %d variables, want at least 20", seen)
	}
}

func TestWhatAManifestNamesIsThere(t *testing.T) {
	there := map[string]bool{}
	for _, u := range manifests(t) {
		there[u.GetKind()+"/"+u.GetName()] = true
	}
	keys := map[string][]string{"tidemark-valkey": {"auditingest", "authorcapture", "refsweep", "watchcommit", "who"}, "tidemark-tokens": {"audit-tokens", "read-token"}}
	for _, u := range manifests(t) {
		who := u.GetKind() + " " + u.GetName()
		if sink := text(u.Object, "spec", "sink", "ref", "name"); sink != "" && !there["Service/"+sink] {
			t.Errorf("%s: its sink %s is not there", who, sink)
		}
		for _, path := range [][]string{{"spec", "serviceAccountName"}, {"spec", "template", "spec", "serviceAccountName"}} {
			if account := text(u.Object, path...); account != "" && !there["ServiceAccount/"+account] {
				t.Errorf("%s: its service account %s is not there", who, account)
			}
		}
		for _, v := range values(u, "spec", "template", "spec", "volumes") {
			secret := text(v, "secret", "secretName")
			for _, item := range values(&unstructured.Unstructured{Object: v}, "secret", "items") {
				if !slices.Contains(keys[secret], text(item, "key")) {
					t.Errorf("%s: the README does not say to make key %s of Secret %s", who, text(item, "key"), secret)
				}
			}
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for secret, names := range keys {
		for _, k := range append(names, secret) {
			if !strings.Contains(string(readme), k) {
				t.Errorf("README.md does not say how to make %s of Secret %s", k, secret)
			}
		}
	}
}

func TestWhatWakesMayBeWatched(t *testing.T) {
	allowed := map[string]bool{}
	var source *unstructured.Unstructured
	for _, u := range documents(t, "wake.yaml") {
		switch u.GetKind() {
		case "ClusterRole":
			for _, r := range values(u, "rules") {
				groups, _, _ := unstructured.NestedStringSlice(r, "apiGroups")
				resources, _, _ := unstructured.NestedStringSlice(r, "resources")
				verbs, _, _ := unstructured.NestedStringSlice(r, "verbs")
				for _, name := range resources {
					allowed[groups[0]+"/"+name] = slices.Equal(verbs, []string{"get", "list", "watch"})
				}
			}
		case "ApiServerSource":
			source = u
		}
	}
	resources := values(source, "spec", "resources")
	for _, r := range resources {
		group, _, found := strings.Cut(text(r, "apiVersion"), "/")
		if !found {
			group = ""
		}
		if name := group + "/" + strings.ToLower(text(r, "kind")) + "s"; !allowed[name] {
			t.Errorf("the role does not allow to get, list and watch %s", name)
		}
	}
	if len(resources) != len(allowed) {
		t.Errorf("the source names %d kinds, the role %d", len(resources), len(allowed))
	}
}

func TestADrainFitsIntoItsTimeout(t *testing.T) {
	for _, u := range documents(t, "watchcommit.yaml") {
		if u.GetKind() != "Service" {
			continue
		}
		for _, field := range []string{"timeoutSeconds", "responseStartTimeoutSeconds"} {
			raw, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", field)
			if seconds, _ := raw.(float64); seconds < 55+45+60 || seconds > 600 {
				t.Errorf("%s is %v, want window, grace and a minute, and at most 600", field, raw)
			}
		}
	}
}
