//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
	"github.com/tidemark-dev/tidemark/shared/manifest"
)

var (
	gitTargets     = kube.GitTargets
	commitRequests = kube.CommitRequests
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// did is one change that somebody made: what the API server answered is the truth that history is held against.
type did struct {
	verb   history.Verb
	object string // resource namespace/name
	rv     string // empty for a removal, whose version no answer has
	who    string
}

// truth collects what people did, in order for each object as long as one person works on an object at a time.
type truth struct {
	mu   sync.Mutex
	done []did
}

func (tr *truth) add(d did) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.done = append(tr.done, d)
}

// person changes things and has each change noted. It fails the test when the API server refuses.
type person struct {
	t      testing.TB
	name   string
	client dynamic.Interface
	truth  *truth
}

func (p *person) on(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return p.client.Resource(gvr)
	}
	return p.client.Resource(gvr).Namespace(namespace)
}

func object(gvr schema.GroupVersionResource, namespace, name string) string {
	return gvr.GroupResource().String() + " " + namespace + "/" + name
}

func (p *person) note(verb history.Verb, gvr schema.GroupVersionResource, u *unstructured.Unstructured) {
	p.truth.add(did{verb: verb, object: object(gvr, u.GetNamespace(), u.GetName()), rv: u.GetResourceVersion(), who: p.name})
}

func (p *person) create(gvr schema.GroupVersionResource, u *unstructured.Unstructured) *unstructured.Unstructured {
	p.t.Helper()
	out, err := p.on(gvr, u.GetNamespace()).Create(context.Background(), u, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatalf("%s creates %s: %v", p.name, u.GetName(), err)
	}
	p.note(history.Create, gvr, out)
	return out
}

// update is a PUT of the object as it is, changed.
func (p *person) update(gvr schema.GroupVersionResource, namespace, name string, change func(*unstructured.Unstructured)) {
	p.t.Helper()
	u, err := p.on(gvr, namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatalf("%s reads %s: %v", p.name, name, err)
	}
	change(u)
	out, err := p.on(gvr, namespace).Update(context.Background(), u, metav1.UpdateOptions{})
	if err != nil {
		p.t.Fatalf("%s updates %s: %v", p.name, name, err)
	}
	p.note(history.Update, gvr, out)
}

// patch is a merge patch that changes something.
func (p *person) patch(gvr schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	p.t.Helper()
	out, err := p.on(gvr, namespace).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		p.t.Fatalf("%s patches %s: %v", p.name, name, err)
	}
	p.truth.add(did{verb: history.Update, object: object(gvr, out.GetNamespace(), out.GetName()), rv: out.GetResourceVersion(), who: p.name})
}

// apply is a server-side apply of an object that is there; whether it changes something shows in the answer.
func (p *person) apply(gvr schema.GroupVersionResource, u *unstructured.Unstructured) {
	p.t.Helper()
	before, err := p.on(gvr, u.GetNamespace()).Get(context.Background(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		p.t.Fatalf("%s reads %s: %v", p.name, u.GetName(), err)
	}
	out, err := p.on(gvr, u.GetNamespace()).Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: p.name, Force: true})
	if err != nil {
		p.t.Fatalf("%s applies %s: %v", p.name, u.GetName(), err)
	}
	if out.GetResourceVersion() != before.GetResourceVersion() && text(p.t, before) != text(p.t, out) {
		p.note(history.Update, gvr, out)
	}
}

func (p *person) remove(gvr schema.GroupVersionResource, namespace, name string) {
	p.t.Helper()
	if err := p.on(gvr, namespace).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatalf("%s deletes %s: %v", p.name, name, err)
	}
	p.truth.add(did{verb: history.Delete, object: object(gvr, namespace, name), who: p.name})
}

