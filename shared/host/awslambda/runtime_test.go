package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// runtimeAPI plays Lambda: it hands out payloads one after another and takes what comes back.
type runtimeAPI struct {
	payloads chan string
	results  chan string
	server   *httptest.Server
}

func newRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	api := &runtimeAPI{payloads: make(chan string), results: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case payload := <-api.payloads:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
			fmt.Fprint(w, payload)
		case <-r.Context().Done():
		}
	})
	take := func(kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			api.results <- kind + string(body)
		}
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/response", take(""))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/error", take("error: "))
	mux.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Lambda-Extension-Identifier", "x")
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	api.server = httptest.NewServer(mux)
	t.Cleanup(func() { api.server.CloseClientConnections(); api.server.Close() })
	return api
}

func (api *runtimeAPI) invoke(t *testing.T, payload string) string {
	t.Helper()
	select {
	case api.payloads <- payload:
	case <-time.After(10 * time.Second):
		t.Fatal("the function does not ask for work")
	}
	select {
	case result := <-api.results:
		return result
	case <-time.After(10 * time.Second):
		t.Fatal("the function does not answer")
	}
	return ""
}

func TestUnderTheRuntimeAPI(t *testing.T) {
	api := newRuntimeAPI(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUN_FUNCTION=1", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.server.URL, "http://"), "LAMBDA_EVENT_PATH=/tick")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	text := api.invoke(t, string(sample(t, "function-url-text.json")))
	if !strings.Contains(text, `"statusCode":200`) || !strings.Contains(text, `audit-webhook/default`) {
		t.Errorf("function URL: %s", text)
	}
	if got := api.invoke(t, string(sample(t, "scheduler.json"))); got != `{"bytes":341,"path":"/tick"}` {
		t.Errorf("scheduler: %s", got)
	}
	if got := api.invoke(t, string(sample(t, "sqs-batch.json"))); got != `{"batchItemFailures":[]}` {
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
