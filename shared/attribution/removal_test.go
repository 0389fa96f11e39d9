package attribution

import (
	"testing"
	"time"
)

func TestRemovalsResolve(t *testing.T) {
	resolveAll(t, []resolveCase{
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

		{"a forced delete of a pod that was going already", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, deletion: 39, grace: 30}, version{rv: "6", made: 1, deletion: 11}),
			Last:     record("alice delete 9.1-9.2", DeletionStarted), Gone: record("bob delete 11.1-11.2", DeletionStarted),
		}, "bob weak deleted-uid provisional"},
		{"is not the kubelet's", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, deletion: 39, grace: 30}, version{rv: "6", made: 1, deletion: 11}),
			Last:     record("alice delete 9.1-9.2", DeletionStarted), Gone: record("system:node:n1 delete 11.1-11.2", DeletionStarted),
		}, "absent mismatch"},
		{"two people's deletes of a pod that went in two steps", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 1, deletion: 39, grace: 30}, version{rv: "6", made: 1, deletion: 9}),
			Last: record("alice delete 9.1-9.2", DeletionStarted, func(r *Record) {
				r.Claims = []Claim{{Author: "alice", Received: stamp(9)}, {Author: "bob", Received: at(9.5).Format(time.RFC3339Nano)}}
			}),
		}, "absent several"},

		{"a delete that came a second after the deletionTimestamp repeats the version", 0, Evidence{
			Sighting: see(Modified, before, going), Exact: record("bob delete 11.1-11.2", DeletionStarted), Named: list("alice delete 9.1-9.2"),
		}, "alice weak deleted-name provisional"},
		{"one in that second may", 0, Evidence{
			Sighting: see(Modified, before, going), Exact: record("bob delete 9.5-9.6", DeletionStarted), Named: list("alice delete 9.1-9.2"),
		}, "absent contested"},
		{"but not after one that came later", 0, Evidence{
			Sighting: see(Modified, before, going), Exact: record("bob delete 9.5-9.6", DeletionStarted), Named: list("alice delete 9.7-9.8"),
		}, "bob exact_user provisional"},
		{"a collection delete that listed it, and a delete meanwhile that may have been a dry run", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob deletecollection 9.1-9.4", DeletionStarted), Named: list("alice delete 9.2-9.3 unverified uid u"),
		}, "absent contested"},
		{"or before", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob deletecollection 9.1-9.4", DeletionStarted), Named: list("alice delete 8.2-8.3 unverified uid u"),
		}, "bob exact_deletecollection_item provisional"},
		{"two collection deletes meanwhile, of which one was cut", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}),
			Last:     record("bob deletecollection 9.1-9.4", DeletionStarted), Scoped: list("alice deletecollection 9.2-9.3"),
		}, "absent contested"},
		{"of deletes that may have been dry runs the last", 0, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record("alice delete 9.2-9.3 unverified", DeletionFinal),
			Named: list("bob delete 8.2-8.3 unverified uid u", "alice delete 9.2-9.3 unverified uid u", "carol delete 10.2-10.3 unverified uid other"),
		}, "alice weak deleted-uid provisional"},
		{"a delete that says the object is gone did not leave it going", 0, Evidence{
			Sighting: see(Modified, before, going), Named: list("bob delete 9.1-9.2 unverified uid u", "alice delete 9.5-9.6"),
		}, "alice weak deleted-name provisional"},
		{"after a gap a delete and a write of the version that overlap", 0, Evidence{
			Sighting: see(Modified, version{}, version{rv: "7", made: 1, fields: "kubectl@9+ab", deletion: 9}),
			Exact:    record("bob delete 9.1-9.4", DeletionStarted, func(r *Record) { r.Write = record("alice patch 9.3-9.6", "") }),
		}, "absent contested"},

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

		{"the type went, and held objects with it", 0, Evidence{Sighting: see(Modified, before, going), CRDs: list("alice delete 8.1-8.2")}, "absent crd-deleted"},
		{"the type went in the second of a delete that may have been a dry run", 0, Evidence{
			Sighting: see(Modified, before, going), Named: list("bob delete 9.1-9.2 unverified"), CRDs: list("alice delete 8.1-8.2"),
		}, "absent several"},
		{"another type of the name went before the object was made", 0, Evidence{
			Sighting: see(Modified, version{rv: "5", made: 5}, version{rv: "6", made: 5, deletion: 9}), Named: list("bob delete 9.1-9.2"), CRDs: list("alice delete 3.1-3.2"),
		}, "bob weak deleted-name provisional"},
		{"the type went, and took its time", 0, func() Evidence {
			o := NewObserver("configmaps", NewFamily())
			o.Initial(before.object("web", "u"))
			o.See(Modified, version{rv: "6", made: 1, fields: "kubectl@9"}.object("db", "other"))
			s := o.See(Deleted, version{rv: "7", made: 1, fields: "kubectl@3+ab"}.object("web", "u"))
			return Evidence{Sighting: s, Last: record("bob delete 9.1-9.2 unverified", DeletionFinal), CRDs: list("alice delete 8.1-8.2")}
		}(), "absent several"},

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
		{"by a clock that is ahead it was deleted before it was made", 3 * time.Second, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(namespaceController+" deletecollection 9.1-9.2", DeletionStarted),
			Namespaces: list("carol create 8.5-8.6 created", "alice delete 7.1-7.2", "bob delete 20.1-20.2"),
		}, "alice weak namespace-deleted provisional"},
		{"or may be one of two, in one life of the namespace or the one before", 3 * time.Second, Evidence{
			Sighting: see(Deleted, before, version{rv: "6", made: 1}), Last: record(namespaceController+" deletecollection 19.1-19.2", DeletionStarted),
			Namespaces: list("dave delete 10.1-10.2", "carol create 17.1-17.2 created", "alice delete 18.1-18.2"),
		}, "absent several"},
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
	})
}
