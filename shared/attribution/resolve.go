package attribution

import "time"

// Evidence is everything that was found about one change. A nil record was not there.
type Evidence struct {
	// Exact is filed under the uid and the version, Last under the uid, Version under the version alone.
	// Whoever looks up leaves Last nil for a change that is not a removal.
	Exact, Last, Version *Record
}

// Resolve names the author of a change, or nobody. skew is what the API servers' clocks may differ by.
func Resolve(e *Evidence, skew time.Duration) Resolution {
	for _, r := range []*Record{e.Exact, e.Last, e.Version} {
		if r == nil {
			continue
		}
		if r.Contested(skew) {
			break
		}
		return Resolution{Fact: r.Fact, Result: classify(r, r == e.Exact)}
	}
	return Resolution{Result: Absent}
}

func classify(r *Record, exact bool) Result {
	switch {
	case r.Verb == verbDeleteCollection:
		return ExactDeleteCollectionItem
	case !exact:
		return Weak
	case r.IsServiceAccount:
		return ExactServiceAccount
	}
	return ExactUser
}
