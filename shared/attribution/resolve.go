package attribution

import (
	"strings"
	"time"
)

// Evidence is everything that was found about one change. What is nil was not there or not asked for.
type Evidence struct {
	GroupResource string
	// Exact is filed under the uid and the version, Last under the uid, Version under the version alone.
	// Whoever looks up leaves Last nil for a change that is not a removal.
	Exact, Last, Version *Record

	// Gone is filed under the uid and the version in which the object was gone, where that came next. Some deletes answer
	// with it, and have made this change on the way.
	Gone *Record

	// Sighting is what the watch saw. What follows is only looked at with it.
	Sighting *Sighting
	// Named are the requests under the object's name, Scoped the collection deletes of its resource in its
	// namespace and in all.
	Named, Scoped []Request
	// Since is when Named and Scoped begin, where older requests have been dropped to bound them.
	Since time.Time
	// Namespaces and CRDs are the requests under the name of the object's namespace and of its type.
	Namespaces, CRDs []Request
	// Owners are what was found about the deletions of the object's owners.
	Owners []OwnerEvidence
}

// OwnerEvidence is what was found about the deletion of an owner.
type OwnerEvidence struct {
	// Deletion is filed under the owner's uid.
	Deletion *Record
	// Removal is everything about its removal, where that was seen.
	Removal *Evidence
	Owners  []OwnerEvidence
}

// Resolve names the author of a change, or nobody. skew is what the API servers' clocks may differ by.
func Resolve(e *Evidence, skew time.Duration) Resolution {
	if e.Sighting != nil {
		j := judge{Evidence: e, seen: e.Sighting, skew: skew}
		return j.resolve()
	}
	for _, r := range []*Record{e.Exact, e.Last, e.Version} {
		if r == nil {
			continue
		}
		if r.Contested(skew) {
			return nobody(WhyContested)
		}
		return Resolution{Fact: r.Fact, Result: classify(r, r == e.Exact)}
	}
	return nobody(WhyNoFact)
}

func nobody(why Why) Resolution { return Resolution{Result: Absent, Why: why} }

func classify(r *Record, exact bool) Result {
	switch {
	case r.Verb == verbDeleteCollection:
		return ExactDeleteCollectionItem
	case !exact:
		return Weak
	case r.IsServiceAccount || strings.HasPrefix(r.Author, serviceAccountPrefix):
		return ExactServiceAccount
	}
	return ExactUser
}

// judge holds the evidence against what was seen.
type judge struct {
	*Evidence
	seen *Sighting
	skew time.Duration
}

func (j *judge) resolve() Resolution {
	if j.seen.Type == Deleted || j.seen.stepsDeletion() || j.mayStepDeletion() {
		return j.removal()
	}
	if r, found := j.version(); found {
		return r
	}
	if j.seen.Type == Added {
		return j.created()
	}
	return j.written()
}

// mayStepDeletion is for a change of which the version before was not seen: that it set the
// deletionTimestamp is then known from the delete that holds its version, unless a write has it that came before.
func (j *judge) mayStepDeletion() bool {
	return j.seen.Previous == nil && !j.seen.Deletion.IsZero() && j.Exact != nil && j.Exact.removes() &&
		(j.Exact.Write == nil || j.Exact.staged().Before(j.Exact.Write.staged()))
}

// version judges the records that hold the very version.
func (j *judge) version() (Resolution, bool) {
	r := j.Exact
	if r != nil && r.removes() && r.Write != nil {
		r = r.Write // the deletion began before this version, so the delete repeats it
	}
	if v := j.Version; v != nil && v.Name == j.seen.Name && v.Namespace == j.seen.Namespace {
		switch {
		case r == nil:
			r = v
		case r.Author != v.Author && overlap(r, v, j.skew):
			return nobody(WhyContested), true
		case v.staged().Before(r.staged()):
			r = v
		}
	}
	switch {
	case r == nil:
		return Resolution{}, false
	case !r.Proven && r.Contested(j.skew):
		return nobody(WhyContested), true
	case r.removes():
		return nobody(WhyMismatch), true
	case !j.fits(r):
		return j.mismatched(), true
	case j.rivalled(r):
		return nobody(WhyContested), true
	}
	out := Resolution{Fact: r.Fact, Result: classify(r, r != j.Version), Provisional: !r.Proven}
	if out.Result == Weak {
		out.Fact.Tier = TierVersion
	}
	return out, true
}

// created names the author of an object that was made by a request which does not show it.
func (j *judge) created() Resolution {
	if j.incomplete(j.seen.Created) {
		return nobody(WhyCrowded)
	}
	if !j.seen.touched().Before(j.seen.Created.Add(2 * stampWidth)) {
		return nobody(WhyGap) // it was written after it was made
	}
	var found people
	for i := range j.Named {
		r := &j.Named[i]
		if j.seen.Narrowed && j.writes(r) && j.meets(r, j.seen.Created) {
			found.add(r)
		}
		if r.Created && j.mine(r) && j.meets(r, j.seen.Created) && j.seen.managedBy(r.Manager) {
			found.add(r)
		}
	}
	return j.one(&found, TierCreated)
}

