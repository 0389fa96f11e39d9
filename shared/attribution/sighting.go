package attribution

import (
	"strconv"
	"strings"
	"time"
)

// Types of a watch event.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// Sighting is what the watch saw of one change: the part of an object's metadata that weaker evidence
// is held against. Observe makes it.
type Sighting struct {
	Type            string // Added, Modified or Deleted
	Namespace, Name string
	UID             string
	ResourceVersion string
	Labels          map[string]string
	Created         time.Time
	// Deletion is the deletionTimestamp: the time of the request plus the grace period.
	Deletion     time.Time
	GraceSeconds int64
	// Generation counts the changes of what is asked for, as opposed to status; 0 in kinds that do not count them.
	Generation int64
	// Managed are the managedFields entries: who wrote, and when, to the second.
	Managed []ManagedEntry
	// Owners are the uids of the object's owners.
	Owners []string
	// Narrowed tells that the watch asks for some labels only: an object may come and go without being made
	// or deleted.
	Narrowed bool
	// Previous is what the watch saw of this uid before this change, with nothing missed in between;
	// nil when that is not known.
	Previous *Trace
	// Next is the change of the same object that followed, with nothing missed in between; nil while there is
	// none.
	Next *Sighting
	// After and Before bound the time of the change by the stamps of the same resource's earlier and
	// later changes; zero where nothing bounds it. Timeline gives them.
	After, Before time.Time

	family *Family
	life   *life
}

// Trace is what has to be remembered of a version to judge the next one of the same object. String and
// ParseTrace carry it through a store.
type Trace struct {
	ResourceVersion string
	Marks           []Mark // of the managedFields
	Deletion        time.Time
	GraceSeconds    int64
	Generation      int64
}

// String renders the trace without spaces or colons.
func (t Trace) String() string {
	parts := []string{t.ResourceVersion, unix(t.Deletion), strconv.FormatInt(t.GraceSeconds, 10), strconv.FormatInt(t.Generation, 10)}
	for _, m := range t.Marks {
		parts = append(parts, m.String())
	}
	return strings.Join(parts, ",")
}

// ParseTrace reads what String wrote.
func ParseTrace(s string) (t Trace, ok bool) {
	parts := strings.Split(s, ",")
	if len(parts) < 4 {
		return Trace{}, false
	}
	t.ResourceVersion = parts[0]
	var err error
	if t.Deletion, ok = fromUnix(parts[1]); !ok {
		return Trace{}, false
	}
	if t.GraceSeconds, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return Trace{}, false
	}
	if t.Generation, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return Trace{}, false
	}
	for _, part := range parts[4:] {
		m, ok := parseMark(part)
		if !ok {
			return Trace{}, false
		}
		t.Marks = append(t.Marks, m)
	}
	return t, true
}

// touched is the newest time of the managedFields.
func (t *Trace) touched() time.Time {
	var newest time.Time
	for _, m := range t.Marks {
		if m.Time.After(newest) {
			newest = m.Time
		}
	}
	return newest
}

func unix(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}

func fromUnix(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(n, 0).UTC(), err == nil
}

// Trace is what to remember of this sighting for the object's next change.
func (s *Sighting) Trace() Trace {
	t := Trace{ResourceVersion: s.ResourceVersion, Deletion: s.Deletion, GraceSeconds: s.GraceSeconds, Generation: s.Generation}
	for _, m := range s.Managed {
		t.Marks = append(t.Marks, m.mark)
	}
	return t
}

// touched is the newest time of the managedFields.
func (s *Sighting) touched() time.Time {
	var newest time.Time
	for _, m := range s.Managed {
		if m.Time.After(newest) {
			newest = m.Time
		}
	}
	return newest
}

// Observe reads a watch event's object, as decoded from JSON. previous is the Trace of the version that
// the watch delivered of the same uid just before, or nil.
func Observe(eventType string, object map[string]any, previous *Trace) Sighting {
	meta := metadata(object)
	s := Sighting{
		Type:            eventType,
		Namespace:       text(meta, "namespace"),
		Name:            text(meta, "name"),
		UID:             text(meta, "uid"),
		ResourceVersion: text(meta, "resourceVersion"),
		Created:         instant(meta, "creationTimestamp"),
		Deletion:        instant(meta, "deletionTimestamp"),
		GraceSeconds:    number(meta, "deletionGracePeriodSeconds"),
		Generation:      number(meta, "generation"),
		Previous:        previous,
	}
	if labels, ok := meta["labels"].(map[string]any); ok {
		s.Labels = make(map[string]string, len(labels))
		for k := range labels {
			s.Labels[k] = text(labels, k)
		}
	}
	entries, _ := meta["managedFields"].([]any)
	s.Managed = observeEntries(entries)
	owners, _ := meta["ownerReferences"].([]any)
	for _, o := range owners {
		owner, _ := o.(map[string]any)
		if uid := text(owner, "uid"); uid != "" {
			s.Owners = append(s.Owners, uid)
		}
	}
	return s
}

// asked is when the deletion was asked for, to the second.
func (s *Sighting) asked() time.Time {
	return s.Deletion.Add(-time.Duration(s.GraceSeconds) * time.Second)
}

// stepsDeletion tells whether this change set the deletionTimestamp, or moved it.
func (s *Sighting) stepsDeletion() bool {
	return s.Type == Modified && !s.Deletion.IsZero() && s.Previous != nil &&
		(!s.Previous.Deletion.Equal(s.Deletion) || s.Previous.GraceSeconds != s.GraceSeconds)
}

// counts tells whether the request can have left the generation as it is: a write of /scale counts, one of /status does
// not.
func (s *Sighting) counts(r *Request) bool {
	if s.Previous == nil || s.Generation == 0 || s.Previous.Generation == 0 {
		return true
	}
	changed := s.Generation != s.Previous.Generation
	return (r.Subresource != subresourceScale || changed) && (r.Subresource != subresourceStatus || !changed)
}

// managedBy tells whether the field manager has an entry, or whether nothing is known of any.
func (s *Sighting) managedBy(manager string) bool {
	for _, m := range s.Managed {
		if m.Manager == manager {
			return true
		}
	}
	return len(s.Managed) == 0
}

// Removal tells whether the change is, or may be, the work of a delete.
func (s *Sighting) Removal() bool { return s.Type == Deleted || !s.Deletion.IsZero() }

func metadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func number(m map[string]any, key string) int64 {
	switch n := m[key].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func instant(m map[string]any, key string) time.Time {
	t, err := time.Parse(time.RFC3339, text(m, key))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
