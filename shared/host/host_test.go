package host_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

// request reads a recorded HTTP request.
func request(t *testing.T, file string) *http.Request {
	t.Helper()
	f, err := os.Open(filepath.Join("../../events/samples/platforms", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := http.ReadRequest(bufio.NewReader(f))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

// event is what a function sees of a CloudEvent.
type event struct {
	Type, Source, Subject, ID, Kind, Name, Namespace, ContentType, Body string
}

func seen(t *testing.T, r *http.Request) event {
	t.Helper()
	var out event
	w := httptest.NewRecorder()
	host.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h := r.Header
		out = event{h.Get("Ce-Type"), h.Get("Ce-Source"), h.Get("Ce-Subject"), h.Get("Ce-Id"), h.Get("Ce-Kind"), h.Get("Ce-Name"), h.Get("Ce-Namespace"), h.Get("Content-Type"), string(body)}
	}), w, r)
	if w.Code != 200 {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	return out
}

func TestFunctionsSeeCloudEventsInOneMode(t *testing.T) {
	change := event{
		Type: "dev.knative.apiserver.ref.update", Source: "https://10.96.0.1:443", Subject: "/apis/v1/namespaces/shop/configmaps/prices",
		ID: "7c8d0c0e-0f2a-4a53-9b1e-2f6f1a3b5c7d", Kind: "ConfigMap", Name: "prices", Namespace: "shop", ContentType: "application/json",
		Body: `{"kind": "ConfigMap", "namespace": "shop", "name": "prices", "apiVersion": "v1"}`,
	}
	tick := event{Type: "dev.knative.sources.ping", Source: "/apis/v1/namespaces/tidemark/pingsources/refsweep", ID: "d2f3a0c4-5b6e-4f70-8192-a3b4c5d6e7f8", ContentType: "application/json", Body: "{}"}
	later := tick
	later.ID = "d2f3a0c4-5b6e-4f70-8192-a3b4c5d6e7f9"
	for file, want := range map[string]event{
		"apiserversource-reference-binary.http":     change,
		"apiserversource-reference-structured.http": change,
		"pingsource-binary.http":                    tick,
		"pingsource-structured.http":                later,
	} {
		if diff := cmp.Diff(want, seen(t, request(t, file))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	if got := seen(t, request(t, "apiserversource-resource-structured.http")); got.Type != "dev.knative.apiserver.resource.add" || !strings.Contains(got.Body, `"resourceVersion": "150"`) {
		t.Errorf("a whole resource is seen as %+v", got)
	}
}

func TestStructuredEventsThatAreNone(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":            "hello",
		"no specversion":     `{"type":"x"}`,
		"bad base64":         `{"specversion":"1.0","data_base64":"*"}`,
		"too large":          `{"specversion":"1.0","data":"` + strings.Repeat("x", 2<<20) + `"}`,
		"an array of events": `[{"specversion":"1.0"}]`,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/cloudevents+json")
		w := httptest.NewRecorder()
		host.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s reached the function", name) }), w, r)
		if w.Code != 400 {
			t.Errorf("%s is answered %d, want 400", name, w.Code)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"specversion":"1.0","type":"x","n":7,"ok":true,"evil":"a\r\nAuthorization: b","data_base64":"aGVsbG8="}`))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if err := host.BinaryMode(r); err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(r.Body)
	if string(body) != "hello" || r.Header.Get("Ce-N") != "7" || r.Header.Get("Ce-Ok") != "true" || r.Header.Get("Ce-Evil") != "aAuthorization: b" || r.Header.Get("Authorization") != "" {
		t.Errorf("body %q, headers %v", body, r.Header)
	}
}

func TestTrustAndDrainingComeFromTheHostOnly(t *testing.T) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Trusted", "true")
	if host.Trusted(r.Context()) {
		t.Error("a request is trusted by what it says")
	}
	if !host.Trusted(host.WithTrust(r.Context())) {
		t.Error("WithTrust does nothing")
	}
	if host.Draining(t.Context()) != nil {
		t.Error("a drain where no host is")
	}
	ending := make(chan struct{})
	ctx := host.WithDraining(t.Context(), ending)
	close(ending)
	select {
	case <-host.Draining(ctx):
	default:
		t.Error("the drain is not seen")
	}
}

func TestHelpListsTheSettingsOfFunctionAndHost(t *testing.T) {
	var own struct {
		Address string `envconfig:"ADDRESS" default:"loopback" desc:"where to listen"`
	}
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"function", "-help"}
	var out strings.Builder
	handler, err := host.Prepare("refsweep", &own, func() (http.Handler, error) {
		var cfg struct {
			Pause string `envconfig:"PAUSE" desc:"time between two sweeps"`
		}
		if err := settings.Load(&cfg); err != nil {
			return nil, err
		}
		return http.NotFoundHandler(), nil
	}, &out)
	if handler != nil || err != nil {
		t.Fatalf("Prepare = %v, %v; want nothing to run", handler, err)
	}
	for _, want := range []string{"refsweep", "PAUSE", "time between two sweeps", "ADDRESS", "loopback"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("-help lacks %q:\n%s", want, out.String())
		}
	}
}

func TestAMistakeNamesTheFunction(t *testing.T) {
	var own struct{}
	_, err := host.Prepare("refsweep", &own, func() (http.Handler, error) { return nil, errors.New("REDIS_ADDR is not set: where to?") }, io.Discard)
	if err == nil || err.Error() != "refsweep: REDIS_ADDR is not set: where to?" {
		t.Errorf("got %v", err)
	}
}

type stopper struct {
	http.Handler
	stopped bool
}

func (s *stopper) Stop(context.Context) error { s.stopped = true; return nil }

func TestStop(t *testing.T) {
	s := &stopper{Handler: http.NotFoundHandler()}
	if err := host.Stop(t.Context(), s); err != nil || !s.stopped {
		t.Errorf("Stop = %v, reached: %t", err, s.stopped)
	}
	if err := host.Stop(t.Context(), http.NotFoundHandler()); err != nil {
		t.Errorf("a function without Stop: %v", err)
	}
}

func TestLoggingRefusesALevelThatIsNone(t *testing.T) {
	for level, want := range map[string]string{"": "", "debug": "", "WARN": "", "loud": "LOG_LEVEL (loud) must be debug, info, warn or error"} {
		t.Run(level, func(t *testing.T) {
			t.Setenv("LOG_LEVEL", level) // and back when the subtest ends
			if level == "" {
				_ = os.Unsetenv("LOG_LEVEL")
			}
			var l host.Logging
			err := settings.Load(&l)
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	if err := host.NoArguments("who", nil); err != nil {
		t.Error(err)
	}
	if err := host.NoArguments("who", []string{"serve"}); err == nil || !strings.Contains(err.Error(), `who takes no argument "serve"`) || !strings.Contains(err.Error(), "-help") {
		t.Errorf("got %v", err)
	}
}
