package attribution

import "time"

// Observer follows the watch of one resource and makes a Sighting of each of its events: it knows what was
// seen of the object before, and bounds the time of each change by the stamps of its neighbours. It is not
// safe for concurrent use.
type Observer struct {
	family    *Family
	traces    map[string]Trace
	after     time.Time
	sightings []*Sighting
}

// NewObserver returns an observer that has seen nothing yet. Observers of one API server share a Family.
func NewObserver(family *Family) *Observer {
	return &Observer{family: family, traces: map[string]Trace{}}
}

// Know tells what was seen of an object before this observer began, with nothing missed in between.
func (o *Observer) Know(uid string, t Trace) { o.traces[uid] = t }

// Forget is for a gap in the watch: what was seen before it no longer tells what a change replaced.
func (o *Observer) Forget() {
	clear(o.traces)
	o.sightings = nil
}

// Initial takes an object that the watch found in place, or that a list returned.
func (o *Observer) Initial(object map[string]any) {
	s := Observe(Added, object, nil)
	o.family.note(&s)
	o.traces[s.UID] = s.Trace()
	if t := s.knownTime(); t.After(o.after) {
		o.after = t
	}
}

// See takes the next event. Events come in the order of their versions. The Sighting's Before may still
// move down as later events come in.
func (o *Observer) See(eventType string, object map[string]any) *Sighting {
	s := Observe(eventType, object, nil)
	if t, known := o.traces[s.UID]; known {
		s.Previous = &t
	}
	o.family.note(&s)
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
	o.sightings = append(o.sightings, &s)
	if eventType == Deleted {
		delete(o.traces, s.UID)
	} else {
		o.traces[s.UID] = s.Trace()
	}
	return &s
}

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
	return s.stamped()
}

// Family knows the owners of the objects that were seen, whatever their resource, so that a collected
// object leads to the deletion that began it.
type Family struct{ owners map[string][]string }

// NewFamily returns a Family that knows nobody.
func NewFamily() *Family { return &Family{owners: map[string][]string{}} }

const maxGenerations = 4

// note remembers the object's owners and completes them with what is known of the owners' owners.
func (f *Family) note(s *Sighting) {
	if f == nil {
		return
	}
	f.owners[s.UID] = s.Owners[:len(s.Owners):len(s.Owners)]
	s.Ancestors = f.ancestors
}

// ancestors returns the owners of an object, their owners and so on.
func (f *Family) ancestors(uid string) []string {
	var out []string
	generation := f.owners[uid]
	seen := map[string]bool{uid: true}
	for range maxGenerations {
		var next []string
		for _, owner := range generation {
			if seen[owner] {
				continue
			}
			seen[owner] = true
			out = append(out, owner)
			next = append(next, f.owners[owner]...)
		}
		generation = next
	}
	return out
}
