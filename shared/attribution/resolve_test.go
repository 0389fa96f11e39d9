package attribution

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Times of these tests are seconds after ten o'clock, such as 7.25.
var ten = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return ten.Add(time.Duration(seconds * float64(time.Second))).Round(time.Microsecond)
}

func stamp(seconds float64) string { return at(seconds).Truncate(time.Second).Format(time.RFC3339) }

// version is an object as a watch shows it. Fields is a list of "manager@second" or "manager@second+extra": the
// more extras, the more fields the entry has; "manager@-" has no time, and "manager^@second" is of server-side applies.
type version struct {
	rv       string
	made     float64
	fields   string
	deletion float64 // 0: none
	grace    int64
	labels   string // "k=v"
	owner    string

	generation int64
}

func (v version) object(name, uid string) map[string]any {
	meta := map[string]any{"namespace": "shop", "name": name, "uid": uid, "resourceVersion": v.rv, "creationTimestamp": stamp(v.made)}
	if v.deletion != 0 {
		meta["deletionTimestamp"] = stamp(v.deletion)
		meta["deletionGracePeriodSeconds"] = v.grace
	}
	if v.generation != 0 {
		meta["generation"] = v.generation
	}
	if k, value, ok := strings.Cut(v.labels, "="); ok {
		meta["labels"] = map[string]any{k: value}
	}
	if v.owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"uid": v.owner}}
	}
	var entries []any
	for _, f := range strings.Fields(v.fields) {
		manager, rest, _ := strings.Cut(f, "@")
		second, extras, _ := strings.Cut(rest, "+")
		set := map[string]any{"f:data": map[string]any{}}
		for _, e := range extras {
			set["f:"+string(e)] = map[string]any{}
		}
		manager, sub, _ := strings.Cut(manager, "/")
		entry := map[string]any{"manager": manager, "operation": "Update", "fieldsV1": set}
		if applies, ok := strings.CutSuffix(manager, "^"); ok {
			entry["manager"], entry["operation"] = applies, "Apply"
		}
		if sub != "" {
			entry["subresource"] = sub
		}
		if n, err := strconv.ParseFloat(second, 64); err == nil {
			entry["time"] = stamp(n)
		}
		entries = append(entries, entry)
	}
	meta["managedFields"] = entries
	return map[string]any{"metadata": meta}
}

// asked is a request: "alice patch 7.1-7.2 by kubectl replacing 5 created dry uid u".
func asked(text string) Request {
	words := strings.Fields(text)
	verb, sub, _ := strings.Cut(words[1], "/")
	from, to, _ := strings.Cut(words[2], "-")
	r := Request{Author: words[0], Verb: verb, Subresource: sub, Manager: "kubectl"}
	for i, w := range []string{from, to} {
		n, err := strconv.ParseFloat(w, 64)
		if err != nil {
			panic(text)
		}
		if i == 0 {
			r.Received = at(n)
		} else {
			r.Staged = at(n)
		}
	}
	for i := 3; i < len(words); i++ {
		switch words[i] {
		case "created":
			r.Created = true
		case "unverified":
			r.Unverified = true
		default:
			i++
			switch words[i-1] {
			case "by":
				r.Manager = words[i]
			case "replacing":
				r.Replaces = words[i]
			case "uid":
				r.UID = words[i]
			case "labels":
				r.LabelSelector = words[i]
			case "fields":
				r.FieldSelector = words[i]
			default:
				panic(text)
			}
		}
	}
	return r
}

func list(texts ...string) []Request {
	var out []Request
	for _, t := range texts {
		out = append(out, asked(t))
	}
	return out
}

