package accuracy

import (
	"encoding/json"
	"math/rand"
	"net/http"
	"time"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// Disorder returns the session with its audit events delivered as several API servers on a bad day would: batches are
// split, merged and doubled at random, and each arrives at any time within the given one before or after its own.
func Disorder(session *replay.Session, rng *rand.Rand, within time.Duration) (*replay.Session, error) {
	var posts []replay.AuditPost
	for _, p := range session.Audit {
		if p.Answered >= http.StatusMultipleChoices {
			continue // it was refused, and comes again
		}
		parts := []replay.AuditPost{p}
		if rng.Intn(2) == 0 {
			var err error
			if parts, err = split(p, rng); err != nil {
				return nil, err
			}
		}
		posts = append(posts, parts...)
	}
	for i := 0; i+1 < len(posts); i++ {
		if rng.Intn(4) == 0 {
			merged, err := merge(posts[i], posts[i+1])
			if err != nil {
				return nil, err
			}
			posts = append(append(posts[:i:i], merged), posts[i+2:]...)
		}
	}
	for _, p := range posts {
		if rng.Intn(3) == 0 {
			posts = append(posts, p)
		}
	}
	for i := range posts {
		posts[i].At = max(0, posts[i].At+time.Duration(rng.Int63n(int64(2*within)))-within)
	}
	out := *session
	out.Audit = posts
	return &out, nil
}

type eventList struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Items      []json.RawMessage `json:"items"`
}

// split deals the events of a batch out to up to four.
func split(p replay.AuditPost, rng *rand.Rand) ([]replay.AuditPost, error) {
	var list eventList
	if err := json.Unmarshal(p.Body, &list); err != nil {
		return nil, err
	}
	rng.Shuffle(len(list.Items), func(i, j int) { list.Items[i], list.Items[j] = list.Items[j], list.Items[i] })
	var out []replay.AuditPost
	for len(list.Items) > 0 {
		n := 1 + rng.Intn(len(list.Items))
		part := list
		part.Items, list.Items = list.Items[:n], list.Items[n:]
		body, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		one := p
		one.Body = body
		out = append(out, one)
	}
	return out, nil
}

func merge(a, b replay.AuditPost) (replay.AuditPost, error) {
	var first, second eventList
	if err := json.Unmarshal(a.Body, &first); err != nil {
		return a, err
	}
	if err := json.Unmarshal(b.Body, &second); err != nil {
		return a, err
	}
	first.Items = append(first.Items, second.Items...)
	body, err := json.Marshal(first)
	b.Body = body
	return b, err
}