// written names the author of a change that was made by a request which does not show its version. Of the
// requests that named the version before as the one they replace, only the last can have replaced it; and
// whatever was answered before that one was received cannot have either.
func (j *judge) written() Resolution {
	if j.seen.Previous == nil {
		return nobody(WhyGap)
	}
	if j.incomplete(j.seen.Previous.touched()) {
		return nobody(WhyCrowded)
	}
	replaced := j.seen.Previous.ResourceVersion
	var standing time.Time // the version before still stood when a request that named it was received
	for i := range j.Named {
		r := &j.Named[i]
		if j.writes(r) && r.Replaces == replaced && r.Received.After(standing) {
			standing = r.Received
		}
	}
	var found people
	var claimed bool
	for i := range j.Named {
		r := &j.Named[i]
		if !j.writes(r) || r.Replaces != "" && r.Replaces != replaced {
			continue
		}
		if r.Staged.Add(j.skew).Before(standing) || !j.couldWrite(r) {
			continue
		}
		claimed = claimed || r.Replaces != ""
		found.add(r)
	}
	switch {
	case claimed:
		return j.one(&found, TierReplaced)
	case found.latest != nil && found.latest.Subresource == subresourceEviction:
		return j.one(&found, TierEvicted)
	}
	return j.one(&found, TierWritten)
}

// writes tells whether the request may have changed the object without making or removing it. An eviction first
// writes into the pod that it will be disrupted.
func (j *judge) writes(r *Request) bool {
	if r.Subresource == subresourceEviction && j.seen.Deletion.IsZero() {
		return j.mine(r)
	}
	return !r.Created && !r.removes() && j.mine(r)
}

// mine tells whether the request can be about this object and not about another that had its name.
func (j *judge) mine(r *Request) bool {
	if r.UID != "" {
		return r.UID == j.seen.UID
	}
	if _, next := j.nextMade(); !next.IsZero() && !r.Created && r.Received.Add(-j.skew).After(next) {
		return false
	}
	return !r.Staged.Add(j.skew).Before(j.seen.Created)
}

// surelyMine tells whether the request cannot be about a later object of the name.
func (j *judge) surelyMine(r *Request) bool {
	next, _ := j.nextMade()
	return r.UID == j.seen.UID || next.IsZero() || r.Staged.Add(j.skew).Before(next)
}

// nextMade is between when and when another object of the same name was made, as far as requests and the watch tell.
func (j *judge) nextMade() (from, to time.Time) {
	if j.seen.life != nil && !j.seen.life.next.IsZero() {
		from = j.seen.life.next
		to = from.Add(stampWidth)
	}
	for i := range j.Named {
		r := &j.Named[i]
		if !r.Created || !r.Received.Add(-j.skew).After(j.seen.Created.Add(stampWidth)) {
			continue
		}
		if from.IsZero() || r.Received.Before(from) {
			from = r.Received
		}
		if to.IsZero() || r.Staged.Before(to) {
			to = r.Staged
		}
	}
	return from, to
}

// meets tells whether the request was under way in the second that a stamp tells.
func (j *judge) meets(r *Request, stamp time.Time) bool {
	return r.Received.Add(-j.skew).Before(stamp.Add(stampWidth)) && !r.Staged.Add(j.skew).Before(stamp)
}

// incomplete tells whether requests from as early as t may have been dropped.
func (j *judge) incomplete(t time.Time) bool {
	return !j.Since.IsZero() && !t.After(j.Since.Add(j.skew))
}

// stampWidth is how exact the stamps of objects are.
const stampWidth = time.Second

// one names the author when all requests that were found are one person's.
func (j *judge) one(found *people, tier Tier) Resolution {
	switch {
	case found.latest == nil:
		return nobody(WhyNoFact)
	case found.several:
		return nobody(WhySeveral)
	}
	return Resolution{Fact: found.latest.fact(j.GroupResource, j.seen, tier), Result: Weak, Provisional: true}
}

// people gathers requests that fit.
type people struct {
	latest  *Request
	several bool
}

func (p *people) add(r *Request) {
	if p.latest != nil && p.latest.Author != r.Author {
		p.several = true
	}
	if p.latest == nil || r.Staged.After(p.latest.Staged) {
		p.latest = r
	}
}

func (r *Record) staged() time.Time {
	t, _ := parseInstant(r.StageTimestamp)
	return t
}

func (r *Record) received() time.Time {
	if t, ok := parseInstant(r.Received); ok {
		return t
	}
	return r.staged()
}

// removes tells whether the record is of a deletion.
func (r *Record) removes() bool {
	return r.Deletion != DeletionNone || strings.EqualFold(r.Verb, verbDelete) || r.Verb == verbDeleteCollection
}

func overlap(a, b *Record, skew time.Duration) bool {
	return a.received().Before(b.staged().Add(skew)) && b.received().Before(a.staged().Add(skew))
}
