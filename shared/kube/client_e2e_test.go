//go:build e2e

package kube_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// TestClient does everything as watchcommit's own service account, so each call is also within its permissions.
func TestClient(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	c.Apply("namespace.yaml", "crds/gittargets.yaml", "crds/commitrequests.yaml", "rbac/watchcommit.yaml", "rbac/git-credentials.yaml",
		"samples/gittarget.yaml", "samples/gittarget-everything-set.yaml", "samples/git-credentials.yaml")
	client, err := kube.NewClient(c.ServiceAccount("tidemark", "watchcommit"), "watchcommit")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("targets", func(t *testing.T) { testTargets(t, client) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, c, client) })
	t.Run("discovery", func(t *testing.T) { testDiscovery(t, client) })
	t.Run("status and events", func(t *testing.T) { testReport(t, c, client) })
	t.Run("commit requests", func(t *testing.T) { testRequests(t, c, client) })
}

func testTargets(t *testing.T, client *kube.Client) {
	targets, invalid, err := client.Targets(context.Background())
	if err != nil || len(targets) != 2 || len(invalid) != 0 {
		t.Fatalf("got %d targets, %v invalid, %v", len(targets), invalid, err)
	}
	if targets[0].Name != "prod" || targets[0].UID == "" || targets[0].Spec.AuditRoute != "default" {
		t.Errorf("got %+v", targets[0])
	}
	uid, err := client.ClusterUID(context.Background())
	if err != nil || len(uid) != 36 {
		t.Errorf("cluster UID %q, %v", uid, err)
	}
}

func testSecrets(t *testing.T, c *kubetest.Cluster, client *kube.Client) {
	ctx := context.Background()
	data, err := client.SecretData(ctx, kube.SecretReference{Namespace: "tidemark", Name: "cfg-git"})
	if err != nil || string(data["username"]) != "tidemark" || string(data["password"]) != "REPLACE-ME" {
		t.Errorf("got %d values, %v", len(data), err)
	}
	for name, want := range map[string]string{"other": "grant get on it by name"} {
		_, err := client.SecretData(ctx, kube.SecretReference{Namespace: "tidemark", Name: name})
		if !errors.Is(err, kube.ErrSecretNotReadable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	admin, err := kube.NewClient(c.Config(kubetest.Admin), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.SecretData(ctx, kube.SecretReference{Namespace: "tidemark", Name: "none"}); !errors.Is(err, kube.ErrSecretNotReadable) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a missing Secret: %v", err)
	}
}

func testDiscovery(t *testing.T, client *kube.Client) {
	wanted := []schema.GroupResource{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "example.com", Resource: "boats"}}
	for range 2 {
		served, missing, err := client.Resolve(context.Background(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if got := served[wanted[0]]; got.Version != "v1" || got.Kind != "ConfigMap" || !got.Namespaced {
			t.Errorf("configmaps: %+v", got)
		}
		if got := served[wanted[2]]; got.Version != "v1" || got.Namespaced {
			t.Errorf("clusterroles: %+v", got)
		}
		if missing[wanted[3]] == nil || len(served) != 3 {
			t.Errorf("served %v, missing %v", served, missing)
		}
	}
}

func testReport(t *testing.T, c *kubetest.Cluster, client *kube.Client) {
	ctx := context.Background()
	stamp := metav1.NewTime(time.Now().Truncate(time.Second))
	report := kube.Report{
		Problem:     &kube.Problem{Reason: kube.ReasonBranchProtected, Message: "push to main: the server says: pushes need a review"},
		Attribution: kube.ReasonNoFacts,
		LastCommit:  &kube.LastCommit{SHA: "4be1c2e", Time: stamp, Changes: 2},
		Shards:      []kube.ShardStatus{{Group: "apps", Resource: "deployments", Cursor: "77", CursorTime: &stamp, Waiting: 3, Lag: &metav1.Duration{Duration: 4 * time.Second}}},
	}
	target := read(t, client, "prod")
	for range 2 { // twice, as two copies would
		if err := client.ReportTarget(ctx, &target, report); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, client, "prod")
	ready := meta.FindStatusCondition(got.Status.Conditions, kube.ConditionReady)
	if ready == nil || ready.Reason != kube.ReasonBranchProtected || got.Status.LastCommit == nil || got.Status.LastCommit.SHA != "4be1c2e" ||
		len(got.Status.Shards) != 1 || got.Status.Shards[0].Cursor != "77" || got.Status.Shards[0].Lag.Duration != 4*time.Second {
		t.Errorf("got %+v", got.Status)
	}
	wantEvents(t, c, "Warning BranchProtected: push to main: the server says: pushes need a review",
		"Warning NoFactsEver: no audit fact has ever arrived on route default, so no change has an author: check the API server's audit webhook and its token")

	if err := client.ReportTarget(ctx, &got, kube.Report{Attribution: kube.ReasonFactsArrive, Shards: report.Shards}); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, c, "Normal FactsArrive: facts arrive on audit route default", "Normal Mirroring: mirrors 2 of its resources to branch main",
		"Warning BranchProtected: push to main: the server says: pushes need a review",
		"Warning NoFactsEver: no audit fact has ever arrived on route default, so no change has an author: check the API server's audit webhook and its token")

	well := read(t, client, "prod")
	if well.Status.LastCommit == nil || !meta.IsStatusConditionTrue(well.Status.Conditions, kube.ConditionReady) {
		t.Errorf("got %+v", well.Status)
	}
	version := well.ResourceVersion
	if err := client.ReportTarget(ctx, &well, kube.Report{Attribution: kube.ReasonFactsArrive, Shards: report.Shards}); err != nil {
		t.Fatal(err)
	}
	if again := read(t, client, "prod"); again.ResourceVersion != version {
		t.Error("a report that says nothing new was written")
	}
	// Another target under the same name is not ours to describe.
	well.UID = "6f1c6f1c-0000-0000-0000-000000000000"
	if err := client.ReportTarget(ctx, &well, report); err != nil {
		t.Errorf("a target that was replaced: %v", err)
	}
	if again := read(t, client, "prod"); again.ResourceVersion != version {
		t.Error("the status of another object was written")
	}
	gone := well
	gone.Name = "gone"
	if err := client.ReportTarget(ctx, &gone, report); err != nil {
		t.Errorf("a target that is gone: %v", err)
	}
}

func read(t *testing.T, client *kube.Client, name string) kube.GitTarget {
	t.Helper()
	targets, _, err := client.Targets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		if target.Name == name {
			return target
		}
	}
	t.Fatalf("no target %s", name)
	return kube.GitTarget{}
}

// wantEvents compares what is told about target prod, in alphabetical order.
func wantEvents(t *testing.T, c *kubetest.Cluster, want ...string) {
	t.Helper()
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	list, err := c.Client(kubetest.Admin).Resource(events).Namespace("default").List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.name=prod,involvedObject.kind=GitTarget"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Items {
		kind, _ := e.Object["type"].(string)
		reason, _ := e.Object["reason"].(string)
		message, _ := e.Object["message"].(string)
		got = append(got, kind+" "+reason+": "+message)
	}
	if strings.Join(sorted(got), "\n") != strings.Join(sorted(want), "\n") {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(sorted(got), "\n"), strings.Join(sorted(want), "\n"))
	}
}

