package replay

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// store is what the API server knows of the past of one resource.
type store struct {
	*Watch
	rvs []uint64 // of Live, one for each event
}

// timeline is when the cluster's versions came to be. Watches of different resources delivered at their own pace,
// but a version exists as soon as a later one does.
type timeline struct {
	rvs []uint64
	at  []time.Duration // ascending with rvs
}

func newTimeline(watches []*Watch) timeline {
	seen := map[uint64]time.Duration{}
	for _, w := range watches {
		base := version(w.BaseRV)
		if at, known := seen[base]; !known || w.ServedFrom < at {
			seen[base] = w.ServedFrom
		}
		for _, ev := range w.Live {
			rv := version(ev.Object.GetResourceVersion())
			if at, known := seen[rv]; !known || ev.At < at {
				seen[rv] = ev.At
			}
		}
	}
	t := timeline{rvs: slices.Sorted(maps.Keys(seen))}
	t.at = make([]time.Duration, len(t.rvs))
	for i := len(t.rvs) - 1; i >= 0; i-- {
		t.at[i] = seen[t.rvs[i]]
		if i+1 < len(t.rvs) {
			t.at[i] = min(t.at[i], t.at[i+1])
		}
	}
	return t
}

// current is the newest version that exists at a time.
func (t timeline) current(now time.Duration) uint64 {
	n := sort.Search(len(t.at), func(i int) bool { return t.at[i] > now })
	if n == 0 {
		return 0
	}
	return t.rvs[n-1]
}

func newStore(w *Watch) *store {
	s := &store{Watch: w}
	for _, ev := range w.Live {
		s.rvs = append(s.rvs, version(ev.Object.GetResourceVersion()))
	}
	return s
}

func (s *store) base() uint64 { return version(s.BaseRV) }

// filter is what a request narrows a collection to.
type filter struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (f filter) matches(obj *unstructured.Unstructured) bool {
	if f.namespace != "" && obj.GetNamespace() != f.namespace {
		return false
	}
	if !f.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return f.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

func key(obj *unstructured.Unstructured) string { return obj.GetNamespace() + "/" + obj.GetName() }

// state is the collection as it was at a version, by key.
func (s *store) state(at uint64) map[string]*unstructured.Unstructured {
	objects := map[string]*unstructured.Unstructured{}
	for _, ev := range s.Initial {
		objects[key(ev.Object)] = ev.Object
	}
	for i, ev := range s.Live {
		switch {
		case ev.Type == bookmark || s.rvs[i] > at:
		case ev.Type == "DELETED":
			delete(objects, key(ev.Object))
		default:
			objects[key(ev.Object)] = ev.Object
		}
	}
	return objects
}

// list is the part of the collection that a filter lets through, sorted by key as the API server does.
func (s *store) list(at uint64, f filter) []*unstructured.Unstructured {
	objects := s.state(at)
	var out []*unstructured.Unstructured
	for _, k := range slices.Sorted(maps.Keys(objects)) {
		if f.matches(objects[k]) {
			out = append(out, objects[k])
		}
	}
	return out
}

// after gives the index of the first live event that is newer than a version.
func (s *store) after(rv uint64) int {
	for i := range s.rvs {
		if s.rvs[i] > rv {
			return i
		}
	}
	return len(s.rvs)
}

// delivered is the newest version up to which a watch that has sent the events before next has sent everything.
func (s *store) delivered(next int, current uint64) uint64 {
	for i := next; i < len(s.Live); i++ {
		if s.Live[i].Type != bookmark && s.rvs[i] <= current {
			return s.rvs[i] - 1
		}
	}
	return current
}

func format(rv uint64) string { return strconv.FormatUint(rv, 10) }
