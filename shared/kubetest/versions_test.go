package kubetest

import (
	"os"
	"strings"
	"testing"
)

// The folder that `make kube-servers` builds into is named by the versions of its go.mod.
func TestVersionsAreThoseOfTheServersModule(t *testing.T) {
	raw, err := os.ReadFile("servers/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, version := range map[string]string{"k8s.io/kubernetes": kubeVersion, "go.etcd.io/etcd/server/v3": etcdVersion} {
		if !strings.Contains(string(raw), "\t"+module+" "+version+"\n") {
			t.Errorf("servers/go.mod does not require %s %s", module, version)
		}
	}
}