// record is a request with its answer: "alice patch 7.1-7.2 by kubectl".
func record(text string, deletion Deletion, more ...func(*Record)) *Record {
	r := asked(text)
	out := &Record{
		Fact:     Fact{Author: r.Author, Verb: r.Verb, Subresource: r.Subresource, Name: "web", Namespace: "shop", StageTimestamp: r.Staged.Format(time.RFC3339Nano)},
		Received: r.Received.Format(time.RFC3339Nano), Deletion: deletion, Unverified: r.Unverified,
	}
	if deletion == DeletionNone {
		out.Manager = r.Manager
	}
	for _, m := range more {
		m(out)
	}
	return out
}

func proven(r *Record) { r.Proven = true }

// claimed adds that somebody else's request for the same version was received at that second.
func claimed(author string, received float64) func(*Record) {
	return func(r *Record) {
		r.Claims = append(r.Claims, Claim{Author: author, Received: at(received).Format(time.RFC3339Nano)})
	}
}

const gap = "" // as rv: the watch missed something here

// see follows an object through its versions and returns the sighting of the last.
func see(event string, versions ...version) *Sighting {
	o := NewObserver("configmaps", NewFamily())
	var s *Sighting
	for i, v := range versions {
		object := v.object("web", "u")
		switch {
		case v.rv == gap:
			o.Forget()
		case i < len(versions)-1 && s == nil:
			o.Initial(object)
			s = &Sighting{}
		case i < len(versions)-1:
			o.See(Modified, object)
		default:
			s = o.See(event, object)
		}
	}
	return s
}

func narrowed(s *Sighting) *Sighting { s.Narrowed = true; return s }

type resolveCase struct {
	name string
	skew time.Duration
	in   Evidence
	want string
}

// The versions that most of these tests are about.
var (
	before  = version{rv: "5", made: 1, fields: "kubectl@3+ab"}
	written = version{rv: "6", made: 1, fields: "kubectl@7+ab"}
	trimmed = version{rv: "6", made: 1, fields: "kubectl@3+a"}
	going   = version{rv: "6", made: 1, fields: "kubectl@3+ab", deletion: 9}
)

