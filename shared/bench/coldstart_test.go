//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host/runtimetest"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// starter is a program and what it is asked first.
type starter struct {
	name   string
	method string
	path   string
	body   string
}

// review is the create of a command object, as an API server asks about it.
const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r","operation":"CREATE","resource":{"group":"tidemark.dev","version":"v1alpha1","resource":"commitrequests"},"userInfo":{"username":"alice"},"object":{"metadata":{"uid":"cr"}}}}`

// coldStartRows measures each program from its start to its first answer, for the two webhooks with Redis connected, and
// its size.
func coldStartRows(t *testing.T) []Row {
	server := valkeytest.Real(t)
	event := string(newPosts(recordedEvents(t), 1).next())
	starters := []starter{
		{"auditingest", "POST", "/audit-webhook/default", event},
		{"authorcapture", "POST", "/validate-operator-types", review},
		{"refsweep", "GET", "/health/liveness", ""},
		{"watchcommit", "GET", "/health/liveness", ""},
	}
	rounds := 15
	if Quick() {
		rounds = 5
	}
	env := coldStartEnv(t, server)
	var rows []Row
	for _, host := range []string{"knative", "lambda"} {
		hello := Build(t, "shared/bench/hello/"+host)
		name := map[string]string{"knative": "func-go hello + go-redis", "lambda": "aws-lambda-go hello + go-redis"}[host]
		start := map[string]func(*testing.T, string, starter, []string) (time.Duration, time.Duration){"knative": startServer, "lambda": startLambda}[host]
		for _, s := range starters {
			binary := Build(t, "functions/"+s.name+"/"+host)
			var wall [2][]float64
			measure := func(i int, binary string, s starter) func() float64 {
				return func() float64 {
					took, cpu := start(t, binary, s, env)
					wall[i] = append(wall[i], took.Seconds()*1000)
					return cpu.Seconds() * 1000
				}
			}
			m := Interleave(rounds, measure(0, binary, s), measure(1, hello, starter{"hello", "POST", "/", "{}"}))
			rows = append(rows,
				LessIsBetter("cold start of "+s.name+" on "+host+", CPU", "ms", m[0], m[1], name),
				LessIsBetter("cold start of "+s.name+" on "+host+", time", "ms", Median(wall[0]), Median(wall[1]), name),
				LessIsBetter("size of "+s.name+" for "+host, "MB", megabytes(t, binary), megabytes(t, hello), name),
			)
		}
	}
	return rows
}

// coldStartEnv is what any of the programs needs.
func coldStartEnv(t *testing.T, server valkeytest.Server) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:9\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n",
		"targets":    "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(os.Environ(), "REDIS_ADDR="+server.Addr, "REDIS_KEY_PREFIX="+server.Prefix, "AUDIT_ALLOW_ANONYMOUS=true",
		"KUBECONFIG="+dir+"/kubeconfig", "SWEEP_TARGETS_FILE="+dir+"/targets", "LOG_LEVEL=error")
}

func megabytes(t *testing.T, file string) float64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size()) / 1e6
}

// run starts a program, waits for its first answer and returns the time that took and the processor time it cost.
func run(t *testing.T, cmd *exec.Cmd, firstAnswer func()) (took, cpu time.Duration) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // what it did is measured
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	}()
	firstAnswer()
	took = time.Since(begin)
	cpu, err := CPU(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return took, cpu
}

func startServer(t *testing.T, binary string, s starter, env []string) (took, cpu time.Duration) {
	t.Helper()
	address := FreeAddress(t)
	cmd := exec.Command(binary)
	cmd.Env = append(env, "LISTEN_ADDRESS="+address)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	return run(t, cmd, func() {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Microsecond) {
			r, err := http.NewRequestWithContext(t.Context(), s.method, "http://"+address+s.path, strings.NewReader(s.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				if time.Now().After(deadline) {
					t.Fatalf("%s does not answer: %v", s.name, err)
				}
				continue
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s answers %s: %s", s.name, resp.Status, text)
			}
			return
		}
	})
}

func startLambda(t *testing.T, binary string, s starter, env []string) (took, cpu time.Duration) {
	t.Helper()
	api := runtimetest.New(t)
	cmd := exec.Command(binary)
	cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+api.Address, "AWS_LAMBDA_FUNCTION_NAME=bench")
	payload := fmt.Sprintf(`{"version":"2.0","rawPath":%q,"headers":{"content-type":"application/json"},"requestContext":{"http":{"method":%q,"sourceIp":"127.0.0.1"}},"body":%q,"isBase64Encoded":false}`, s.path, s.method, s.body)
	return run(t, cmd, func() {
		if result := api.Invoke(payload); s.name != "hello" && !strings.Contains(result, `"statusCode":200`) {
			t.Fatalf("%s answers %s", s.name, result)
		}
	})
}