// text is the object as git would have it.
func text(t testing.TB, u *unstructured.Unstructured) string {
	t.Helper()
	raw, err := manifest.Render(u.DeepCopy().Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// commit is one commit of the mirror's history.
type commit struct {
	sha, author, email, committer, subject string
	message                                history.Message
}

// history reads the branch, oldest first.
func (w *world) history() []commit {
	w.t.Helper()
	if w.repo.Tip("main") == "" {
		return nil
	}
	var out []commit
	raw := w.repo.Git("log", "--reverse", "--first-parent", "--format=%H%x1f%an%x1f%ae%x1f%cn%x1f%s%x1f%B%x1e", "refs/heads/main")
	for one := range strings.SplitSeq(raw, "\x1e") {
		parts := strings.SplitN(strings.TrimLeft(one, "\n"), "\x1f", 6)
		if len(parts) != 6 {
			continue
		}
		c := commit{sha: parts[0], author: parts[1], email: parts[2], committer: parts[3], subject: parts[4]}
		message, ok := history.ParseMessage(parts[5])
		if !ok {
			w.t.Errorf("commit %s has a message that does not read back:\n%s", c.sha, parts[5])
		}
		c.message = message
		out = append(out, c)
	}
	return out
}

// records are the changes in history by object, with the author's username. Those without one have a word in brackets:
// of a replay, unresolved, or of an actor whose changes the target ignores.
func (w *world) records() map[string][]did {
	out := map[string][]did{}
	for _, c := range w.history() {
		for _, r := range c.message.Changes {
			who := c.message.Actor
			switch {
			case r.By == history.ByReplay:
				who = "(replay)"
			case r.By == history.ByAbsent:
				who = "(unresolved)"
			case r.ByCommitter:
				who = "(ignored)"
			}
			name := schema.GroupResource{Group: r.Group, Resource: r.Resource}.String() + " " + r.Namespace + "/" + r.Name
			out[name] = append(out[name], did{verb: r.Verb, object: name, rv: r.ResourceVersion, who: who})
		}
	}
	return out
}

// wantHistory holds the changes in history against the truth: each once, in order for each object, under the right name.
// Objects that only a replay brought in are left out, unless somebody changed them.
func (w *world) wantHistory(tr *truth) {
	w.t.Helper()
	want, got := byObject(tr), w.records()
	wrong := 0
	for name, expected := range want {
		if a, b := lines(expected), lines(withoutRemovedVersions(got[name])); a != b {
			if wrong++; wrong <= 10 {
				w.t.Errorf("%s: history has\n%s\nwant\n%s", name, b, a)
			}
		}
	}
	for name, have := range got {
		if _, known := want[name]; !known && slices.ContainsFunc(have, func(d did) bool { return d.who != "(replay)" && d.who != "(ignored)" }) {
			w.t.Errorf("%s: history has\n%s\nwhich nobody did", name, lines(have))
		}
	}
	if wrong > 10 {
		w.t.Errorf("%d objects have a wrong history", wrong)
	}
}

func withoutRemovedVersions(in []did) []did {
	out := slices.Clone(in)
	for i := range out {
		if out[i].verb == history.Delete {
			out[i].rv = ""
		}
	}
	return out
}

func lines(ds []did) string {
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "  %s rv=%s by %s\n", d.verb, d.rv, d.who)
	}
	return b.String()
}

// wantTree holds the branch against the cluster, byte by byte: the objects of the resources and no other file.
func (w *world) wantTree(prefix string, of ...kubetest.Listing) {
	w.t.Helper()
	want := map[string]string{}
	for _, l := range of {
		for _, u := range w.cluster.List(l) {
			if u.GetDeletionTimestamp() == nil {
				want[manifest.Path(prefix, l.GVR.GroupResource(), u.GetNamespace(), u.GetName())] = text(w.t, &u)
			}
		}
	}
	wrong := 0
	got := w.repo.Files("main")
	for path := range got {
		if _, ok := want[path]; !ok && path != prefix+"/.tidemark" && strings.HasPrefix(path, prefix+"/") {
			wrong++
			w.t.Errorf("git has %s, the cluster does not", path)
		}
	}
	for path, content := range want {
		if _, ok := got[path]; !ok {
			wrong++
			w.t.Errorf("git has no %s", path)
		} else if have := w.repo.Read("main", path); have != content {
			wrong++
			w.t.Errorf("%s is\n%s\nin git, and in the cluster\n%s", path, have, content)
		}
		if wrong > 10 {
			w.t.Fatal("and more")
		}
	}
}

// eventually ticks until the condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			target, _ := w.target().MarshalJSON()
			requests := w.cluster.List(kubetest.Listing{GVR: commitRequests})
			w.t.Fatalf("waited in vain: %s\ntarget: %s\nrequests: %v", what, target, requests)
		}
		w.watch.tick()
	}
}
