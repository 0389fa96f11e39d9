package watchcommit

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

var storyResources = []string{"configmaps", "deployments.apps", "services"}

const storyTarget = `
metadata: {name: prod}
spec:
  repository: {url: REPO, path: clusters/prod}
  attributionGrace: 2s
  prune: Always
  resources: [{resource: configmaps}, {group: apps, resource: deployments}, {resource: services}]
`

// A session is drained by a fresh copy of the function every half second: each change is in the history once, under
// its author, and the files end as the cluster did.
func TestARecordedSessionBecomesItsHistory(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, redis valkeytest.Server) {
		t.Parallel()
		w := newWorld(t, load(t, "story"), redis)
		w.target(storyTarget)
		began := time.Now()
		w.now = func() time.Time { return began.Add(w.clock.Now() - w.session.Begin()) } // however long a tick takes
		w.tick()
		for at := w.session.Begin(); at < w.session.End()+3*time.Second; at += 3 * time.Second {
			w.clock.Set(at)
			w.facts()
			w.tick()
		}
		w.clock.Set(w.clock.Now() + 2*time.Second) // the last grace
		w.tick()
		if v := w.judge("clusters/prod", storyResources...); !v.Sound() {
			t.Errorf("%d changes, authors %v:\n%s\n%s", v.Changes, v.Authors, strings.Join(v.Faults(), "\n"), w.logs)
		}
	})
}
