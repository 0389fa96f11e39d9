package watchcommit

import (
	"net/http/httptest"
	"testing"
)

func TestOnlyATickHasTimeToListen(t *testing.T) {
	for name, c := range map[string]struct {
		kind, subject string
		want          Wake
	}{
		"a plain POST is a tick":                {"", "", Wake{Tick: true}},
		"a PingSource's event is a tick":        {"dev.knative.sources.ping", "", Wake{Tick: true}},
		"a message of a queue wakes everything": {"com.amazonaws.sqs.message", "", Wake{}},
		"an event of somebody wakes everything": {"com.example.pushed", "/apis/apps/v1/namespaces/shop/deployments/web", Wake{}},
		"an event about a resource wakes its own": {"dev.knative.apiserver.ref.update", "/apis/apps/v1/namespaces/shop/deployments/web",
			Wake{Group: "apps", Resource: "deployments", Namespace: "shop"}},
		"a resource of the core group":     {"dev.knative.apiserver.ref.add", "/apis/v1/namespaces/shop/configmaps/prices", Wake{Resource: "configmaps", Namespace: "shop"}},
		"a resource without a namespace":   {"dev.knative.apiserver.ref.add", "/apis/tidemark.dev/v1alpha1/gittargets/prod", Wake{Group: "tidemark.dev", Resource: "gittargets"}},
		"a subject that is not understood": {"dev.knative.apiserver.ref.add", "prices", Wake{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Ce-Type", c.kind)
			r.Header.Set("Ce-Subject", c.subject)
			if got := readWake(r); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
