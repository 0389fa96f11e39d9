// Package attribution holds the rules by which Tidemark names the author of a change: which audit
// events count (Admit), what a counted event proves and under which keys that proof is filed
// (Facts), and which author, if any, all the proof together names for one watched change (Resolve).
//
// Everything here is pure: no I/O and no clock. Time is known only from the stamps that API servers
// put into audit events and objects. The rule above all rules is that a wrong name is worse than
// none, so whatever leaves two people possible names nobody.
//
// # Evidence
//
// A request that shows both the object's uid and the version that it wrote is exact evidence. It is only
// doubted: a request that changed nothing shows the same two, so the earliest one has the version, and nobody
// when requests of two people overlap (Record.Contested); with a Sighting it must also fit the stamps that the
// version carries. All other evidence is weak and has a Tier:
//
//	version            a write whose answer shows the version but no uid (a Table)
//	deleted-uid        a delete of this uid: who began the deletion, not who removed the last finalizer
//	deleted-name       the only delete of this name that fits the object's deletionTimestamp, or its end
//	evicted-name       the only eviction that fits it
//	collection-scope   the only collection delete that asked for the object
//	owner-deleted      who deleted the owner, of what the garbage collector removed
//	namespace-deleted  who deleted the namespace, of what its controller removed
//	replaced-version   the last request that named the version before this one as the one it replaces
//	written-name       the only request to this name that fits the change's time and field manager
//	created-name       the only create of this name at the object's creation
//
// A request fits a stamp when it was under way in the second that the stamp tells, give or take what the API
// servers' clocks may differ by. The stamp of a change is that of the managedFields entry which changed. Updates that
// only take fields away, applies of what is so already, writes of /scale, evictions and bindings leave none; then
// every request since the version before is possible that may leave the entries so.
//
// What cannot be told apart from a dry run (a delete at the Metadata level) only counts when nothing else fits,
// and not when the object shows signs of life after it.
//
// No rule can see a writer whom the audit policy leaves out. Where a policy excludes one writer of a resource and
// lets another's requests in, the second may be taken for the first: a policy must not exclude any writer of a
// mirrored resource.
//
// # Order
//
// Audit events come late, twice and out of order, from several API servers. What is stored does not depend on
// that. What is answered may change until the last event has come, so an answer that one could still change is
// Provisional: whoever commits it waits for the grace to end.
package attribution
