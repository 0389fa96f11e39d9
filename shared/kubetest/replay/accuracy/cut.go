package accuracy

import (
	"encoding/json"
	"math/rand"
	"slices"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// Cut returns the session with the bodies of a share of its audit events left out: of all with 1, as a policy of
// Metadata level does, and of some with less, as API servers do with events that are too large. What was exact is then
// told by name, if at all, beside events that still show everything.
func Cut(session *replay.Session, rng *rand.Rand, share float64) (*replay.Session, error) {
	out := *session
	out.Audit = slices.Clone(session.Audit)
	for i := range out.Audit {
		var list eventList
		if err := json.Unmarshal(out.Audit[i].Body, &list); err != nil {
			return nil, err
		}
		for n, item := range list.Items {
			if rng.Float64() >= share {
				continue
			}
			var event map[string]json.RawMessage
			if err := json.Unmarshal(item, &event); err != nil {
				return nil, err
			}
			delete(event, "requestObject")
			delete(event, "responseObject")
			var err error
			if list.Items[n], err = json.Marshal(event); err != nil {
				return nil, err
			}
		}
		body, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		out.Audit[i].Body = body
	}
	return &out, nil
}
