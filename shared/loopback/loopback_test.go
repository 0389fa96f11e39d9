package loopback

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childVariable makes this test binary a process that takes ports and keeps them until its input ends.
const childVariable = "LOOPBACK_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	for range 200 {
		port, err := Port()
		fmt.Println(port, err)
	}
	_ = os.Stdout.Close()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestNoPortIsGivenTwice(t *testing.T) {
	seen := map[string]bool{}
	take := func(line string) {
		if !strings.HasSuffix(line, " <nil>") || seen[line] {
			t.Errorf("given %q, a second time: %v", line, seen[line])
		}
		seen[line] = true
	}
	for range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=1")
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = hold.Close()
			_ = cmd.Wait()
		}()
		for range 200 {
			var port, failure string
			if _, err := fmt.Fscan(out, &port, &failure); err != nil {
				t.Fatal(err)
			}
			take(port + " " + failure)
		}
	}
	for range 200 {
		port, err := Port()
		take(fmt.Sprint(port, " ", err))
	}
}

func TestAPortThatIsTakenIsNotGiven(t *testing.T) {
	port, err := Port()
	if err != nil || !free(port) {
		t.Fatalf("port %d, %v: want one that is free", port, err)
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if free(port) {
		t.Errorf("port %d has a listener and counts as free", port)
	}
}
