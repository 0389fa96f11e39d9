package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host/runtimetest"
	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// TestMain lets the test program be the function that a test starts.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_FUNCTION") != "" {
		Main("echo", func() (http.Handler, error) { return echo{}, nil })
		return
	}
	os.Exit(m.Run())
}

// echo answers with what it was sent.
type echo struct{}

func (echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path == "/fail" {
		http.Error(w, "failed", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"path": r.URL.Path, "bytes": len(body)})
}

func (echo) Stop(context.Context) error { fmt.Println("stopped"); return nil }

func TestUnderTheRuntimeAPI(t *testing.T) {
	api := runtimetest.New(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUN_FUNCTION=1", "AWS_LAMBDA_RUNTIME_API="+api.Address, "LAMBDA_EVENT_PATH=/tick")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	text := api.Invoke(string(sample(t, "function-url-text.json")))
	if !strings.Contains(text, `"statusCode":200`) || !strings.Contains(text, `audit-webhook/default`) {
		t.Errorf("function URL: %s", text)
	}
	if got := api.Invoke(string(sample(t, "scheduler.json"))); got != `{"bytes":341,"path":"/tick"}` {
		t.Errorf("scheduler: %s", got)
	}
	if got := api.Invoke(string(sample(t, "sqs-batch.json"))); got != `{"batchItemFailures":[]}` {
		t.Errorf("queue: %s", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM the process ends with %v", err)
	}
	if !strings.Contains(out.String(), "stopped") {
		t.Errorf("the function was not stopped: %q", out.String())
	}
}

// emulator finds AWS' Runtime Interface Emulator, which `make test` installs.
func emulator(t *testing.T) string {
	t.Helper()
	installed, err := filepath.Abs("../../../bin/tools/aws-lambda-rie")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(installed); err == nil {
		return installed
	}
	found, err := exec.LookPath("aws-lambda-rie")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the Runtime Interface Emulator is missing: make tools installs it")
		}
		t.Skip("the Runtime Interface Emulator is missing: make tools installs it")
	}
	return found
}

func TestUnderTheRuntimeInterfaceEmulator(t *testing.T) {
	binary := emulator(t)
	front, api := freeAddress(t), freeAddress(t)
	cmd := exec.Command(binary, "--log-level", "error", "--runtime-interface-emulator-address", front, "--runtime-api-address", api, os.Args[0])
	cmd.Env = append(os.Environ(), "RUN_FUNCTION=1", "LAMBDA_EVENT_PATH=/tick", "AWS_LAMBDA_FUNCTION_TIMEOUT=30")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the emulator and the function that it started
		_ = cmd.Wait()
	}()
	url := "http://" + front + "/2015-03-31/functions/function/invocations"
	invoke := func(payload []byte) string {
		t.Helper()
		var resp *http.Response
		var err error
		for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if resp, err = http.Post(url, "application/json", bytes.NewReader(payload)); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	// One at a time: the emulator does not bear two.
	if got := invoke(sample(t, "http-api-base64.json")); !strings.Contains(got, `"statusCode":200`) || !strings.Contains(got, "audit-webhook/default") {
		t.Errorf("HTTP API: %s", got)
	}
	if got := invoke(sample(t, "scheduler.json")); got != `{"bytes":341,"path":"/tick"}` {
		t.Errorf("scheduler: %s", got)
	}
	if got := invoke(sample(t, "cloudwatch-logs.json")); !strings.Contains(got, "/audit-webhook/default") {
		t.Errorf("logs: %s", got)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
