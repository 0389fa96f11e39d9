//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// buildTags are those of the shipped binaries.
const buildTags = "lambda.norpc,grpcnotrace"

// built is the folder with the functions' binaries, built once a run.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tidemark-functions-")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"auditingest", "authorcapture", "watchcommit"} {
		cmd := exec.Command("go", "build", "-tags", buildTags, "-o", filepath.Join(dir, name), "github.com/tidemark-dev/tidemark/functions/"+name+"/knative")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// function is a running function. It ends with the test, or by kill.
type function struct {
	t    testing.TB
	name string
	url  string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs a function with settings of the form NAME=value, and waits until it answers.
func start(t testing.TB, name string, settings ...string) *function {
	t.Helper()
	f, err := tryStart(t, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tryStart(t testing.TB, name string, settings ...string) (*function, error) {
	dir, err := built()
	if err != nil {
		return nil, err
	}
	addr, err := loopback.Address()
	if err != nil {
		return nil, err
	}
	f := &function{t: t, name: name, url: "http://" + addr, done: make(chan struct{})}
	log, err := os.CreateTemp("", name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	f.log = log.Name()
	f.cmd = exec.Command(filepath.Join(dir, name))
	f.cmd.Env = append([]string{"LISTEN_ADDRESS=" + addr, "HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH")}, settings...)
	f.cmd.Stdout, f.cmd.Stderr = log, log
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = f.cmd.Wait(); close(f.done) }()
	t.Cleanup(f.end)
	return f, f.waitReady()
}

func (f *function) waitReady() error {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		select {
		case <-f.done:
			return fmt.Errorf("%s ended at its start:\n%s", f.name, f.words())
		default:
		}
		resp, err := http.Get(f.url + "/health/readiness")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s is not ready:\n%s", f.name, f.words())
}

// kill ends the process without warning.
func (f *function) kill() {
	_ = f.cmd.Process.Kill()
	<-f.done
}

func (f *function) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

func (f *function) end() {
	f.kill()
	if f.t.Failed() {
		f.t.Logf("what %s said last:\n%s", f.name, f.words())
	}
	_ = os.Remove(f.log)
}

// said is the whole log.
func (f *function) said() string {
	raw, err := os.ReadFile(f.log)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(raw)
}

// words is the end of the log.
func (f *function) words() string {
	lines := strings.Split(strings.TrimSpace(f.said()), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// post sends a request as the platform would and returns the answer.
func (f *function) post(ctx context.Context, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+path, bytes.NewBufferString(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// tick is one drain. It fails the test when the function does not answer 200.
func (f *function) tick() string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	code, answer, err := f.post(ctx, "/", "")
	if err != nil || code/100 != 2 {
		f.t.Fatalf("tick of %s: %d %s %v\n%s", f.name, code, answer, err, f.words())
	}
	return answer
}
