package valkeytest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// MasterName is the name under which the Sentinel of Sentinel knows the primary.
const MasterName = "tidemark"

// Sentinel is a real Sentinel that watches a real primary; both end with the test.
func Sentinel(t testing.TB) Server {
	t.Helper()
	primary, _ := Own(t)
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	monitor := fmt.Sprintf("sentinel monitor %s %s %s 1\n", MasterName, host, port)
	if err := os.WriteFile(config, []byte(monitor), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, stop, err := startWith(config, "--sentinel")
	if err != nil {
		t.Fatalf("a real sentinel is needed: %v", err)
	}
	t.Cleanup(stop)
	return Server{Kind: "sentinel", Addr: addr, Prefix: newPrefix()}
}
