package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

func get(h http.Handler, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestMetricsAndLogsCarryTheFunctionsName(t *testing.T) {
	var logs bytes.Buffer
	tel := telemetry.WriteTo(&logs, "refsweep")
	tel.Counter("moves_total", "Moves.", "kind").WithLabelValues("branch").Add(2)
	tel.Gauge("targets", "Targets.").WithLabelValues().Set(7)
	tel.Histogram("sweep_duration_seconds", "Time.", []float64{1, 10}).WithLabelValues().Observe(3)
	h := tel.Handler(http.NotFoundHandler(), telemetry.Options{})
	get(h, "/somewhere", "")
	body := get(h, telemetry.MetricsPath, "").Body.String()
	for _, want := range []string{
		`tidemark_refsweep_moves_total{kind="branch"} 2`, `tidemark_refsweep_targets 7`, `tidemark_refsweep_sweep_duration_seconds_bucket{le="10"} 1`,
		`tidemark_refsweep_request_duration_seconds_count{code="404"} 1`, `tidemark_refsweep_panics_total 0`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %q:\n%s", want, body)
		}
	}
	tel.Log.Info("swept", "target", "cfg")
	var line map[string]any
	if err := json.Unmarshal(logs.Bytes(), &line); err != nil || line["function"] != "refsweep" || line["msg"] != "swept" || line["target"] != "cfg" {
		t.Errorf("log line %s (%v)", logs.String(), err)
	}
}

func TestTheLogLevelIsConfigured(t *testing.T) {
	for level, want := range map[string]int{"": 2, "debug": 3, "info": 2, "error": 1, "nonsense": 2} {
		t.Setenv("LOG_LEVEL", level)
		var logs bytes.Buffer
		tel := telemetry.WriteTo(&logs, "f")
		tel.Log.Debug("a")
		tel.Log.Info("b")
		tel.Log.Error("c")
		if got := strings.Count(logs.String(), "\n"); got != want {
			t.Errorf("LOG_LEVEL=%s: %d lines, want %d", level, got, want)
		}
	}
}

func TestMetricsMayWantAToken(t *testing.T) {
	answers := func(secret settings.Secret, token string) int {
		h := telemetry.WriteTo(&bytes.Buffer{}, "f").Handler(http.NotFoundHandler(), telemetry.Options{ReadToken: secret})
		return get(h, telemetry.MetricsPath, token).Code
	}
	for got, want := range map[string]int{"sesame": 200, "": 401, "other": 401} {
		if code := answers(settings.NewSecret("sesame"), got); code != want {
			t.Errorf("token %q is answered %d, want %d", got, code, want)
		}
	}
	if code := answers(settings.Secret{}, ""); code != 200 {
		t.Errorf("without a token configured: %d", code)
	}
}

func TestHealth(t *testing.T) {
	closed := false
	h := telemetry.WriteTo(&bytes.Buffer{}, "f").Handler(http.NotFoundHandler(), telemetry.Options{
		Close: func(context.Context) error { closed = true; return nil },
	})
	if w := get(h, telemetry.ReadinessPath, ""); w.Code != 200 {
		t.Errorf("ready: %d", w.Code)
	}
	if w := get(h, telemetry.LivenessPath, ""); w.Code != 200 {
		t.Errorf("alive: %d", w.Code)
	}
	if err := h.Stop(t.Context()); err != nil || !closed {
		t.Errorf("Stop = %v, closed: %t", err, closed)
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	var logs bytes.Buffer
	tel := telemetry.WriteTo(&logs, "f")
	h := tel.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/late" {
			w.WriteHeader(202)
		}
		panic("token hunter2")
	}), telemetry.Options{})
	if w := get(h, "/", ""); w.Code != 500 {
		t.Errorf("answered %d, want 500", w.Code)
	}
	if w := get(h, "/late", ""); w.Code != 202 {
		t.Errorf("after the status was sent: %d", w.Code)
	}
	if strings.Contains(logs.String(), "hunter2") || !strings.Contains(logs.String(), "request panicked") {
		t.Errorf("log: %s", logs.String())
	}
	if body := get(h, telemetry.MetricsPath, "").Body.String(); !strings.Contains(body, "tidemark_f_panics_total 2") {
		t.Error("the panics are not counted")
	}
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // compared by identity, as net/http does
			t.Error("a handler that aborts its connection is held up")
		}
	}()
	get(h, "/abort", "")
}
