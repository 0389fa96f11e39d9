package attribution

import (
	"slices"
	"strings"
	"time"
)

// removal names who asked for a deletion: for the change that sets a deletionTimestamp and for the one
// that takes the object away.
func (j *judge) removal() Resolution {
	var exact *Record
	if j.Exact != nil && j.Exact.removes() {
		exact = j.Exact
	}
	if exact != nil && (j.seen.Type == Deleted && !strings.HasPrefix(exact.Author, nodePrefix) || j.steps(exact)) {
		if exact.Contested(j.skew) || j.seen.Type != Deleted && j.rivalRemoval(exact) || j.seen.Previous == nil && exact.writtenMeanwhile(j.skew) {
			return nobody(WhyContested)
		}
		return j.begun(exact, classify(exact, true))
	}
	if j.seen.Narrowed && j.Exact != nil && exact == nil && j.seen.Type == Deleted {
		// A removal's version is in no answer but a delete's. This is a write's: the object lost the labels that the
		// watch asks for.
		r, _ := j.version()
		return r
	}
	if g := j.Gone; g != nil && g.removes() && !strings.HasPrefix(g.Author, nodePrefix) && j.seen.stepsDeletion() && j.seen.GraceSeconds == 0 && j.steps(g) {
		if g.Contested(j.skew) {
			return nobody(WhyContested)
		}
		return j.begun(g, classify(g, false))
	}
	if j.Last != nil && j.Last.removes() {
		if r, decided := j.deletedUID(); decided {
			return r
		}
	}
	if j.seen.Deletion.IsZero() {
		return j.gone()
	}
	return j.asked()
}

// steps tells whether the delete set the deletionTimestamp in the second that this tells. One that came later repeats
// the version.
func (j *judge) steps(r *Record) bool {
	at := j.seen.asked()
	return j.seen.Type != Deleted && r.received().Add(-j.skew).Before(at.Add(stampWidth)) && !r.staged().Add(j.skew).Before(at)
}

// rivalRemoval tells whether somebody else's delete, which shows less than the record's, may have come before it.
func (j *judge) rivalRemoval(r *Record) bool {
	at := j.seen.asked()
	rivals := func(other *Request) bool {
		switch {
		case other.Author == r.Author || !other.Received.Add(-j.skew).Before(r.staged()):
			return false
		case j.seen.Deletion.IsZero():
			return !other.Staged.Add(j.skew).Before(r.received())
		}
		return other.UID == "" && j.meets(other, at)
	}
	for i := range j.Named {
		if other := &j.Named[i]; other.removes() && j.mine(other) && rivals(other) {
			return true
		}
	}
	for i := range j.Scoped {
		if other := &j.Scoped[i]; rivals(other) && j.covers(other) != spared {
			return true
		}
	}
	return false
}

// deletedUID judges the deletion that is filed under the object's uid. It does not decide over one that may
// have been a dry run.
func (j *judge) deletedUID() (Resolution, bool) {
	last := j.Last
	switch {
	case last.Unverified:
		return Resolution{}, false
	case last.Contested(j.skew):
		return nobody(WhyContested), true
	case strings.HasPrefix(last.Author, nodePrefix) && !j.seen.Deletion.IsZero():
		return nobody(WhyUninitiated), true
	case j.seen.stepsDeletion() && !j.seen.Previous.Deletion.IsZero() && last.shared():
		return nobody(WhySeveral), true // the first one's was the step before, this may be the next one's
	}
	if !j.seen.Deletion.IsZero() {
		at := j.seen.asked()
		late := !last.received().Add(-j.skew).Before(at.Add(stampWidth))
		early := j.seen.stepsDeletion() && last.staged().Add(j.skew).Before(at)
		if late || early {
			return nobody(WhyMismatch), true
		}
	}
	if last.Deletion == DeletionStarted && j.rivalRemoval(last) {
		return nobody(WhyContested), true
	}
	return j.begun(last, classify(last, false)), true
}

// begun names the author of a recorded deletion or, when a controller only completed it, whoever began it.
func (j *judge) begun(r *Record, result Result) Resolution {
	if out, by := j.initiator(r.Author, r.received()); by {
		return out
	}
	out := Resolution{Fact: r.Fact, Result: result, Provisional: r.Deletion != DeletionFinal || j.seen.Narrowed}
	if result == Weak {
		out.Fact.Tier = TierDeleted
	}
	return out
}

// asked names the only one whose delete, eviction or collection delete was under way in the second that the
// deletionTimestamp tells.
func (j *judge) asked() Resolution {
	at := j.seen.asked()
	if j.incomplete(at) {
		return nobody(WhyCrowded)
	}
	var found people
	tier := TierScope
	for i := range j.Named {
		r := &j.Named[i]
		if r.removes() && r.UID == "" && j.mine(r) && j.meets(r, at) { // a uid would tell that it was gone at once
			if tier = TierDeletedName; r.Subresource == subresourceEviction {
				tier = TierEvicted
			}
			found.add(r)
		}
	}
	for i := range j.Scoped {
		r := &j.Scoped[i]
		switch {
		case !j.meets(r, at):
		case j.covers(r) == covered:
			found.add(r)
		case j.covers(r) == unknown:
			found.several = true
		}
	}
	if j.typeWent(func(r *Request) bool { return r.Received.Add(-j.skew).Before(at.Add(stampWidth)) }) {
		if found.latest == nil {
			return nobody(WhyCRDDeleted)
		}
		found.several = true
	}
	return j.began(&found, tier)
}

