//go:build e2e

package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/kube"
)

// kustomized are the files of infra/kubernetes/kustomization.yaml, in its order.
func kustomized(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(Manifest("kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			files = append(files, name)
		}
	}
	if len(files) < 5 {
		t.Fatalf("found only %v in the kustomization", files)
	}
	return files
}

func TestManifests(t *testing.T) {
	c := Start(t, Options{Controllers: []string{AggregatedRoles}})
	c.Apply(kustomized(t)...)
	c.ApplyText("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}")
	t.Run("samples", func(t *testing.T) { testSamples(t, c) })
	t.Run("columns", func(t *testing.T) { testColumns(t, c) })
	t.Run("rules of GitTarget", func(t *testing.T) { testGitTargetRules(t, c) })
	t.Run("rules of CommitRequest", func(t *testing.T) { testCommitRequestRules(t, c) })
	t.Run("permissions", func(t *testing.T) { testPermissions(t, c) })
	t.Run("webhook configuration", func(t *testing.T) { c.Apply("admission/authorcapture.yaml") })
}

// testSamples applies each sample and compares what the API server's defaults make of it with what ours do.
func testSamples(t *testing.T, c *Cluster) {
	files, err := filepath.Glob(Manifest("samples/*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, u := range c.Read(file) {
				ours := u.DeepCopy()
				stored, err := c.ApplyObject(c.Client(Admin), u)
				if err != nil {
					t.Fatal(err)
				}
				if u.GetKind() != "GitTarget" {
					continue
				}
				var from, want kube.GitTarget
				decode(t, stored, &from)
				decode(t, ours, &want)
				want.SetDefaults()
				if err := want.Validate(); err != nil {
					t.Errorf("our validation refuses the sample: %v", err)
				}
				if got, want := text(t, from.Spec), text(t, want.Spec); got != want {
					t.Errorf("the API server's defaults differ from ours:\n got %s\nwant %s", got, want)
				}
			}
		})
	}
}

