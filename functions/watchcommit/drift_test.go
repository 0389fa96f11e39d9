package watchcommit

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// A foreign change that a newer one of the cluster replaces is told once, about the target, with where it can be found:
// when it has been replaced, however many tries that takes.
func TestReplacedForeignChangesAreToldOnce(t *testing.T) {
	t.Parallel()
	sc := newScenario(1, 8)
	cm := sc.watch("configmaps")
	foreign := map[string]string{}
	sc.at = time.Second
	for i := range 8 {
		sc.update(cm, fmt.Sprintf("old-%d", i), "alice", "update")
		if i > 0 {
			foreign[fmt.Sprintf("p/shop/configmaps/old-%d.yaml", i)] = "mine: true\n"
		}
	}
	sc.post()
	w := newWorld(t, sc.session, valkeytest.Mini(t))
	cluster := w.serve(nil, smallTarget(""))
	w.tick()
	w.repo.Commit("main", "foreign", foreign)
	at := w.repo.Tip("main")
	w.at(2)
	w.facts()
	w.git.Inject(gittest.Pushes, 50, gittest.Refuse(http.StatusForbidden, ""))
	if status, r := post(t, w.function()); status != http.StatusServiceUnavailable {
		t.Fatalf("status %d, %+v, though nothing can be pushed", status, r)
	}
	if got := cluster.told(kube.ReasonForeignChangesReplaced); len(got) != 0 {
		t.Errorf("told before it is so: %q", got)
	}
	w.git.ClearFaults()
	w.tick()
	w.tick()
	want := []string{"Warning ForeignChangesReplaced prod: newer changes of the cluster have replaced what somebody else had changed in git. " +
		"Commit " + at + " still has it: p/shop/configmaps/old-1.yaml, p/shop/configmaps/old-2.yaml, p/shop/configmaps/old-3.yaml, " +
		"p/shop/configmaps/old-4.yaml, p/shop/configmaps/old-5.yaml and 2 more"}
	if got := cluster.told(kube.ReasonForeignChangesReplaced); !cmp.Equal(got, want) {
		t.Errorf("%s\n%s", cmp.Diff(want, got), w.logs)
	}
}
