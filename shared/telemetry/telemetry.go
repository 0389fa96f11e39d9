// Package telemetry is how every function is seen from outside: structured logs, Prometheus metrics, health.
//
// Logs are JSON lines on standard error with the keys function, route, target, repository, sweep and error. Metrics are
// named tidemark_<function>_<what>_<unit>. Neither ever carries a URL with userinfo, a token or a Secret value; callers
// hand over what may be shown. The registry belongs to the Telemetry, so several functions can live in one process.
package telemetry

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Telemetry is the logger and the metrics of one function.
type Telemetry struct {
	// Log writes JSON lines that carry the function's name.
	Log *slog.Logger
	// Registry holds the function's metrics; Handler serves it.
	Registry *prometheus.Registry

	function string
}

// New is the Telemetry of a running function: standard error, at the level that LOG_LEVEL names (debug, info, warn,
// error; default info).
func New(function string) *Telemetry {
	t := WriteTo(os.Stderr, function)
	t.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// WriteTo is a Telemetry that logs to w and measures nothing of the process itself; tests use it.
func WriteTo(w io.Writer, function string) *Telemetry {
	log := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level(os.Getenv("LOG_LEVEL"))}))
	return &Telemetry{Log: log.With("function", function), Registry: prometheus.NewRegistry(), function: function}
}

func level(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(strings.TrimSpace(name))); err != nil {
		return slog.LevelInfo
	}
	return l
}

// Function is the name the metrics and log lines carry.
func (t *Telemetry) Function() string { return t.function }

// Counter registers tidemark_<function>_<what>; what ends in _total.
func (t *Telemetry) Counter(what, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: t.name(what), Help: help}, labels)
	t.Registry.MustRegister(c)
	return c
}

// Gauge registers tidemark_<function>_<what>; what ends in its unit.
func (t *Telemetry) Gauge(what, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: t.name(what), Help: help}, labels)
	t.Registry.MustRegister(g)
	return g
}

// Histogram registers tidemark_<function>_<what>; what ends in its unit, which is that of the buckets too.
func (t *Telemetry) Histogram(what, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.name(what), Help: help, Buckets: buckets}, labels)
	t.Registry.MustRegister(h)
	return h
}

// Seconds are buckets for what takes between a millisecond and a minute.
var Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func (t *Telemetry) name(what string) string { return "tidemark_" + t.function + "_" + what }