func testRequests(t *testing.T, c *kubetest.Cluster, client *kube.Client) {
	ctx := context.Background()
	c.ApplyText("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}")
	for name, ttl := range map[string]string{"a": "", "b": ", ttlSecondsAfterFinished: 0"} {
		c.ApplyText("apiVersion: tidemark.dev/v1alpha1\nkind: CommitRequest\nmetadata: {namespace: shop, name: " + name + "}\nspec: {targetRef: {name: prod}, message: why" + ttl + "}")
	}
	pending, _, err := client.PendingCommitRequests(ctx)
	if err != nil || len(pending) != 2 {
		t.Fatalf("got %d requests, %v", len(pending), err)
	}
	if err := client.ReportCommitRequest(ctx, &pending[0], kube.CommitOutcome{Reason: kube.ReasonWaiting, Message: "3 changes wait for their authors", Author: "alice"}); err != nil {
		t.Fatal(err)
	}
	if pending, _, err = client.PendingCommitRequests(ctx); err != nil || len(pending) != 2 {
		t.Fatalf("a request that waits is done: %d, %v", len(pending), err)
	}
	for i, outcome := range []kube.CommitOutcome{
		{Reason: kube.ReasonPushed, Message: "3 changes", SHA: "4be1c2e", Author: "alice"},
		{Reason: kube.ReasonNothingPending, Message: "nothing of yours was waiting", SHA: "90aa117", Author: "bob"},
	} {
		if err := client.ReportCommitRequest(ctx, &pending[i], outcome); err != nil {
			t.Fatal(err)
		}
	}
	left, expired, err := client.PendingCommitRequests(ctx)
	if err != nil || len(left) != 0 || len(expired) != 1 || expired[0].Name != "b" {
		t.Fatalf("%d requests are left and %v have expired, %v; want b", len(left), expired, err)
	}
	another := expired[0]
	another.UID = "another"
	for range 2 { // the second time it is gone
		for _, r := range []kube.CommitRequest{another, expired[0]} {
			if err := client.DeleteCommitRequest(ctx, &r); err != nil {
				t.Error(err)
			}
			_, err := c.Client(kubetest.Admin).Resource(kube.CommitRequests).Namespace("shop").Get(ctx, "b", metav1.GetOptions{})
			if r.UID == "another" && another.Labels == nil && err != nil {
				t.Errorf("another request under its name was deleted: %v", err)
			}
			if r.UID != "another" && !apierrors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		}
		another.Labels = map[string]string{"gone": "true"}
	}
	got, err := c.Client(kubetest.Admin).Resource(kube.CommitRequests).Namespace("shop").Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := got.Object["status"].(map[string]any)
	if status["sha"] != "4be1c2e" || status["author"] != "alice" {
		t.Errorf("status %v", status)
	}
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}
