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
	// Managed are the managedFields entries: who wrote, and when, to the second.
	Managed []ManagedEntry
	// Owners are the uids of the object's owners, then of their owners, as far as they are known.
	// Observe gives the first generation; a caller that knows more appends it.
	Owners []string
	// OwnersComplete tells that Owners reaches all the way up.
	OwnersComplete bool
	// Previous is what the watch saw of this uid before this change, with nothing missed in between;
	// nil when that is not known.
	Previous *Trace
	// After and Before bound the time of the change by the stamps of the same resource's earlier and
	// later changes; zero where nothing bounds it. Timeline gives them.
	After, Before time.Time
}

// ManagedEntry is the part of a managedFields entry that tells about a write.
type ManagedEntry struct {
	Manager     string
	Operation   string
	Subresource string
	Time        time.Time
}

// Trace is what has to be remembered of a version to judge the next one of the same object. String and
// ParseTrace carry it through a store.
type Trace struct {
	ResourceVersion string
	Touched         time.Time // the newest managedFields time
	Deletion        time.Time
	GraceSeconds    int64
}

// String renders the trace without spaces or colons.
func (t Trace) String() string {
	return t.ResourceVersion + "," + unix(t.Touched) + "," + unix(t.Deletion) + "," + strconv.FormatInt(t.GraceSeconds, 10)
}

// ParseTrace reads what String wrote. A bare resourceVersion is a trace of which only that is known,
// and is not enough to go by: ok is false.
func ParseTrace(s string) (t Trace, ok bool) {
	parts := strings.Split(s, ",")
	if len(parts) != 4 {
		return Trace{}, false
	}
	touched, ok1 := fromUnix(parts[1])
	deletion, ok2 := fromUnix(parts[2])
	grace, err := strconv.ParseInt(parts[3], 10, 64)
	return Trace{ResourceVersion: parts[0], Touched: touched, Deletion: deletion, GraceSeconds: grace}, ok1 && ok2 && err == nil
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
	return Trace{ResourceVersion: s.ResourceVersion, Touched: s.touched(), Deletion: s.Deletion, GraceSeconds: s.GraceSeconds}
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
	meta, _ := object["metadata"].(map[string]any)
	s := Sighting{
		Type:            eventType,
		Namespace:       text(meta, "namespace"),
		Name:            text(meta, "name"),
		UID:             text(meta, "uid"),
		ResourceVersion: text(meta, "resourceVersion"),
		Created:         instant(meta, "creationTimestamp"),
		Deletion:        instant(meta, "deletionTimestamp"),
		Previous:        previous,
	}
	switch grace := meta["deletionGracePeriodSeconds"].(type) {
	case int64:
		s.GraceSeconds = grace
	case float64:
		s.GraceSeconds = int64(grace)
	}
	if labels, ok := meta["labels"].(map[string]any); ok {
		s.Labels = make(map[string]string, len(labels))
		for k := range labels {
			s.Labels[k] = text(labels, k)
		}
	}
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		s.Managed = append(s.Managed, ManagedEntry{
			Manager:     text(entry, "manager"),
			Operation:   text(entry, "operation"),
			Subresource: text(entry, "subresource"),
			Time:        instant(entry, "time"),
		})
	}
	owners, _ := meta["ownerReferences"].([]any)
	for _, o := range owners {
		owner, _ := o.(map[string]any)
		if uid := text(owner, "uid"); uid != "" {
			s.Owners = append(s.Owners, uid)
		}
	}
	s.OwnersComplete = len(s.Owners) == 0
	return s
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func instant(m map[string]any, key string) time.Time {
	t, err := time.Parse(time.RFC3339, text(m, key))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
