package watchcommit

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/kube"
)

// Wake is why a drain begins.
type Wake struct {
	// Tick is set for a schedule's tick, which has time to listen. A wake for a change is not.
	Tick bool
	// Resource and Group narrow the wake to the targets that mirror it; empty is all.
	Group, Resource string
	// Namespace narrows it too.
	Namespace string
}

// Types of CloudEvents: what Knative's ApiServerSource sends begins with the first, PingSource sends the second.
const (
	apiServerEvents = "dev.knative.apiserver."
	pingEvent       = "dev.knative.sources.ping"
)

// readWake reads a request. A CloudEvent is a wake for a change, unless it is a PingSource's; everything else is a tick.
// An event is never more than a hint, so one that is not understood concerns everything.
func readWake(r *http.Request) Wake {
	switch kind := r.Header.Get("Ce-Type"); {
	case kind == "" || kind == pingEvent:
		return Wake{Tick: true}
	case strings.HasPrefix(kind, apiServerEvents):
		return readSubject(r.Header.Get("Ce-Subject"))
	default:
		return Wake{}
	}
}

// readSubject reads /apis/[GROUP/]VERSION/[namespaces/NAMESPACE/]RESOURCE/NAME, the subject of an ApiServerSource event.
func readSubject(subject string) Wake {
	parts := strings.Split(strings.Trim(subject, "/"), "/")
	if len(parts) < 3 || parts[0] != "apis" && parts[0] != "api" {
		return Wake{}
	}
	var w Wake
	if parts = parts[1:]; !isVersion(parts[0]) {
		w.Group, parts = parts[0], parts[1:]
	}
	if !isVersion(parts[0]) {
		return Wake{}
	}
	if parts = parts[1:]; len(parts) >= 3 && parts[0] == "namespaces" {
		w.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 || parts[0] == "" {
		return Wake{}
	}
	w.Resource = parts[0]
	return w
}

func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9' && !strings.Contains(s, ".")
}

// wakes says whether a branch has to be drained. One target that is concerned is enough, and then the branch is drained
// whole: a drain that runs already goes round once more for this wake, and it must not know fewer targets.
func (w Wake) wakes(b *branch) bool {
	return w.Resource == "" || slices.ContainsFunc(b.targets, func(t *target) bool { return w.concerns(&t.spec) })
}

func (w Wake) concerns(t *kube.GitTarget) bool {
	for _, rule := range t.Watched() {
		if rule.Group != w.Group || rule.Resource != w.Resource {
			continue
		}
		if w.Namespace == "" || len(rule.Namespaces) == 0 {
			return true
		}
		if slices.Contains(rule.Namespaces, w.Namespace) {
			return true
		}
	}
	return false
}
