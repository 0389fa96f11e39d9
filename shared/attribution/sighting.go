package attribution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	fields int
	digest string
	family *Family
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
	Fields          int       // how many fields the managedFields name
	Digest          string    // of the managedFields
	Deletion        time.Time
	GraceSeconds    int64
}

// String renders the trace without spaces or colons.
func (t Trace) String() string {
	return strings.Join([]string{
		t.ResourceVersion, unix(t.Touched), strconv.Itoa(t.Fields), t.Digest, unix(t.Deletion), strconv.FormatInt(t.GraceSeconds, 10),
	}, ",")
}

// ParseTrace reads what String wrote.
func ParseTrace(s string) (t Trace, ok bool) {
	parts := strings.Split(s, ",")
	if len(parts) != 6 {
		return Trace{}, false
	}
	touched, ok1 := fromUnix(parts[1])
	fields, err1 := strconv.Atoi(parts[2])
	deletion, ok2 := fromUnix(parts[4])
	grace, err2 := strconv.ParseInt(parts[5], 10, 64)
	t = Trace{ResourceVersion: parts[0], Touched: touched, Fields: fields, Digest: parts[3], Deletion: deletion, GraceSeconds: grace}
	return t, ok1 && ok2 && err1 == nil && err2 == nil
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
	return Trace{
		ResourceVersion: s.ResourceVersion, Touched: s.touched(), Fields: s.fields, Digest: s.digest,
		Deletion: s.Deletion, GraceSeconds: s.GraceSeconds,
	}
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
	if raw, err := json.Marshal(entries); err == nil && len(entries) > 0 { // with sorted keys, so equal entries are equal bytes
		sum := sha256.Sum256(raw)
		s.digest = hex.EncodeToString(sum[:6])
	}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		set, _ := entry["fieldsV1"].(map[string]any)
		s.fields += countFields(set)
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

// freshlyStamped tells whether the newest managedFields time came with this version.
func (s *Sighting) freshlyStamped() bool {
	return s.Previous != nil && s.touched().After(s.Previous.Touched)
}

// stamped tells whether this change was made in the second of the newest managedFields time. A write stamps
// its field manager's entry unless all it does is take fields away, or unless it is of a subresource whose
// entries have no time (scale). So within one second a change left a stamp when the entries are the same as
// before or name as many fields, all have a time, and no earlier change of the resource is of a later second.
func (s *Sighting) stamped() bool {
	t := s.touched()
	switch {
	case s.Previous == nil || t.IsZero() || t.Before(s.Previous.Touched):
		return false
	case t.After(s.Previous.Touched):
		return true
	case !s.After.Before(t.Add(stampWidth)):
		return false
	}
	for _, m := range s.Managed {
		if m.Time.IsZero() {
			return false
		}
	}
	return s.digest == s.Previous.Digest || s.fields >= s.Previous.Fields
}

// stampedBy tells whether the newest stamp, or one of the same second, is this field manager's. Writes of a
// subresource have entries of their own.
func (s *Sighting) stampedBy(manager, subresource string) bool {
	newest := s.touched()
	for _, m := range s.Managed {
		if !m.Time.Equal(newest) || m.Manager != manager {
			continue
		}
		if m.Subresource == subresource || m.Subresource == "" && subresource != "status" && subresource != subresourceScale {
			return true
		}
	}
	return false
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

// countFields counts the fields of a FieldsV1 set, which is a tree of them.
func countFields(set map[string]any) int {
	n := len(set)
	for _, below := range set {
		if m, ok := below.(map[string]any); ok {
			n += countFields(m)
		}
	}
	return n
}

func metadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
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
