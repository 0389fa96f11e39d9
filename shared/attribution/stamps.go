package attribution

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ManagedEntry is the part of a managedFields entry that tells about a write.
type ManagedEntry struct {
	Manager     string
	Operation   string
	Subresource string
	Time        time.Time

	mark Mark
}

// Mark is what is remembered of a managedFields entry: hashes of whose it is and of the fields it names, and how many
// these are.
type Mark struct {
	Whose, Set uint32
	Time       time.Time
	Fields     int
}

const operationApply = "Apply"

func observeEntries(entries []any) []ManagedEntry {
	var out []ManagedEntry
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		set, _ := entry["fieldsV1"].(map[string]any)
		m := ManagedEntry{
			Manager:     text(entry, "manager"),
			Operation:   text(entry, "operation"),
			Subresource: text(entry, "subresource"),
			Time:        instant(entry, "time"),
		}
		version := text(entry, "apiVersion")
		if m.Operation == operationApply {
			version = "" // one entry for all versions
		}
		fields, _ := json.Marshal(set) // with sorted keys, so equal sets are equal bytes
		m.mark = Mark{
			Whose: hash(m.Manager + "\n" + m.Operation + "\n" + m.Subresource + "\n" + version),
			Set:   hash(string(fields)), Time: m.Time, Fields: countFields(set),
		}
		out = append(out, m)
	}
	return out
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

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

// String renders the mark in characters that a Trace may have.
func (m Mark) String() string {
	return strings.Join([]string{
		strconv.FormatUint(uint64(m.Whose), 36), strconv.FormatUint(uint64(m.Set), 36), unix(m.Time), strconv.Itoa(m.Fields),
	}, ".")
}

func parseMark(s string) (m Mark, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return Mark{}, false
	}
	whose, err1 := strconv.ParseUint(parts[0], 36, 32)
	set, err2 := strconv.ParseUint(parts[1], 36, 32)
	at, ok := fromUnix(parts[2])
	fields, err3 := strconv.Atoi(parts[3])
	return Mark{Whose: uint32(whose), Set: uint32(set), Time: at, Fields: fields}, ok && err1 == nil && err2 == nil && err3 == nil
}

// stamps is what a change did to the managedFields. A request that sets a field, or takes one over by setting it, stamps
// its field manager's entry. It leaves no stamp to take fields away, to apply what is so already (which makes the field
// manager an owner of it, in an entry of its own that keeps its time or has none), or to write to /scale (whose
// entries have no time). Evictions and bindings do not touch the managedFields.
type stamps struct {
	known   bool           // the version before was seen, and both have managedFields
	fresh   []ManagedEntry // stamped by this very change
	applied []ManagedEntry // owning more without a stamp
	scaled  bool           // by a write to /scale
	same    bool           // nothing was done to them
}

func (s *Sighting) stamps() stamps {
	if s.Previous == nil || len(s.Managed) == 0 || len(s.Previous.Marks) == 0 {
		return stamps{}
	}
	out := stamps{known: true, same: len(s.Managed) == len(s.Previous.Marks)}
	for _, m := range s.Managed {
		i := slices.IndexFunc(s.Previous.Marks, func(before Mark) bool { return before.Whose == m.mark.Whose })
		var before Mark
		if i >= 0 {
			before = s.Previous.Marks[i]
		}
		grown := i < 0 || m.mark.Set != before.Set && m.mark.Fields >= before.Fields
		if m.mark == before {
			continue
		}
		out.same = false
		switch {
		case !m.Time.IsZero() && (!m.Time.Equal(before.Time) || grown && m.Operation != operationApply):
			out.fresh = append(out.fresh, m)
		case m.Operation == operationApply && grown:
			out.applied = append(out.applied, m)
		case m.Subresource == subresourceScale && m.Time.IsZero() && grown:
			out.scaled = true
		}
	}
	return out
}

// stamped is the time of this very change, to the second, or zero when it left no stamp.
func (s *Sighting) stamped() time.Time {
	var newest time.Time
	for _, m := range s.stamps().fresh {
		if m.Time.After(newest) {
			newest = m.Time
		}
	}
	return newest
}

// stampedBefore are the entries that may be this change's, but had their stamps already in the version before, and not
// from the object's creation: whoever left those did not make this change. There is none when something is stamped anew.
func (s *Sighting) stampedBefore() []ManagedEntry {
	did := s.stamps()
	entries := did.fresh
	if did.same {
		entries = s.Managed
	}
	var out []ManagedEntry
	for _, m := range entries {
		before := slices.IndexFunc(s.Previous.Marks, func(before Mark) bool { return before.Whose == m.mark.Whose && before.Time.Equal(m.Time) })
		if before < 0 {
			return nil
		}
		if !m.Time.IsZero() && !m.Time.Equal(s.Created) {
			out = append(out, m)
		}
	}
	return out
}

// by tells whether the entry is the one in which a request of a field manager shows. Writes of a subresource have
// entries of their own.
func (m *ManagedEntry) by(manager, subresource string) bool {
	return m.Manager == manager &&
		(m.Subresource == subresource || m.Subresource == "" && subresource != subresourceStatus && subresource != subresourceScale)
}