// typeWent tells whether the type's deletion may have taken the object along: it began before the change, as early
// tells, and not before the object was made.
func (j *judge) typeWent(early func(*Request) bool) bool {
	for i := range j.CRDs {
		r := &j.CRDs[i]
		if r.removes() && r.Subresource == "" && early(r) && !r.Staged.Add(j.skew).Before(j.seen.Created) && !j.seen.beforeType(j.GroupResource) {
			return true
		}
	}
	return false
}

// gone names the only one whose request can have removed an object that shows no deletionTimestamp. A
// delete that was answered proves that the object was still there when it was received, so what ended
// before cannot have removed it; and what came before the object's last sign of life was a dry run.
func (j *judge) gone() Resolution {
	if j.seen.Narrowed {
		return nobody(WhyNarrowed)
	}
	var all []Request
	for i := range j.Named {
		if r := &j.Named[i]; r.removes() && j.mine(r) && j.possible(r) {
			all = append(all, *r)
		}
	}
	if last := j.Last; last != nil && last.Unverified && last.removes() && !slices.ContainsFunc(all, func(r Request) bool { return r.UID != "" }) {
		if last.Contested(j.skew) {
			return nobody(WhyContested)
		}
		r := last.request()
		r.UID = j.seen.UID
		all = append(all, r)
	}
	if j.incomplete(j.seen.After) {
		return nobody(WhyCrowded)
	}
	alive := j.lastSignOfLife()
	for i := range all {
		if all[i].Received.After(alive) && j.surelyMine(&all[i]) {
			alive = all[i].Received
		}
	}
	uncertain := false
	deletes := len(all)
	for i := range j.Scoped {
		switch r := &j.Scoped[i]; {
		case r.Staged.Add(j.skew).Before(j.seen.Created) || r.Staged.Add(j.skew).Before(alive):
		case j.covers(r) == covered:
			all = append(all, *r)
		case j.covers(r) == unknown && j.possible(r):
			uncertain = true
		}
	}
	var found people
	tier := TierScope
	for i := range all {
		r := &all[i]
		if r.Staged.Add(j.skew).Before(alive) || !j.possible(r) {
			continue
		}
		if i < deletes {
			if tier = TierDeletedName; r.UID != "" {
				tier = TierDeleted
			}
		}
		found.add(r)
	}
	if j.typeWent(func(r *Request) bool { return j.seen.Before.IsZero() || r.Received.Add(-j.skew).Before(j.seen.Before) }) {
		if found.latest == nil {
			return nobody(WhyCRDDeleted)
		}
		found.several = true
	}
	found.several = found.several || uncertain
	return j.began(&found, tier)
}

// possible tells whether the request was under way between the bounds of the change's time.
func (j *judge) possible(r *Request) bool {
	if !j.seen.Before.IsZero() && !r.Received.Add(-j.skew).Before(j.seen.Before) {
		return false
	}
	return !r.Staged.Add(j.skew).Before(j.seen.After)
}

// lastSignOfLife is a time at which the object was still there: its newest stamp, and every successful
// request to it but deletes, which are weighed apart.
func (j *judge) lastSignOfLife() time.Time {
	alive := j.seen.touched()
	for i := range j.Named {
		r := &j.Named[i]
		if !r.Created && !r.removes() && r.UID == j.seen.UID && r.Received.After(alive) {
			alive = r.Received
		}
	}
	return alive
}

// began is one, for deletions that a controller may only have completed.
func (j *judge) began(found *people, tier Tier) Resolution {
	out := j.one(found, tier)
	if out.Result == Absent {
		return out
	}
	if by, found := j.initiator(found.latest.Author, found.latest.Received); found {
		return by
	}
	return out
}

// request is the record's request as one of several to choose from.
func (r *Record) request() Request {
	return Request{
		Author: r.Author, DisplayName: r.DisplayName, Email: r.Email, ImpersonatedBy: r.ImpersonatedBy, AuditID: r.AuditID,
		Verb: r.Verb, Subresource: r.Subresource, Received: r.received(), Staged: r.staged(), Manager: r.Manager, Unverified: r.Unverified,
	}
}

// cover is whether a collection delete asked for the object.
type cover int

const (
	spared cover = iota
	covered
	unknown
)

// covers holds the object against the selectors of a collection delete.
func (j *judge) covers(r *Request) cover {
	for _, term := range strings.Split(r.FieldSelector, ",") {
		key, value, _ := strings.Cut(term, "=")
		value = strings.TrimPrefix(value, "=")
		switch {
		case term == "":
		case key == "metadata.name":
			if value != j.seen.Name {
				return spared
			}
		case key == "metadata.namespace":
			if value != j.seen.Namespace {
				return spared
			}
		default:
			return unknown
		}
	}
	if r.LabelSelector == "" {
		return covered
	}
	selected, known := selects(r.LabelSelector, j.seen.Labels)
	switch {
	case !known:
		return unknown
	case !selected:
		return spared
	}
	return covered
}
