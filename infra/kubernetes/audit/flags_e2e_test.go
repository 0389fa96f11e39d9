//go:build e2e

package audit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

// documented are the flags of the README's section about k3s, but for the files that the test has of its own.
func documented(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## k3s\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^- ([a-z-]+=\S+)$`).FindAllStringSubmatch(section, -1) {
		if !strings.Contains(m[1], "/etc/kubernetes/tidemark/") {
			out = append(out, "--"+m[1])
		}
	}
	if len(out) < 6 {
		t.Fatalf("the README names %v, want at least 6 flags", out)
	}
	return out
}

func TestTheAPIServerTakesTheDocumentedFlagsAndSendsWithinTheWait(t *testing.T) {
	var seen atomic.Pointer[time.Time]
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a post: %v", err)
		}
		var list auditv1.EventList
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Errorf("decode a post: %v", err)
		}
		for _, e := range list.Items {
			if e.ObjectRef != nil && e.ObjectRef.Resource == "configmaps" && e.ObjectRef.Name == "probe" && e.Verb == "patch" {
				now := time.Now()
				seen.CompareAndSwap(nil, &now)
			}
		}
	}))
	defer receiver.Close()
	c := kubetest.Start(t, kubetest.Options{AuditURL: receiver.URL + "/audit-webhook/default", AuditPolicy: "policy.yaml", Args: documented(t)})
	c.ApplyText("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: probe}\n")
	deadline := time.Now().Add(time.Minute)
	for seen.Load() == nil {
		if time.Now().After(deadline) {
			t.Fatal("no audit event of the probe within a minute; the README promises 5 s and what the server takes")
		}
		time.Sleep(50 * time.Millisecond)
	}
}
