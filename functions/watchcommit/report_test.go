package watchcommit

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// What the API server or the store does is not put down to the repository, whose URL nobody has to look at then.
func TestATroubleIsPutDownToWhoHasIt(t *testing.T) {
	const well = "True Mirroring"
	for name, c := range map[string]struct {
		discovery func(*valkeytest.Outage, http.ResponseWriter) bool // true: it has answered
		want      string
	}{
		"the API server": {func(_ *valkeytest.Outage, w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}, "False " + kube.ReasonClusterUnreachable},
		"the way to the API server": {func(*valkeytest.Outage, http.ResponseWriter) bool { panic(http.ErrAbortHandler) }, "False " + kube.ReasonClusterUnreachable},
		"the store": {func(o *valkeytest.Outage, _ http.ResponseWriter) bool {
			o.Set(valkeytest.Down)
			return false
		}, well},
	} {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Mini(t)
			outage := valkeytest.NewOutage(t, server.Addr)
			w := newWorld(t, newScenario(1, 2).session, valkeytest.Server{Addr: outage.Addr, Prefix: server.Prefix})
			cluster := w.serve(nil, smallTarget(""))
			w.tick()
			if got := cluster.condition("prod", kube.ConditionReady); !strings.HasPrefix(got, well) {
				t.Fatalf("it begins as %q", got)
			}
			front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if discovers := r.URL.Path == "/api" || r.URL.Path == "/apis"; discovers && c.discovery(outage, rw) {
					return
				}
				cluster.ServeHTTP(rw, r)
			}))
			t.Cleanup(front.Close)
			w.apiURL = front.URL
			if status, r := post(t, w.function()); status != http.StatusServiceUnavailable || r.Failed != 1 {
				t.Errorf("status %d, %+v", status, r)
			}
			if got := cluster.condition("prod", kube.ConditionReady); !strings.HasPrefix(got, c.want) {
				t.Errorf("the target is %q, want %s", got, c.want)
			}
		})
	}
}

// A firewall that swallows packets is the commonest of all troubles, and shows as a time that is over.
func TestAServerThatDoesNotAnswerInTimeIsInTrouble(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-over.Done()
	silent := fmt.Errorf("list refs: %w", over.Err())
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"git":                 {t.Context(), silent, kube.ReasonRepositoryUnreachable},
		"the API server":      {t.Context(), ofCluster(silent), kube.ReasonClusterUnreachable},
		"the store":           {t.Context(), ofStore(silent), ""},
		"the drain's is over": {over, silent, ""},
	} {
		got := ""
		if problem := problemOf(c.ctx, c.err); problem != nil {
			got = problem.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheLastCommitIsOneThatWasMade(t *testing.T) {
	w := tale(t, "", func(*scenario, *recorded.Watch) {})
	f := w.function()
	d := &drain{Function: f}
	before := &kube.LastCommit{SHA: "before"}
	left, writes := &target{last: before}, &target{last: before}
	made := parseID(strings.Repeat("a1", 20))
	p := &push{owners: []*target{left, writes, writes}, changes: make([]history.Change, 3), covers: [][]int{{0}, {1}, {2}}}
	d.count(p, &gitcommit.Built{Commits: []gitcommit.ObjectID{{}, made, made}})
	if left.last != before {
		t.Errorf("a target none of whose commits was made has %+v, want what it had", left.last)
	}
	if writes.last.SHA != made.String() || writes.last.Changes != 2 {
		t.Errorf("a target with two commits has %+v, want its own, with 2 changes", writes.last)
	}
}
