package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// Tags are those that every shipped binary is built with.
const Tags = "lambda.norpc,grpcnotrace,noauditv1"

// Build builds a main package of this module as it is shipped and returns the file.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(filepath.Dir(pkg))+"-"+filepath.Base(pkg))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", Tags, "-trimpath", "-ldflags", "-s -w", "-o", out, "github.com/tidemark-dev/tidemark/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}

// FreeAddress is a loopback address for one server.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Start runs a server that listens on LISTEN_ADDRESS until the test ends, and waits for it to answer.
func Start(t testing.TB, binary, address string, env ...string) *os.Process {
	t.Helper()
	cmd := exec.Command(binary) //nolint:noctx // ended below, by SIGTERM and then by force
	cmd.Env = append(append(os.Environ(), "LISTEN_ADDRESS="+address), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = cmd.Wait() // it is asked to end, however it does
		}()
		select {
		case _ = <-done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			_ = <-done
		}
	})
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/health/readiness") //nolint:noctx // loopback, and the loop ends
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body) // only the connection matters
		resp.Body.Close()
		return cmd.Process
	}
	t.Fatalf("%s does not answer on %s", binary, address)
	return nil
}

// CPU is the processor time that a process has used so far, all threads, to the nanosecond.
func CPU(pid int) (time.Duration, error) {
	const schedulerClock = 2 // the kernel's clock id of a process: its number inverted, and the kind of clock
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
