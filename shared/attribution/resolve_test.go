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
// more extras, the more fields the entry has; "manager@-" has no time.
type version struct {
	rv       string
	made     float64
	fields   string
	deletion float64 // 0: none
	grace    int64
	labels   string // "k=v"
	owner    string
}

func (v version) object(name, uid string) map[string]any {
	meta := map[string]any{"namespace": "shop", "name": name, "uid": uid, "resourceVersion": v.rv, "creationTimestamp": stamp(v.made)}
	if v.deletion != 0 {
		meta["deletionTimestamp"] = stamp(v.deletion)
		meta["deletionGracePeriodSeconds"] = v.grace
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
		Fact:     Fact{Author: r.Author, Verb: r.Verb, Name: "web", Namespace: "shop", StageTimestamp: r.Staged.Format(time.RFC3339Nano)},
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

func TestResolve(t *testing.T) {
	before := version{rv: "5", made: 1, fields: "kubectl@3+ab"}
	written := version{rv: "6", made: 1, fields: "kubectl@7+ab"}
	trimmed := version{rv: "6", made: 1, fields: "kubectl@3+a"}
	going := version{rv: "6", made: 1, fields: "kubectl@3+ab", deletion: 9}
	for _, c := range []struct {
		name string
		skew time.Duration
		in   Evidence
		want string
	}{
		// The version's own records.
		{"the record of the version", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice patch 7.1-7.2", "")}, "alice exact_user provisional"},
		{"a record that no late one can outdo", 0, Evidence{Sighting: see(Modified, before, written), Exact: record("alice update 7.1-7.2", "", proven)}, "alice exact_user"},
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
		{"a scale leaves an entry without a time, so the older stamp tells nothing", 0, Evidence{
			Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab kubectl/scale@-+r"}),
			Named:    list("alice patch 3.1-3.2", "bob patch/scale 20.1-20.2"),
		}, "absent several"},
		{"the writer of the version before does not write the next one too", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 3.1-3.2")}, "absent no-fact"},
		{"a write in the second of the version before", 0, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+abc"}), Named: list("alice patch 3.4-3.5")}, "alice weak written-name provisional"},
		{"a server whose clock is behind leaves an older stamp", time.Second, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, fields: "kubectl@3+ab helm@2"}), Named: list("alice patch 3.1-3.2", "bob patch 2.4-2.5 by helm")}, "absent several"},
		{"older requests were dropped", 0, Evidence{Sighting: see(Modified, before, written), Named: list("alice patch 7.1-7.2"), Since: at(4)}, "absent crowded"},

		// Removals that a uid tells.
		{"a delete of the uid", 0, Evidence{Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record("alice delete 7.1-7.2", DeletionFinal)}, "alice weak deleted-uid"},
		{"the last write is no deletion", 0, Evidence{Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record("alice patch 7.1-7.2", "")}, "absent no-fact"},
		{"the first step of a pod's removal", 0, Evidence{Sighting: see(Modified, before, going), Last: record("alice delete 9.1-9.2", DeletionStarted)}, "alice weak deleted-uid provisional"},
		{"not by a delete before it", 0, Evidence{Sighting: see(Modified, before, going), Last: record("alice delete 7.1-7.2", DeletionStarted)}, "absent mismatch"},
		{"nor by one after it, of which the first has not arrived", 0, Evidence{Sighting: see(Deleted, going, version{rv: "7", made: 1, deletion: 9}), Last: record("bob delete 12.1-12.2", DeletionStarted)}, "absent mismatch"},
		{"whoever removed the finalizer did not ask for it", 0, Evidence{
			Sighting: see(Deleted, going, version{rv: "7", made: 1, deletion: 9}), Exact: record("bot patch 20.1-20.2", ""), Last: record("alice delete 9.1-9.2", DeletionStarted),
		}, "alice weak deleted-uid provisional"},
		{"a kubelet only completes what somebody asked for", 0, Evidence{
			Sighting: see(Deleted, going, version{rv: "7", made: 1, deletion: 9}),
			Exact:    record("system:node:n1 delete 9.5-9.6", DeletionStarted), Last: record("alice delete 7.1-7.2", DeletionStarted),
		}, "alice weak deleted-uid provisional"},
		{"and is not named when nobody's request is known", 0, Evidence{
			Sighting: see(Deleted, going, version{rv: "7", made: 1, deletion: 9}),
			Exact:    record("system:node:n1 delete 9.5-9.6", DeletionStarted), Last: record("system:node:n1 delete 9.5-9.6", DeletionStarted),
		}, "absent initiator-unknown"},
		{"what answered that it was gone, of an object that was only going, was a dry run", 0, Evidence{
			Sighting: see(Deleted, going, version{rv: "7", made: 1, deletion: 9}),
			Last:     record("bob delete 7.1-7.2 unverified", DeletionFinal), Named: list("alice delete 9.1-9.2"),
		}, "alice weak deleted-name provisional"},

		// Removals that a name or a scope tells.
		{"the delete in the second that the object tells", 0, Evidence{Sighting: see(Modified, before, going), Named: list("bob delete 7.1-7.2", "alice delete 9.1-9.2", "carol delete 10.1-10.2")}, "alice weak deleted-name provisional"},
		{"two people's in that second", 0, Evidence{Sighting: see(Modified, before, going), Named: list("alice delete 9.1-9.2", "carol delete 9.8-9.9")}, "absent several"},
		{"a grace period lies between", 0, Evidence{Sighting: see(Modified, before, version{rv: "6", made: 1, deletion: 39, grace: 30}), Named: list("alice create/eviction 9.1-9.2", "bob delete 39.1-39.2")}, "alice weak evicted-name provisional"},
		{"an eviction of a pod that had the name before", 0, Evidence{Sighting: see(Modified, version{rv: "5", made: 8}, version{rv: "6", made: 8, deletion: 9}), Named: list("alice create/eviction 7.1-7.2")}, "absent no-fact"},
		{"a collection delete that covers it", 0, Evidence{
			Sighting: see(Deleted, version{rv: "5", made: 1, labels: "tier=cache"}, version{rv: "6", made: 1, labels: "tier=cache"}),
			Scoped:   list("alice deletecollection 7.1-7.2 labels tier=cache", "bob deletecollection 7.1-7.2 labels tier=db", "carol deletecollection 7.1-7.2 fields metadata.name=db"),
		}, "alice weak collection-scope provisional"},
		{"a selector that cannot be held against the object", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Scoped:   list("alice deletecollection 7.1-7.2", "bob deletecollection 7.1-7.2 fields spec.nodeName=n"),
		}, "absent several"},
		{"two collection deletes cover it", 0, Evidence{Sighting: see(Deleted, before, version{rv: "6", made: 1}), Scoped: list("alice deletecollection 7.1-7.2", "bob deletecollection 9.1-9.2")}, "absent several"},
		{"a collection delete before the object was made", 0, Evidence{Sighting: see(Deleted, version{rv: "5", made: 8}, version{rv: "6", made: 8}), Scoped: list("alice deletecollection 7.1-7.2")}, "absent no-fact"},
		{"one that the object outlived was a dry run", 0, Evidence{Sighting: see(Deleted, before, version{rv: "6", made: 1, fields: "kubectl@8"}), Scoped: list("alice deletecollection 7.1-7.2")}, "absent no-fact"},
		{"or that a later update of it shows to have been one", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Scoped: list("alice deletecollection 7.1-7.2"), Named: list("carol update 8.1-8.2 uid u replacing 5"),
		}, "absent no-fact"},
		{"a delete that may have been a dry run, then a collection delete", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob delete 7.1-7.2 unverified", DeletionFinal), Scoped: list("alice deletecollection 8.1-8.2"),
		}, "absent several"},
		{"a collection delete, then a delete that was answered", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob delete 9.1-9.2 unverified", DeletionFinal), Scoped: list("alice deletecollection 8.1-8.2"),
		}, "bob weak deleted-uid provisional"},
		{"deletes of a later object of the name", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("alice delete 7.1-7.2 unverified", DeletionFinal), Named: list("bob create 8.1-8.2 created", "carol delete 9.1-9.2"),
		}, "alice weak deleted-uid provisional"},
		{"the type went", 0, Evidence{Sighting: see(Deleted, before, version{rv: "6", made: 1}), CRDs: list("alice delete 7.1-7.2")}, "absent crd-deleted"},
		{"the type went after a delete that may have been a dry run", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob delete 7.1-7.2 unverified", DeletionFinal), CRDs: list("alice delete 8.1-8.2"),
		}, "absent several"},

		// A watch of some labels only.
		{"a write took the labels that the watch asks for", 0, Evidence{Sighting: narrowed(see(Deleted, before, version{rv: "6", made: 1, fields: "kubectl@3"})), Exact: record("alice patch 7.1-7.2", "")}, "alice exact_user provisional"},
		{"perhaps it only lost the labels", 0, Evidence{Sighting: narrowed(see(Deleted, before, version{rv: "6", made: 1})), Last: record("bob delete 7.1-7.2 unverified", DeletionFinal)}, "absent narrowed"},
		{"it got the labels after it was made", 0, Evidence{Sighting: narrowed(see(Added, version{rv: "6", made: 1, fields: "kubectl@5"})), Named: list("alice create 1.1-1.2 created", "bob patch 5.1-5.2")}, "absent gap"},
		{"within the second", 0, Evidence{Sighting: narrowed(see(Added, version{rv: "6", made: 1, fields: "kubectl@1"})), Named: list("alice create 1.1-1.2 created", "bob patch 1.5-1.6")}, "absent several"},

		// Removals that a controller completes.
		{"a namespace takes its objects along", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(namespaceController+" deletecollection 9.1-9.2", DeletionStarted),
			Namespaces: list("dave delete 0.1-0.2", "carol create 1.1-1.2 created", "alice delete 8.1-8.2", "bob delete 8.5-8.6"),
		}, "alice weak namespace-deleted provisional"},
		{"who deleted the namespace is unknown", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Scoped: list(namespaceController + " deletecollection 9.1-9.2"),
		}, "absent initiator-unknown"},
		{"or may be one of two", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Scoped: list(namespaceController + " deletecollection 9.1-9.2"),
			Namespaces: list("alice delete 8.1-8.2 unverified", "bob delete 8.5-8.6 unverified"),
		}, "absent several"},
		{"an owner takes its objects along", 0, Evidence{
			Sighting: see(Deleted, version{rv: "5", made: 1, owner: "o"}, version{rv: "6", made: 1, owner: "o"}), Last: record(garbageCollector+" delete 9.1-9.2", DeletionFinal),
			Owners: []OwnerEvidence{{Deletion: record("alice delete 8.1-8.2", DeletionFinal)}},
		}, "alice weak owner-deleted provisional"},
		{"so does an owner's owner", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(garbageCollector+" delete 9.1-9.2", DeletionFinal),
			Owners: []OwnerEvidence{{
				Deletion: record(garbageCollector+" delete 8.5-8.6", DeletionFinal),
				Owners:   []OwnerEvidence{{Deletion: record("alice delete 8.1-8.2", DeletionFinal)}},
			}},
		}, "alice weak owner-deleted provisional"},
		{"not when the owner's deletion may have been a dry run", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(garbageCollector+" delete 9.1-9.2", DeletionFinal),
			Owners: []OwnerEvidence{{Deletion: record("bob delete 8.1-8.2 unverified", DeletionFinal)}},
		}, "absent initiator-unknown"},
		{"but when the owner's own removal tells", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(garbageCollector+" delete 9.5-9.6", DeletionFinal),
			Owners: []OwnerEvidence{{
				Deletion: record("bob delete 8.1-8.2 unverified", DeletionFinal),
				Removal:  &Evidence{Sighting: see(Modified, before, going), Last: record("bob delete 8.1-8.2 unverified", DeletionFinal), Named: list("alice delete 9.1-9.2")},
			}},
		}, "alice weak owner-deleted provisional"},
		{"two owners by two people", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(garbageCollector+" delete 9.1-9.2", DeletionFinal),
			Owners: []OwnerEvidence{{Deletion: record("alice delete 8.1-8.2", DeletionFinal)}, {Deletion: record("bob delete 8.3-8.4", DeletionFinal)}},
		}, "absent several"},
		{"nobody's deletion of an owner is known", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(garbageCollector+" delete 9.1-9.2", DeletionFinal), Owners: []OwnerEvidence{{}},
		}, "absent initiator-unknown"},
	} {
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