func resolveAll(t *testing.T, cases []resolveCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := Resolve(&c.in, c.skew)
			got := fmt.Sprintf("%s %s", r.Fact.Author, r.Result)
			if r.Result == Absent {
				got = "absent " + string(r.Why)
			}
			if r.Fact.Tier != "" {
				got += " " + string(r.Fact.Tier)
			}
			if r.Provisional {
				got += " provisional"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWritesResolve(t *testing.T) {
	resolveAll(t, []resolveCase{
		// The version's own records.
		{"the record of the version", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice patch 7.1-7.2", "")}, "alice exact_user provisional"},
		{"a record that no late one can outdo", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice update 7.1-7.2", "", proven)}, "alice exact_user"},
		{"nor one that overlapped it", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice update 7.1-7.2", "", proven, claimed("flux", 7.15))}, "alice exact_user"},
		{"a record that one of somebody else overlapped", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice update 7.1-7.2", "", claimed("flux", 7.15))}, "absent contested"},
		{"without what the watch saw a contested record is nobody's", 0, Evidence{Exact: record("alice update 7.1-7.2", "", proven, claimed("flux", 7.15))}, "absent contested"},
		{"a patch that came a second after the version's stamp changed nothing", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("flux patch 8.1-8.2", "")}, "absent mismatch"},
		{"nor did one by another field manager than the stamp's", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("flux patch 7.1-7.2 by flux", "")}, "absent mismatch"},
		{"a change that only takes fields away leaves no stamp to hold a patch against", 0, Evidence{Sighting: see(Modified, before, trimmed), Exact: record("alice patch 8.1-8.2", "")}, "alice exact_user provisional"},
		{"a write answered as a table, and a no-op that shows the object", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("flux patch 7.5-7.6", ""), Version: record("alice patch 7.1-7.2", "")}, "alice weak version provisional"},
		{"the same with the two overlapping", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("flux patch 7.1-7.6", ""), Version: record("alice patch 7.1-7.2", "")}, "absent contested"},
		{"another object's version without a uid", 0, Evidence{Sighting: see(Modified, before, written), Version: record("alice patch 7.1-7.2", "", func(r *Record) { r.Name = "db" })}, "absent no-fact"},
		{"a delete that repeats a version of an object on its way out", 0, Evidence{
			Sighting: see(Modified, going, version{rv: "7", made: 1, fields: "kubectl@10+ab", deletion: 9}),
			Exact:    record("bob delete 11.1-11.2", DeletionStarted, func(r *Record) { r.Write = record("alice patch 10.1-10.2", "") }),
		}, "alice exact_user provisional"},
		{"the same before the write has arrived", 0, Evidence{
			Sighting: see(Modified, going, version{rv: "7", made: 1, fields: "kubectl@10+ab", deletion: 9}),
			Exact:    record("bob delete 11.1-11.2", DeletionStarted),
		}, "absent mismatch"},

		{"a no-op after a write that left the stamp of the same second", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}), Exact: record("flux patch 20.1-20.2", ""),
		}, "absent mismatch"},
		{"a scale may leave no stamp at all", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}), Exact: record("alice patch/scale 20.1-20.2", ""),
		}, "alice exact_user provisional"},
		{"a no-op after an apply of what was so already", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "flux^@3+a"}, version{rv: "6", made: 1, fields: "flux^@3+ab"}), Exact: record("bob patch 20.1-20.2", ""),
		}, "absent mismatch"},
		{"a no-op that came when the resource had gone on", 0, func() Evidence {
			o := NewObserver("configmaps", NewFamily())
			o.Initial(before.object("web", "u"))
			s := o.See(Modified, trimmed.object("web", "u"))
			o.See(Added, version{rv: "7", made: 9}.object("db", "other"))
			return Evidence{Sighting: s, Exact: record("flux patch 30.1-30.2", "")}
		}(), "absent mismatch"},
		{"a patch does not make an object without saying so", 0, Evidence{Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Exact: record("flux patch 3.4-3.5", "")}, "absent mismatch"},
		{"who made it may be told by name", 0, Evidence{
			Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Exact: record("flux patch 4.1-4.2", ""), Named: list("alice create 3.1-3.2 created"),
		}, "alice weak created-name provisional"},
		{"even if both were under way in that second", 0, Evidence{
			Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Exact: record("flux patch 3.4-3.5", ""), Named: list("alice create 3.1-3.2 created"),
		}, "alice weak created-name provisional"},
		{"a no-op after a write whose answer was cut", 0, Evidence{
			Sighting: see(Modified, before, written), Exact: record("flux patch 7.5-7.6", ""), Named: list("alice patch 7.1-7.2"),
		}, "absent contested"},
		{"and after an eviction's", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}),
			Exact:    record("flux patch 3.5-3.6", ""), Named: list("alice create/eviction 3.1-3.2"),
		}, "absent contested"},
		{"a write that was cut long before does not matter", 0, Evidence{
			Sighting: see(Modified, before, written), Exact: record("alice patch 7.5-7.6", ""), Named: list("bob patch 3.1-3.2"),
		}, "alice exact_user provisional"},
		{"after a gap a delete that came after the write of its version did not make that", 0, Evidence{
			Sighting: see(Modified, version{}, version{rv: "7", made: 1, fields: "kubectl@10+ab", deletion: 9}),
			Exact:    record("bob delete 11.1-11.2", DeletionStarted, func(r *Record) { r.Write = record("alice patch 10.1-10.2", "") }),
		}, "alice exact_user provisional"},

		// Creates without an answer.
		{"the only create of the name in the second", 0, Evidence{Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Named: list("alice create 3.1-3.2 created", "bob create 1.1-1.2 created")}, "alice weak created-name provisional"},
		{"two people made the name within a second", 0, Evidence{Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Named: list("alice create 3.1-3.2 created", "bob create 3.7-3.8 created")}, "absent several"},
		{"a create by another field manager", 0, Evidence{Sighting: see(Added, version{rv: "5", made: 3, fields: "kubectl@3"}), Named: list("alice create 3.1-3.2 created by helm")}, "absent no-fact"},

		// Replaced versions.
		{"the update that replaced the version before", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice update 7.1-7.2 replacing 5")}, "alice weak replaced-version provisional"},
		{"of several that name it the last", 0, Evidence{Sighting: see(Modified, before, written), Named: list("bob update 7.0-7.1 replacing 5", "alice update 7.2-7.3 replacing 5")}, "alice weak replaced-version provisional"},
		{"unless they overlap", 0, Evidence{Sighting: see(Modified, before, written), Named: list("bob update 7.1-7.4 replacing 5", "alice update 7.2-7.3 replacing 5")}, "absent several"},
		{"or may with clocks that differ", 200 * time.Millisecond, Evidence{Sighting: see(Modified, before, written), Named: list("bob update 7.0-7.1 replacing 5", "alice update 7.2-7.3 replacing 5")}, "absent several"},
		{"one that names another version is not it", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice update 7.1-7.2 replacing 4")}, "absent no-fact"},
		{"nor is one of another object that had the name", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice update 7.1-7.2 replacing 5 uid other")}, "absent no-fact"},
		{"without the version before nothing is replaced", 0, Evidence{Sighting: see(Modified, before, version{}, written), Named: list("alice update 7.1-7.2 replacing 5")}, "absent gap"},
		{"a patch of somebody else beside it", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice update 7.1-7.2 replacing 5", "bob patch 7.5-7.6")}, "absent several"},
		{"a patch by another field manager than the stamp's", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice update 7.1-7.2 replacing 5", "bob patch 7.5-7.6 by helm")}, "alice weak replaced-version provisional"},
		{"a patch that was answered while the version before still stood", 0, Evidence{Sighting: see(Modified, before, written), Named: list("bob patch 7.0-7.05", "alice update 7.1-7.2 replacing 5")}, "alice weak replaced-version provisional"},
		{"a status update that names no version", 0, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@7+ab kubectl/status@7"}), Named: list("alice update 7.1-7.2 replacing 5", "bob patch/status 7.5-7.6")}, "absent several"},
		{"a no-op update, and a later patch that takes a label away", 0, Evidence{Sighting: see(Modified, before, trimmed), Named: list("alice update 7.1-7.2 replacing 5", "bob patch 20.1-20.2")}, "absent several"},
		{"an update that takes a field away, and a patch that made the next version", 0, func() Evidence {
			o := NewObserver("configmaps", NewFamily())
			o.Initial(before.object("web", "u"))
			s := o.See(Modified, trimmed.object("web", "u"))
			o.See(Modified, version{rv: "7", made: 1, fields: "kubectl@9+ac"}.object("web", "u"))
			return Evidence{Sighting: s, Named: list("alice update 7.1-7.2 replacing 5", "bob patch 9.1-9.2")}
		}(), "alice weak replaced-version provisional"},
		{"a no-op update in the second of an older stamp", 0, Evidence{Sighting: see(Modified, before, trimmed), Named: list("alice update 3.6-3.7 replacing 5", "bob patch 20.1-20.2")}, "absent several"},

		// Writes by name.
		{"the only patch in the second of the stamp", 0, Evidence{Sighting: see(Modified, before, written), Named: list("bob patch 5.1-5.2", "alice patch 7.1-7.2", "carol patch 8.1-8.2")}, "alice weak written-name provisional"},
		{"two people's patches in that second", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 7.1-7.2", "carol patch 7.8-7.9")}, "absent several"},
		{"two patches of one person", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 7.1-7.2", "alice patch 7.8-7.9")}, "alice weak written-name provisional"},
		{"a scale leaves an entry without a time", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab kubectl/scale@-+r"}),
			Named:    list("alice patch 3.1-3.2", "bob patch/scale 20.1-20.2", "carol patch 20.3-20.4"),
		}, "bob weak written-name provisional"},
		{"or none; then the only patch in the second of the older stamp is what left that", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}),
			Named:    list("alice patch 3.1-3.2", "bob patch/scale 20.1-20.2", "carol patch 20.3-20.4"),
		}, "bob weak written-name provisional"},
		{"of two one may have been it", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}),
			Named:    list("alice patch 3.1-3.2", "alice patch 3.3-3.4", "bob patch/scale 20.1-20.2"),
		}, "absent several"},
		{"a scale counts in the generation", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "kubectl@3+ab", generation: 2}, version{rv: "6", made: 1, fields: "kubectl@3+ab", generation: 2}),
			Named:    list("bob patch/scale 20.1-20.2"),
		}, "absent no-fact"},
		{"a status does not", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "kubectl@3+ab", generation: 2}, version{rv: "6", made: 1, fields: "kubectl@3+a", generation: 3}),
			Named:    list("bob patch/status 20.1-20.2", "alice patch 20.3-20.4"),
		}, "alice weak written-name provisional"},
		{"an apply of what is so already leaves no stamp", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "flux^@3+a kubectl@4+ab"}, version{rv: "6", made: 1, fields: "flux^@3+ab kubectl@4+ab"}),
			Named:    list("carol patch 4.1-4.2", "alice patch 7.1-7.2 by flux", "bob patch 7.3-7.4"),
		}, "alice weak written-name provisional"},
		{"nor does the first one of its field manager", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "kubectl@4+ab"}, version{rv: "6", made: 1, fields: "flux^@-+a kubectl@4+ab"}),
			Named:    list("carol patch 4.1-4.2", "alice patch 7.1-7.2 by flux"),
		}, "alice weak written-name provisional"},
		{"of two field managers' entries of one second the one that changed is the writer's", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, fields: "kubectl@7+a helm@6+b"}, version{rv: "6", made: 1, fields: "kubectl@7+a helm@7+b"}),
			Named:    list("alice patch 7.1-7.2", "bob patch 7.3-7.4 by helm"),
		}, "bob weak written-name provisional"},
		{"an eviction first writes why the pod goes", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}), Named: list("alice create/eviction 9.1-9.2"),
		}, "alice weak evicted-name provisional"},
		{"a binding leaves no stamp", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab"}), Named: list("alice create/binding 9.1-9.2 by scheduler"),
		}, "alice weak written-name provisional"},
		{"neither writes what has a stamp", 0, Evidence{
			Sighting: see(Modified, before, written), Named: list("alice create/eviction 7.1-7.2", "alice create/binding 7.1-7.2"),
		}, "absent no-fact"},
		{"the writer of the version before does not write the next one too", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 3.1-3.2")}, "absent no-fact"},
		{"a write in the second of the version before", 0, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+abc"}), Named: list("alice patch 3.4-3.5", "alice patch 3.1-3.2")}, "alice weak written-name provisional"},
		{"takes two of them", 0, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+abc"}), Named: list("alice patch 3.4-3.5")}, "absent no-fact"},
		{"or the second in which the object was made", 0, Evidence{Sighting: see(Modified, version{rv: "5", made: 3, fields: "kubectl@3"}, version{rv: "6", made: 3, fields: "kubectl@3+a"}), Named: list("alice patch 3.4-3.5")}, "alice weak written-name provisional"},
		{"a server whose clock is behind leaves an older stamp", time.Second, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab helm@2"}), Named: list("alice patch 3.1-3.2", "bob patch 2.4-2.5 by helm")}, "bob weak written-name provisional"},
		{"older requests were dropped", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 7.1-7.2"), Since: at(4)}, "absent crowded"},

		{"where clocks differ a request may look later than the next object of its name", 3 * time.Second, Evidence{
			Sighting: see(Modified, before, written), Named: list("alice patch 9.8-9.9", "bob create 9.5-9.6 created"),
		}, "alice weak written-name provisional"},
	})
}
