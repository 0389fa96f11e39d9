package knative

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// TestMain lets the test program be the process that a test starts.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_FUNCTION") != "" {
		Main("slow", func() (http.Handler, error) { return slow{}, nil })
		return
	}
	os.Exit(m.Run())
}

// slow answers when the process is asked to end, and tells what happens on standard output.
type slow struct{}

func (slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Println("serving")
	<-host.Draining(r.Context())
	if r.Context().Err() != nil {
		fmt.Println("context is gone")
	}
	fmt.Fprint(w, "finished")
}

func (slow) Stop(context.Context) error { fmt.Println("stopped"); return nil }

func address(t *testing.T) string {
	t.Helper()
	at, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestSIGTERMFinishesRequestsInFlight(t *testing.T) {
	at := address(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUN_FUNCTION=1", "LISTEN_ADDRESS="+at, "PORT=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)

	url := "http://" + at
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get(url + "/health/readiness"); err == nil {
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("readiness is %s", resp.Status)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the process does not listen")
		}
	}
	type result struct {
		body string
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := http.Post(url+"/", "text/plain", nil)
		if err != nil {
			answered <- result{err: err}
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answered <- result{string(body), err}
	}()
	if !lines.Scan() || lines.Text() != "serving" {
		t.Fatalf("the process says %q", lines.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.err != nil || got.body != "finished" {
		t.Errorf("the request in flight ends with %q, %v", got.body, got.err)
	}
	if !lines.Scan() || lines.Text() != "stopped" {
		t.Errorf("after the last request the process says %q, want stopped", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ends with %v", err)
	}
}

type recorder struct{ requests []string }

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.requests = append(r.requests, req.Method+" "+req.URL.EscapedPath()+" "+req.Header.Get("Ce-Type")+" "+string(body))
	w.WriteHeader(http.StatusAccepted)
}

func TestRequestsReachTheFunctionAsTheyAre(t *testing.T) {
	function := &recorder{}
	svc := NewService(t.Context(), Config{RequestTimeout: time.Hour}, function)
	if svc.WriteTimeout != time.Hour || svc.ReadTimeout != time.Hour {
		t.Errorf("timeouts %s and %s, want those configured", svc.ReadTimeout, svc.WriteTimeout)
	}
	send := func(r *http.Request) int {
		w := httptest.NewRecorder()
		svc.Handler.ServeHTTP(w, r)
		return w.Code
	}
	if code := send(httptest.NewRequest("POST", "/audit-webhook/a%3Ab", strings.NewReader("x"))); code != 202 {
		t.Errorf("answered %d", code)
	}
	files, err := filepath.Glob("../../../events/samples/platforms/*.http")
	if err != nil || len(files) < 5 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadRequest(bufio.NewReader(f))
		if err != nil {
			t.Fatal(err)
		}
		if code := send(r); code != 202 {
			t.Errorf("%s is answered %d", file, code)
		}
		f.Close()
		if last := function.requests[len(function.requests)-1]; !strings.HasPrefix(last, "POST / dev.knative.") {
			t.Errorf("%s is seen as %q", file, last)
		}
	}
	if function.requests[0] != "POST /audit-webhook/a%3Ab  x" {
		t.Errorf("seen: %q", function.requests[0])
	}
}

func TestHealth(t *testing.T) {
	svc := NewService(t.Context(), Config{}, &recorder{})
	for _, path := range []string{"/health/readiness", "/health/liveness"} {
		w := httptest.NewRecorder()
		svc.Handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 {
			t.Errorf("%s is answered %d", path, w.Code)
		}
	}
}
