package attribution

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Observer follows the watch of one resource and makes a Sighting of each of its events: it knows what was
// seen of the object before, and bounds the time of each change by the stamps of its neighbours. It is not
// safe for concurrent use.
type Observer struct {
	// Narrowed is for a watch that asks for some labels only.
	Narrowed bool

	resource  string
	family    *Family
	traces    map[string]Trace
	newest    map[string]*Sighting
	lives     map[string]*life // by namespace and name
	after     time.Time
	sightings []*Sighting
}

// NewObserver returns an observer of a resource, as GroupResource spells it, that has seen nothing yet.
// Observers of one API server share a Family.
func NewObserver(groupResource string, family *Family) *Observer {
	return &Observer{resource: groupResource, family: family, traces: map[string]Trace{}, newest: map[string]*Sighting{}, lives: map[string]*life{}}
}

// Forget is for a gap in the watch: what was seen before it no longer tells what a change replaced.
func (o *Observer) Forget() {
	clear(o.traces)
	clear(o.newest)
	o.sightings = nil
}

// Initial takes an object that the watch found in place, or that a list returned.
func (o *Observer) Initial(object map[string]any) *Sighting {
	s := Observe(Added, object, nil)
	o.family.Note(o.resource, &s)
	o.live(&s)
	o.traces[s.UID] = s.Trace()
	if t := s.knownTime(); t.After(o.after) {
		o.after = t
	}
	return &s
}

// See takes the next event. Events come in the order of their versions. The Before of the newest
// Sightings may still move down as later events come in.
func (o *Observer) See(eventType string, object map[string]any) *Sighting {
	var previous *Trace
	uid := text(metadata(object), "uid")
	if t, known := o.traces[uid]; known {
		previous = &t
	}
	s := o.SeeAfter(previous, eventType, object)
	if eventType == Deleted {
		delete(o.traces, uid)
	} else {
		o.traces[uid] = s.Trace()
	}
	return s
}

// SeeAfter is See for a caller that remembers the traces itself. previous is nil when it is not known.
func (o *Observer) SeeAfter(previous *Trace, eventType string, object map[string]any) *Sighting {
	s := Observe(eventType, object, previous)
	s.Narrowed = o.Narrowed
	o.family.Note(o.resource, &s)
	o.live(&s)
	s.After = o.after
	at := s.knownTime()
	if at.After(o.after) {
		o.after = at
	}
	if !at.IsZero() && s.stampedNow() {
		before := at.Add(stampWidth + boundSlack)
		for i := len(o.sightings) - 1; i >= 0; i-- {
			earlier := o.sightings[i]
			if !earlier.Before.IsZero() && !earlier.Before.After(before) {
				break
			}
			earlier.Before = before
		}
	}
	if o.sightings = append(o.sightings, &s); len(o.sightings) >= 2*maxBounded {
		o.sightings = slices.Clone(o.sightings[maxBounded:])
	}
	if before := o.newest[s.UID]; before != nil && previous != nil && before.ResourceVersion == previous.ResourceVersion {
		before.Next = &s
	}
	if o.newest[s.UID] = &s; s.Type == Deleted && !s.Narrowed {
		delete(o.newest, s.UID) // it never comes back
	}
	return &s
}

// life is what a name was one object's. All sightings of that object share it.
type life struct {
	uid  string
	next time.Time // when another object of the name was made; zero while there is none
}

func (o *Observer) live(s *Sighting) {
	name := s.Namespace + "/" + s.Name
	l := o.lives[name]
	if l == nil || l.uid != s.UID {
		if l != nil {
			l.next = s.Created
		}
		l = &life{uid: s.UID}
		o.lives[name] = l
	}
	s.life = l
}

// maxBounded is of how many changes, the newest, Before may still move down. Older ones need not wait for it.
const maxBounded = 10_000

// boundSlack is how long a write may take from its stamp to its version.
const boundSlack = time.Second

// knownTime is a time at which, or before which, this change happened by its own stamps.
func (s *Sighting) knownTime() time.Time {
	t := s.touched()
	if s.Created.After(t) {
		t = s.Created
	}
	if s.stepsDeletion() && s.asked().After(t) {
		t = s.asked()
	}
	return t
}

// stampedNow tells whether knownTime is the time of this very change.
func (s *Sighting) stampedNow() bool {
	switch {
	case s.Type == Added:
		return true
	case s.Type == Deleted:
		return false
	case s.stepsDeletion():
		return true
	}
	return !s.stamped().IsZero()
}

// Family knows the owners of the objects that were seen and how those were removed, whatever their resource,
// so that a collected object leads to the deletion that began it. It is not safe for concurrent use.
type Family struct {
	members map[string]*member
	types   map[string]string // by name of the CRD, the version in which its deletion began
}

type member struct {
	resource string
	owners   []string
	removal  *Sighting
}

// NewFamily returns a Family that knows nobody.
func NewFamily() *Family { return &Family{members: map[string]*member{}, types: map[string]string{}} }

// Note remembers what was seen of an object of a resource, as GroupResource spells it, and lets the Sighting
// find its ancestors.
func (f *Family) Note(groupResource string, s *Sighting) {
	m := f.members[s.UID]
	if m == nil {
		m = &member{resource: groupResource}
		f.members[s.UID] = m
	}
	m.owners = s.Owners
	if s.Type == Deleted || s.stepsDeletion() {
		m.removal = s
	}
	s.family = f
	if groupResource == resourceCRDs && s.stepsDeletion() {
		f.types[s.Name] = s.ResourceVersion
	}
}

// beforeType tells whether the change came before the deletion of its type began. Custom resources and their
// definitions are in one store, so their versions compare.
func (s *Sighting) beforeType(groupResource string) bool {
	group, resource, ok := strings.Cut(groupResource, "/")
	if !ok || s.family == nil {
		return false
	}
	began, err1 := strconv.ParseUint(s.family.types[resource+"."+group], 10, 64)
	version, err2 := strconv.ParseUint(s.ResourceVersion, 10, 64)
	return err1 == nil && err2 == nil && version < began
}

// Owner is one owner of an object that was seen.
type Owner struct {
	UID           string
	GroupResource string    // "" when the owner itself was never seen
	Removal       *Sighting // nil when its removal was not
	Owners        []Owner
}

const maxGenerations = 4

// Lineage is the object's owners and theirs, as far as its Family knows them.
func (s *Sighting) Lineage() []Owner { return s.family.lineage(s.Owners, maxGenerations) }

func (f *Family) lineage(uids []string, generations int) []Owner {
	if generations == 0 {
		return nil
	}
	var out []Owner
	for _, uid := range uids {
		o := Owner{UID: uid}
		if f != nil && f.members[uid] != nil {
			m := f.members[uid]
			o.GroupResource, o.Removal = m.resource, m.removal
			o.Owners = f.lineage(m.owners, generations-1)
		}
		out = append(out, o)
	}
	return out
}
