package attribution

import "time"

// Controllers that complete what somebody else began.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	nodePrefix          = "system:node:"
)

// initiator names who began a removal that the author, a controller, completed. It tells with by whether
// the author is such a controller.
func (j *judge) initiator(author string, received time.Time) (out Resolution, by bool) {
	switch author {
	case garbageCollector:
		return j.ownersDeletion(received), true
	case namespaceController:
		return j.namespaceDeletion(received), true
	}
	return Resolution{}, false
}

// ownersDeletion names who removed the owners of an object that was collected: all of them the same person.
func (j *judge) ownersDeletion(collected time.Time) Resolution {
	var first *Fact
	for i := range j.Owners {
		found, ok := j.ownerDeletion(&j.Owners[i], collected)
		switch {
		case !ok:
			return nobody(WhyUninitiated)
		case first != nil && first.Author != found.Author:
			return nobody(WhySeveral)
		}
		first = &found
	}
	if first == nil {
		return nobody(WhyUninitiated)
	}
	out := Resolution{Fact: *first, Result: Weak, Provisional: true}
	out.Fact.Tier = TierOwner
	return out
}

func (j *judge) ownerDeletion(o *OwnerEvidence, collected time.Time) (Fact, bool) {
	if o.Removal != nil {
		r := Resolve(o.Removal, j.skew)
		return r.Fact, r.Result != Absent
	}
	r := o.Deletion
	if r == nil || !r.removes() || r.Unverified || r.Contested(j.skew) || r.received().Add(-j.skew).After(collected) {
		return Fact{}, false
	}
	var out Resolution
	switch r.Author {
	case garbageCollector:
		above := judge{Evidence: &Evidence{GroupResource: j.GroupResource, Owners: o.Owners, Namespaces: j.Namespaces}, seen: j.seen, skew: j.skew}
		out = above.ownersDeletion(r.received())
	case namespaceController:
		out = j.namespaceDeletion(r.received())
	default:
		return r.Fact, true
	}
	return out.Fact, out.Result != Absent
}

// namespaceDeletion names who deleted the namespace that the controller then emptied: the first to do so
// since the namespace was made.
func (j *judge) namespaceDeletion(emptied time.Time) Resolution {
	// When the namespace was made that was emptied: after the first for sure, and perhaps only at the second, as clocks
	// may differ.
	var sure, made time.Time
	for i := range j.Namespaces {
		r := &j.Namespaces[i]
		if r.Created && r.Received.Add(j.skew).Before(emptied) && r.Received.After(sure) {
			sure = r.Received
		}
		if r.Created && r.Received.Add(-j.skew).Before(emptied) && r.Received.After(made) {
			made = r.Received
		}
	}
	var deletes []*Request
	var first *Request
	for i := range j.Namespaces {
		r := &j.Namespaces[i]
		if !r.removes() || r.Subresource != "" || !r.Received.Add(j.skew).After(sure) || !r.Received.Add(-j.skew).Before(emptied) {
			continue
		}
		if deletes = append(deletes, r); first == nil || r.Staged.Before(first.Staged) {
			first = r
		}
	}
	if first == nil {
		return nobody(WhyUninitiated)
	}
	for _, r := range deletes {
		if r.Author == first.Author {
			continue
		}
		if first.Unverified || r.Received.Before(first.Staged.Add(j.skew)) || !first.Received.Add(-j.skew).After(made) {
			return nobody(WhySeveral)
		}
	}
	return Resolution{Fact: first.fact(j.GroupResource, j.seen, TierNamespace), Result: Weak, Provisional: true}
}