func decode(t *testing.T, u *unstructured.Unstructured, into any) {
	t.Helper()
	raw, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// testColumns writes a status as watchcommit would and reads the table that `kubectl get` prints.
func testColumns(t *testing.T, c *Cluster) {
	status := func(u *unstructured.Unstructured, json string) {
		t.Helper()
		_, err := c.Client(Admin).Resource(ResourceOf(u)).Namespace(u.GetNamespace()).
			Patch(context.Background(), u.GetName(), types.MergePatchType, []byte(json), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	target := c.Read(Manifest("samples/gittarget.yaml"))[0]
	status(target, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Mirroring","message":"mirrors 2","lastTransitionTime":"2026-01-02T03:04:05Z"}],
		"lastCommit":{"sha":"4be1c2e4be1c2e4be1c2e4be1c2e4be1c2e4be1c","time":"2026-01-02T03:04:05Z","changes":3}}}`)
	got := table(t, c, "/apis/tidemark.dev/v1alpha1/gittargets/prod")
	wantColumns(t, got, "Name Branch Ready Reason Last Commit Age", map[string]string{
		"Name": "prod", "Branch": "main", "Ready": "True", "Reason": "Mirroring", "Path": "clusters/prod",
		"Repository": "https://git.example.com/platform/cfg.git", "SHA": "4be1c2e4be1c2e4be1c2e4be1c2e4be1c2e4be1c", "Prune": "OnEvent", "Message": "mirrors 2",
	})

	request := c.Read(Manifest("samples/commitrequest.yaml"))[0]
	status(request, `{"status":{"sha":"90aa117","author":"alice","conditions":[{"type":"Committed","status":"False","reason":"NothingPending","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	got = table(t, c, "/apis/tidemark.dev/v1alpha1/namespaces/shop/commitrequests/raise-limits")
	wantColumns(t, got, "Name Target Committed Reason Author SHA Age", map[string]string{
		"Name": "raise-limits", "Target": "prod", "Committed": "False", "Reason": "NothingPending", "Author": "alice", "SHA": "90aa117",
	})
}

func table(t *testing.T, c *Cluster, path string) metav1.Table {
	t.Helper()
	client, err := rest.HTTPClientFor(c.Config(Admin))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, c.host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v", path, resp.Status, err)
	}
	return out
}

func wantColumns(t *testing.T, got metav1.Table, columns string, cells map[string]string) {
	t.Helper()
	if len(got.Rows) != 1 {
		t.Fatalf("got %d rows, want 1", len(got.Rows))
	}
	var shown []string
	for i, column := range got.ColumnDefinitions {
		if column.Priority == 0 {
			shown = append(shown, column.Name)
		}
		if want, ok := cells[column.Name]; ok && fmt.Sprint(got.Rows[0].Cells[i]) != want {
			t.Errorf("column %s is %v, want %s", column.Name, got.Rows[0].Cells[i], want)
		}
		delete(cells, column.Name)
	}
	if strings.Join(shown, " ") != columns {
		t.Errorf("columns %v, want %s", shown, columns)
	}
	if len(cells) > 0 {
		t.Errorf("columns are missing: %v", cells)
	}
}

// testGitTargetRules trips each rule of the schema. What the schema refuses our own validation refuses too, since it is
// the only one for targets from a file; both say it in the same words where the rule is one of ours.
func testGitTargetRules(t *testing.T, c *Cluster) {
	const url = "https://git.example.com/cfg.git"
	long := strings.Repeat("a", 2000)
	tests := []struct{ name, spec, want string }{
		{"valid", "repository: {url: " + url + "}\nresources: [{resource: configmaps}]", ""},
		{"valid in full", "repository: {url: 'ssh://git@h:22/a/b', branch: a/b, path: a/b.c, secretRef: {namespace: a, name: b}}\nresources: [{group: apps, resource: deployments, namespaces: [a, b]}, {resource: pods, selector: {matchExpressions: [{key: a, operator: Exists}]}}]\nauditRoute: a.b_c-1\nattributionGrace: 1m\nignoreActors: ['system:serviceaccount:a:b']\ncommit: {hold: 1h, message: '{author}: {summary}'}", ""},
		{"no repository", "resources: [{resource: configmaps}]", "spec.repository"},
		{"no URL", "repository: {branch: main}\nresources: [{resource: configmaps}]", "spec.repository.url"},
		{"a local path", "repository: {url: /srv/cfg.git}\nresources: [{resource: configmaps}]", "must be https://HOST/PATH"},
		{"a user in the URL", "repository: {url: 'https://bob@h/a'}\nresources: [{resource: configmaps}]", "must not hold a username or password"},
		{"SSH without a Secret", "repository: {url: 'ssh://git@h/a'}\nresources: [{resource: configmaps}]", "SSH needs a Secret"},
		{"SSH's short form without a Secret", "repository: {url: 'git@h:a'}\nresources: [{resource: configmaps}]", "SSH needs a Secret"},
		{"a password in the URL", "repository: {url: 'ssh://git:hunter2@h/a'}\nresources: [{resource: configmaps}]", "must not hold a"},
		{"a query", "repository: {url: 'https://h/a?b'}\nresources: [{resource: configmaps}]", "query or"},
		{"no path in the URL", "repository: {url: 'https://h/'}\nresources: [{resource: configmaps}]", "must have a"},
		{"a URL too long", "repository: {url: 'https://h/" + long + "'}\nresources: [{resource: configmaps}]", "spec.repository.url"},
		{"a full ref", "repository: {url: " + url + ", branch: refs/heads/main}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"a branch that git refuses: dots", "repository: {url: " + url + ", branch: a..b}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"a branch that git refuses: lock", "repository: {url: " + url + ", branch: a.lock}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"a branch that git refuses: space", "repository: {url: " + url + ", branch: 'a b'}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"a branch that git refuses: bracket", "repository: {url: " + url + ", branch: 'a[b'}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"a branch that git refuses: backslash", "repository: {url: " + url + ", branch: 'a\\b'}\nresources: [{resource: configmaps}]", "must be the short name of a branch"},
		{"an absolute path", "repository: {url: " + url + ", path: /a}\nresources: [{resource: configmaps}]", "must be relative"},
		{"a path that climbs", "repository: {url: " + url + ", path: a/../b}\nresources: [{resource: configmaps}]", "must be relative"},
		{"a path with a slash at its end", "repository: {url: " + url + ", path: a/}\nresources: [{resource: configmaps}]", "must be relative"},
		{"a path into .git", "repository: {url: " + url + ", path: a/.Git/b}\nresources: [{resource: configmaps}]", "must not enter .git"},
		{"a path with a colon", "repository: {url: " + url + ", path: 'a:b'}\nresources: [{resource: configmaps}]", "must not hold control characters"},
		{"a path with a backslash", "repository: {url: " + url + ", path: 'a\\b'}\nresources: [{resource: configmaps}]", "must not hold control characters"},
		{"a segment that ends with a dot", "repository: {url: " + url + ", path: a./b}\nresources: [{resource: configmaps}]", "ends with a dot"},
		{"a Secret without a namespace", "repository: {url: " + url + ", secretRef: {name: a}}\nresources: [{resource: configmaps}]", "secretRef.namespace"},
		{"a signing key without a name", "repository: {url: " + url + "}\ncommit: {signingKeyRef: {namespace: a}}\nresources: [{resource: configmaps}]", "spec.commit.signingKeyRef.name"},
		{"a route with a slash", "repository: {url: " + url + "}\nauditRoute: a/b\nresources: [{resource: configmaps}]", "spec.auditRoute"},
		{"a grace that is no duration", "repository: {url: " + url + "}\nattributionGrace: soon\nresources: [{resource: configmaps}]", "must be a duration such as 45s"},
		{"a grace beyond the watch cache", "repository: {url: " + url + "}\nattributionGrace: 90s\nresources: [{resource: configmaps}]", "the API server may forget changes after 75s"},
		{"no resource", "repository: {url: " + url + "}\nresources: []", "spec.resources"},
		{"a resource twice", "repository: {url: " + url + "}\nresources: [{resource: configmaps}, {resource: configmaps, namespaces: [a]}]", "spec.resources[1]"},
		{"our own group", "repository: {url: " + url + "}\nresources: [{group: tidemark.dev, resource: gittargets}]", "must not be Tidemark's own group"},
		{"a group that is none", "repository: {url: " + url + "}\nresources: [{group: Apps, resource: deployments}]", "spec.resources[0].group"},
		{"a kind", "repository: {url: " + url + "}\nresources: [{resource: ConfigMap}]", "must be the plural lower-case name of a resource"},
		{"a subresource", "repository: {url: " + url + "}\nresources: [{group: apps, resource: deployments/scale}]", "subresources have no watch"},
		{"a namespace twice", "repository: {url: " + url + "}\nresources: [{resource: configmaps, namespaces: [a, a]}]", "namespaces[1]"},
		{"a namespace that is none", "repository: {url: " + url + "}\nresources: [{resource: configmaps, namespaces: [A]}]", "namespaces[0]"},
		{"In without values", "repository: {url: " + url + "}\nresources: [{resource: configmaps, selector: {matchExpressions: [{key: a, operator: In}]}}]", "selector"},
		{"an unknown operator", "repository: {url: " + url + "}\nresources: [{resource: configmaps, selector: {matchExpressions: [{key: a, operator: Near}]}}]", "selector"},
		{"an empty actor", "repository: {url: " + url + "}\nignoreActors: [' ']\nresources: [{resource: configmaps}]", "must be a username"},
		{"an unknown grouping", "repository: {url: " + url + "}\ncommit: {grouping: PerDay}\nresources: [{resource: configmaps}]", "spec.commit.grouping"},
		{"a hold of a day", "repository: {url: " + url + "}\ncommit: {hold: 24h}\nresources: [{resource: configmaps}]", "spec.commit.hold"},
		{"a committer that breaks the commit", "repository: {url: " + url + "}\ncommit: {committer: {name: 'a<b'}}\nresources: [{resource: configmaps}]", "line breaks"},
		{"an e-mail that is none", "repository: {url: " + url + "}\ncommit: {committer: {email: bot}}\nresources: [{resource: configmaps}]", "must be an e-mail address"},
		{"a message with a field that is none", "repository: {url: " + url + "}\ncommit: {message: 'by {user}'}\nresources: [{resource: configmaps}]", "may hold {summary}"},
		{"a message of two lines", "repository: {url: " + url + "}\ncommit: {message: \"a\\nb\"}\nresources: [{resource: configmaps}]", "must be one line"},
		{"plaintext Secrets", "repository: {url: " + url + "}\nsecrets: Plain\nresources: [{resource: configmaps}]", "spec.secrets"},
		{"an unknown prune", "repository: {url: " + url + "}\nprune: Sometimes\nresources: [{resource: configmaps}]", "spec.prune"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			doc := "apiVersion: tidemark.dev/v1alpha1\nkind: GitTarget\nmetadata: {name: tried}\nspec:\n  " + strings.ReplaceAll(tc.spec, "\n", "\n  ")
			u := c.Objects(doc)[0]
			_, schema := c.Client(Admin).Resource(kube.GitTargets).Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			_, invalid, ours := kube.ParseTargets(strings.NewReader(doc), "uid")
			for _, target := range invalid {
				ours = errors.Join(ours, target.Err)
			}
			valid := strings.HasPrefix(tc.name, "valid")
			for who, err := range map[string]error{"the schema": schema, "our validation": ours} {
				switch {
				case valid && err != nil:
					t.Errorf("%s refuses: %v", who, err)
				case !valid && err == nil:
					t.Errorf("%s accepts it", who)
				case !valid && who == "the schema" && !strings.Contains(err.Error(), tc.want):
					t.Errorf("%s says %q, want %q in it", who, err, tc.want)
				}
			}
		})
	}
}

func testCommitRequestRules(t *testing.T, c *Cluster) {
	ctx := context.Background()
	requests := c.Client(Admin).Resource(kube.CommitRequests).Namespace("shop")
	build := func(target, message string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest", "metadata": map[string]any{"name": "fixed"},
			"spec": map[string]any{"targetRef": map[string]any{"name": target}, "message": message},
		}}
	}
	for _, tc := range []struct{ name, target, message, want string }{
		{"no target", "", "m", "spec.targetRef.name"},
		{"nothing said", "prod", " \n ", "must say something"},
		{"too much said", "prod", strings.Repeat("m", 5000), "spec.message"},
	} {
		_, err := requests.Create(ctx, build(tc.target, tc.message), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.want)
		}
	}
	overdue := build("prod", "m")
	if err := unstructured.SetNestedField(overdue.Object, int64(-1), "spec", "ttlSecondsAfterFinished"); err != nil {
		t.Fatal(err)
	}
	if _, err := requests.Create(ctx, overdue, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.ttlSecondsAfterFinished") {
		t.Errorf("a negative time to live: got %v", err)
	}
	made, err := requests.Create(ctx, build("prod", "why"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for field, patch := range map[string]string{
		"message": `{"spec":{"message":"another"}}`,
		"target":  `{"spec":{"targetRef":{"name":"another"}}}`,
	} {
		_, err := requests.Patch(ctx, "fixed", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "cannot be changed: a request belongs to whoever created it") {
			t.Errorf("changing the %s: got %v", field, err)
		}
	}
	if _, err := requests.Patch(ctx, "fixed", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"status":{"author":"mallory"}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a label cannot be set: %v", err)
	}
	got, err := requests.Get(ctx, "fixed", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, has := got.Object["status"]; has || got.GetUID() != made.GetUID() {
		t.Errorf("the status can be written without the subresource: %v", got.Object)
	}
	selected, err := requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.targetRef.name=prod"})
	if err != nil || !slices.ContainsFunc(selected.Items, func(u unstructured.Unstructured) bool { return u.GetName() == "fixed" }) {
		t.Errorf("the field selector finds %v, %v", selected, err)
	}
}
