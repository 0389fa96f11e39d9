// Package verdict holds a history in git against what really happened in a recorded session: each change of a
// mirrored object is there once, in order, under the name of who caused it, and the files end as the cluster did.
package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/manifest"
)

// Change is a change that a history has to hold.
type Change struct {
	schema.GroupResource
	Namespace, Name string
	RV              string
	Verb            string // create, update, delete
	At              time.Duration
	Truth           replay.Truth
	Known           bool // whether the session has a truth about it
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s %s rv=%s", c.Verb, c.GroupResource, key(c.Namespace, c.Name), c.RV)
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Expectation is what a history of some resources of a session has to be.
type Expectation struct {
	Changes []Change          // in the order of the watches, resource by resource
	Files   map[string][]byte // by path, at the end
}

// Expect works out from the recorded watches what a target has to write: a change is what makes the object's file
// another one, and an object that is being deleted is gone already.
func Expect(session *replay.Session, path string, resources []schema.GroupResource) (*Expectation, error) {
	type id struct{ group, resource, namespace, name, rv, kind string }
	truths := map[id]replay.Truth{}
	for _, t := range session.Truth {
		truths[id{t.Group, t.Resource, t.Namespace, t.Name, t.RV, t.Type}] = t
	}
	x := &Expectation{Files: map[string][]byte{}}
	for _, w := range session.Watches {
		gr := w.GroupResource()
		if !slices.Contains(resources, gr) {
			continue
		}
		for _, ev := range w.Initial {
			if _, err := x.apply(path, gr, ev); err != nil {
				return nil, err
			}
		}
		for _, ev := range w.Live {
			if ev.Type == "BOOKMARK" {
				continue
			}
			verb, err := x.apply(path, gr, ev)
			if err != nil {
				return nil, err
			}
			if verb == "" {
				continue
			}
			o := ev.Object
			c := Change{GroupResource: gr, Namespace: o.GetNamespace(), Name: o.GetName(), RV: o.GetResourceVersion(), Verb: verb, At: ev.At}
			c.Truth, c.Known = truths[id{gr.Group, gr.Resource, c.Namespace, c.Name, c.RV, ev.Type}]
			x.Changes = append(x.Changes, c)
		}
	}
	sort.SliceStable(x.Changes, func(i, j int) bool { return x.Changes[i].At < x.Changes[j].At })
	return x, nil
}

// apply moves the files on by one event and says what that was: create, update, delete, or nothing.
func (x *Expectation) apply(path string, gr schema.GroupResource, ev replay.Event) (string, error) {
	file := manifest.Path(path, gr, ev.Object.GetNamespace(), ev.Object.GetName())
	before, there := x.Files[file]
	if ev.Type == "DELETED" || ev.Object.GetDeletionTimestamp() != nil {
		delete(x.Files, file)
		if !there {
			return "", nil
		}
		return "delete", nil
	}
	content, err := render(ev.Object)
	if err != nil || content == nil {
		return "", err
	}
	x.Files[file] = content
	switch {
	case !there:
		return "create", nil
	case bytes.Equal(before, content):
		return "", nil
	default:
		return "update", nil
	}
}

func render(obj *unstructured.Unstructured) ([]byte, error) {
	content, err := manifest.Render(obj.Object)
	if errors.Is(err, manifest.ErrSecret) {
		return nil, nil
	}
	return content, err
}
