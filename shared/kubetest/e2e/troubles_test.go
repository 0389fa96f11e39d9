//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// TestTroubles: whatever keeps a target from being mirrored, its status says what a person has to do, an Event tells it,
// and when it is done the target is mirrored and says so.
func TestTroubles(t *testing.T) {
	w := newWorld(t, kubetest.Options{Controllers: []string{kubetest.AggregatedRoles}}, `
  resources: [{resource: configmaps, namespaces: [shop]}]
  auditRoute: nobody-posts-here
  attributionGrace: 0s
`, "WATCH_WINDOW=0")
	alice := &person{t: t, name: "alice", client: w.cluster.Client(kubetest.Alice), truth: &truth{}}
	password := w.secrets[1]
	n := 0
	change := func() {
		n++
		name := "one"
		if n == 1 {
			alice.create(configMaps, configMap("shop", name, "0"))
		} else {
			alice.patch(configMaps, "shop", name, `{"data":{"v":"`+strings.Repeat("x", n)+`"}}`)
		}
	}
	well := "True Mirroring"
	steps := []struct {
		name   string
		do     func()
		kind   string
		want   string   // how the condition begins
		words  []string // and what its message tells
		undo   func()
		silent bool // no Event is wanted
	}{
		{name: "all is well", do: change, kind: "Ready", want: well, silent: true},
		{name: "no facts on this route", do: change, kind: "Attributed", want: "False NoFactsEver", words: []string{"route nobody-posts-here"},
			undo: func() { w.patchTarget(`{"spec":{"auditRoute":"default"}}`) }},
		{name: "a resource that is not served", do: func() {
			w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"]},{"group":"example.com","resource":"boats"}]}}`)
			change()
		}, kind: "Ready", want: "False ResourceNotServed", words: []string{"boats.example.com", "Everything else is mirrored"},
			undo: func() { w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"]}]}}`) }},
		{name: "a resource that we may not watch", do: func() {
			w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"]},{"resource":"pods"}]}}`)
		}, kind: "Ready", want: "False ResourceForbidden", words: []string{"pods"},
			undo: func() { w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"]}]}}`) }},
		{name: "a selector that only our own validation refuses", do: func() {
			w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"],"selector":{"matchLabels":{"a":"no value"}}}]}}`)
		}, kind: "Ready", want: "False InvalidSpec", words: []string{"spec.resources[0].selector"},
			undo: func() { w.patchTarget(`{"spec":{"resources":[{"resource":"configmaps","namespaces":["shop"]}]}}`) }},
		{name: "a branch that is protected", do: func() { w.repo.Hook("pre-receive", "echo 'pushes to main need a review' >&2; exit 1"); change() },
			kind: "Ready", want: "False BranchProtected", words: []string{"pushes to main need a review"}, undo: func() { w.repo.RemoveHook("pre-receive") }},
		{name: "a server that asks to be left alone", do: func() { w.git.Inject(gittest.Pushes, 100, gittest.Refuse(http.StatusTooManyRequests, "600")); change() },
			kind: "Ready", want: "False Throttled", words: []string{"429"}, silent: true, undo: w.git.ClearFaults},
		{name: "a password that is refused", do: func() { w.setPassword("another"); change() },
			kind: "Ready", want: "False CredentialsRefused", undo: func() { w.setPassword(password) }},
		{name: "a Secret that we may not read", do: func() { w.patchTarget(`{"spec":{"repository":{"secretRef":{"name":"other"}}}}`); change() },
			kind: "Ready", want: "False SecretNotReadable", words: []string{"tidemark/other"}, undo: func() { w.patchTarget(`{"spec":{"repository":{"secretRef":{"name":"cfg-git"}}}}`) }},
		{name: "a server that does not answer", do: func() { w.patchTarget(`{"spec":{"repository":{"url":"http://127.0.0.1:9/cfg.git"}}}`); change() },
			kind: "Ready", want: "False RepositoryUnreachable", words: []string{"127.0.0.1:9"}, undo: func() { w.patchTarget(`{"spec":{"repository":{"url":"` + w.repo.URL + `"}}}`) }},
		{name: "a path that is another target's", do: func() {
			w.repo.Commit("main", "take the path", map[string]string{"clusters/taken/.tidemark": "owner: 6f1c6f1c-somebody-else\n"})
			w.patchTarget(`{"spec":{"repository":{"path":"clusters/taken"}}}`)
			change()
		}, kind: "Ready", want: "False PathOwned", words: []string{"clusters/taken"}, undo: func() { w.patchTarget(`{"spec":{"repository":{"path":"clusters/prod"}}}`) }},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			w.tickAnyway()
			got := w.condition(step.kind)
			if !strings.HasPrefix(got, step.want) {
				t.Errorf("%s is %q, want %s", step.kind, got, step.want)
			}
			for _, words := range step.words {
				if !strings.Contains(got, words) {
					t.Errorf("%s says %q, want %q in it", step.kind, got, words)
				}
			}
			reason := strings.TrimSuffix(strings.Fields(step.want)[1], ":")
			if told := w.toldAbout(reason); told == step.silent {
				t.Errorf("an Event with reason %s: %v", reason, told)
			}
			if step.undo == nil {
				return
			}
			step.undo()
			change()
			w.tickAnyway()
			if got := w.condition("Ready"); !strings.HasPrefix(got, well) {
				t.Errorf("afterwards Ready is %q, want %s", got, well)
			}
			w.wantTree("clusters/prod", kubetest.Listing{GVR: configMaps, Namespace: "shop"})
		})
	}
	w.patchTarget(`{"spec":{"attributionGrace":"20s"}}`)
	change()
	w.eventually("facts arrive in time", func() bool { return strings.HasPrefix(w.condition("Attributed"), "True FactsArrive") })
	w.wantNoSecret()
}

// TestReadyIsToldWhileADrainListens: who makes or corrects a target sees what becomes of it when everything has been caught
// up with, not at the end of the window.
func TestReadyIsToldWhileADrainListens(t *testing.T) {
	w := newWorld(t, kubetest.Options{Controllers: []string{kubetest.AggregatedRoles}}, `
  resources: [{resource: configmaps, namespaces: [shop]}]
`, "WATCH_WINDOW=10m")
	listening := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(listening)
		_, _, _ = w.watch.post(ctx, "/", "") // it is cut off at the end
	}()
	w.cluster.Eventually("that the target says that it is mirrored", func(context.Context) error {
		if got := w.condition("Ready"); !strings.HasPrefix(got, "True Mirroring") {
			return fmt.Errorf("Ready is %q", got)
		}
		return nil
	})
	select {
	case <-listening:
		t.Error("the drain has ended")
	default:
	}
	stop()
	<-listening
}

// tickAnyway is a drain that may fail.
func (w *world) tickAnyway() {
	w.t.Helper()
	if _, _, err := w.watch.post(context.Background(), "/", ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) patchTarget(patch string) {
	w.t.Helper()
	if _, err := w.cluster.Client(kubetest.Admin).Resource(gitTargets).Patch(context.Background(), "prod", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) setPassword(password string) {
	w.t.Helper()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	patch := `{"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte(password)) + `"}}`
	if _, err := w.cluster.Client(kubetest.Admin).Resource(secrets).Namespace("tidemark").Patch(context.Background(), "cfg-git", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// toldAbout says whether an Event about the target has the reason.
func (w *world) toldAbout(reason string) bool {
	w.t.Helper()
	for _, e := range w.cluster.List(kubetest.Listing{GVR: schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}, Namespace: "default"}) {
		name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
		if got, _ := e.Object["reason"].(string); got == reason && name == "prod" {
			return true
		}
	}
	return false
}
