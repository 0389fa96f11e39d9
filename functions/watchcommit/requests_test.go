package watchcommit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/kube"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// Authors are few, and requests are not: what is remembered of one is dropped when its status has it.
func TestACommitIsRememberedForARequestUntilItsStatusHasIt(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	w.serve(nil)
	answer := func() *request {
		t.Helper()
		f := w.function()
		d := &drain{Function: f, branch: &branch{id: "b"}, log: f.log}
		r := &request{target: &target{}, author: "alice", tagged: true}
		r.object.Namespace, r.object.Name, r.object.UID = "shop", "asked", "asked"
		d.requests = []*request{r}
		if err := w.store.RememberCommits(t.Context(), "b", map[string]string{r.key(): "1", "alice": "2"}); err != nil {
			t.Fatal(err)
		}
		if err := d.answerRequests(t.Context()); err != nil || len(d.requests) != 0 {
			t.Errorf("%d requests are open, %v", len(d.requests), err)
		}
		if r.said.Reason != kube.ReasonPushed || r.said.SHA != "1" {
			t.Errorf("the answer is %+v, want its own commit", r.said)
		}
		return r
	}
	remembered := func(name, want string) {
		t.Helper()
		if got, err := w.store.LastCommit(t.Context(), "b", name); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	r := answer()
	remembered(r.key(), "")
	remembered("alice", "2")
	w.apiURL = "http://127.0.0.1:1" // nobody is there
	answer()
	remembered(r.key(), "1")
}

func TestATickDeletesSomeRequestsAndGoesOn(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	cluster := w.serve(nil)
	for i := range maxDeleted + 20 {
		name := fmt.Sprintf("done-%d", i)
		cluster.requests = append(cluster.requests, map[string]any{
			"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest",
			"metadata": map[string]any{"namespace": "shop", "name": name, "uid": name},
			"spec":     map[string]any{"targetRef": map[string]any{"name": "prod"}, "message": "m", "ttlSecondsAfterFinished": 1},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Committed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}}},
		})
	}
	w.tick()
	if cluster.deleted != maxDeleted {
		t.Errorf("a tick deletes %d of %d requests, want %d", cluster.deleted, len(cluster.requests), maxDeleted)
	}
}

func TestARequestThatComesWithItsTargetIsNotAStray(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	cluster := w.serve(nil)
	cluster.first = func() {
		cluster.targets = []string{smallTarget("")}
		cluster.requests = []any{map[string]any{
			"apiVersion": "tidemark.dev/v1alpha1", "kind": "CommitRequest",
			"metadata": map[string]any{"namespace": "shop", "name": "asked", "uid": "asked", "creationTimestamp": time.Now().UTC().Format(time.RFC3339)},
			"spec":     map[string]any{"targetRef": map[string]any{"name": "prod"}, "message": "m"},
		}}
	}
	w.tick()
	if cluster.first != nil || strings.Contains(cluster.answers, kube.ReasonTargetNotFound) {
		t.Errorf("it was told: %s", cluster.answers)
	}
}
