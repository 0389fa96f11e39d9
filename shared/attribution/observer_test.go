package attribution

import (
	"strconv"
	"testing"
	"time"
)

// An observer lives as long as its watch, and many objects may come and go in that time.
func TestAnObserverKeepsOnlyWhatMayStillChange(t *testing.T) {
	o := NewObserver("configmaps", NewFamily())
	var all []*Sighting
	object := version{rv: "6", made: 1}.object("web", "")
	for i := range 2*maxBounded + 5 {
		object["metadata"].(map[string]any)["uid"] = strconv.Itoa(i)
		all = append(all, o.See(Deleted, object)) // which nothing bounds yet
	}
	if n := len(o.sightings); n < maxBounded || n >= 2*maxBounded {
		t.Errorf("%d sightings are kept, want at least %d and fewer than twice as many", n, maxBounded)
	}
	if n := len(o.newest) + len(o.traces); n != 0 {
		t.Errorf("%d objects that are gone are kept, want none", n)
	}
	made := o.See(Added, version{rv: "7", made: 9}.object("db", "other"))
	for i, s := range all[len(all)-maxBounded:] {
		if want := made.Created.Add(2 * time.Second); !s.Before.Equal(want) {
			t.Fatalf("change %d of the newest is before %v, want %v", i, s.Before, want)
		}
	}
}
