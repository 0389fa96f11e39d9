package attribution

import "slices"

// fits tells whether the request that a record is about can have left the version as it is. A request that changed
// nothing repeats the version of an earlier one: that one's stamp is not of its time, or not of its field manager.
func (j *judge) fits(r *Record) bool {
	own := r.Manager != "" || r.Received != "" // gitops-reverser's facts have neither
	switch {
	case r.Proven || !own:
		return true
	case j.seen.Type == Added && !j.seen.Narrowed:
		return r.Verb == verbCreate // any other request that makes an object is answered so, and proven
	}
	request := r.request()
	return j.possible(&request) && j.leaves(&request)
}

// rivalled tells whether somebody else's request, which does not show its version, may have written this one, so that
// the record's changed nothing.
func (j *judge) rivalled(r *Record) bool {
	if r.Proven {
		return false
	}
	for i := range j.Named {
		other := &j.Named[i]
		if other.Author == r.Author || !other.Received.Add(-j.skew).Before(r.staged()) {
			continue
		}
		if j.seen.Type == Added {
			if other.Created && j.mine(other) && j.meets(other, j.seen.Created) {
				return true
			}
		} else if j.seen.Previous != nil && j.writes(other) && j.couldWrite(other) &&
			(other.Replaces == "" || other.Replaces == j.seen.Previous.ResourceVersion) {
			return true
		}
	}
	return false
}

// mismatched is for a version that all records of it only repeat: whatever else there is may tell its author.
func (j *judge) mismatched() Resolution {
	out := j.written
	if j.seen.Type == Added {
		out = j.created
	}
	if r := out(); r.Result != Absent {
		return r
	}
	return nobody(WhyMismatch)
}

// couldWrite holds a request against the stamps and the time of the version.
func (j *judge) couldWrite(r *Request) bool {
	return !j.wroteNext(r) && j.possible(r) && !r.Staged.Add(j.skew).Before(j.seen.Previous.touched()) && j.leaves(r) && !j.wroteBefore(r)
}

// wroteBefore tells whether the request is the only one that can have stamped an entry which had its stamp already in
// the version before.
func (j *judge) wroteBefore(r *Request) bool {
	switch r.Subresource {
	case subresourceScale, subresourceEviction, subresourceBinding:
		return false
	}
	found := false
	for _, m := range j.seen.stampedBefore() {
		if !m.by(r.Manager, r.Subresource) || !j.meets(r, m.Time) {
			continue
		}
		for i := range j.Named {
			other := &j.Named[i]
			if other != r && (other.Created || j.writes(other)) && m.by(other.Manager, other.Subresource) && j.meets(other, m.Time) {
				return false
			}
		}
		found = true
	}
	return found
}

// leaves tells whether the request can have left the managedFields and the generation as they are.
func (j *judge) leaves(r *Request) bool {
	if !j.seen.counts(r) {
		return false
	}
	did := j.seen.stamps()
	shows := func(m ManagedEntry) bool { return r.Manager == "" || m.by(r.Manager, r.Subresource) }
	stamps := func(m ManagedEntry) bool { return shows(m) && !m.Time.IsZero() && j.meets(r, m.Time) }
	switch {
	case !did.known:
		return true
	case r.Subresource == subresourceEviction || r.Subresource == subresourceBinding:
		return did.same
	case len(did.fresh) > 0:
		return slices.ContainsFunc(did.fresh, stamps)
	case len(did.applied) > 0:
		return slices.ContainsFunc(did.applied, shows)
	case did.scaled:
		return r.Subresource == subresourceScale
	case did.same:
		return r.Subresource == subresourceScale || slices.ContainsFunc(j.seen.Managed, stamps)
	}
	return true
}

// wroteNext tells whether the request came too late for this change, by the stamp of the next one, or is the
// only one that can have made that. A request makes one change.
func (j *judge) wroteNext(r *Request) bool {
	next := j.seen.Next
	if next == nil {
		return false
	}
	stamp := next.stamped()
	if stamp.IsZero() {
		return false
	}
	if !r.Received.Add(-j.skew).Before(stamp.Add(stampWidth)) {
		return true
	}
	after := judge{Evidence: j.Evidence, seen: next, skew: j.skew}
	var only *Request
	for i := range j.Named {
		other := &j.Named[i]
		if !after.writes(other) || other.Replaces != "" && other.Replaces != j.seen.ResourceVersion || !after.leaves(other) {
			continue
		}
		if only != nil {
			return false
		}
		only = other
	}
	return only == r
}
