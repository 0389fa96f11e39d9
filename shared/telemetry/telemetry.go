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
	"time"
)

// Telemetry is the logger and the metrics of one function.
type Telemetry struct {
	// Log writes JSON lines that carry the function's name.
	Log *slog.Logger

	function string
	metrics  registry
}

// New is the Telemetry of a running function: standard error, at the level that LOG_LEVEL names (debug, info, warn,
// error; default info).
func New(function string) *Telemetry {
	t := WriteTo(os.Stderr, function)
	t.Also(writeProcess(time.Now()))
	return t
}

// WriteTo is a Telemetry that logs to w and measures nothing of the process itself; tests use it.
func WriteTo(w io.Writer, function string) *Telemetry {
	log := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level(os.Getenv("LOG_LEVEL"))}))
	return &Telemetry{Log: log.With("function", function), function: function, metrics: registry{families: map[string]*family{}}}
}

func level(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(strings.TrimSpace(name))); err != nil {
		return slog.LevelInfo
	}
	return l
}

// Counter registers tidemark_<function>_<what>; what ends in _total.
func (t *Telemetry) Counter(what, help string, labels ...string) *CounterVec {
	return &CounterVec{t.metrics.add(kindCounter, t.name(what), help, nil, labels)}
}

// CounterFunc registers tidemark_<function>_<what>, a counter that is kept elsewhere; what ends in _total.
func (t *Telemetry) CounterFunc(what, help string, value func() float64) {
	c := &family{name: t.name(what), help: help, kind: kindCounter, series: map[string]*series{}}
	t.Also(func(w io.Writer) error {
		c.with(nil).value.store(value())
		_, err := w.Write(c.append(nil))
		return err
	})
}

// Gauge registers tidemark_<function>_<what>; what ends in its unit.
func (t *Telemetry) Gauge(what, help string, labels ...string) *GaugeVec {
	return &GaugeVec{t.metrics.add(kindGauge, t.name(what), help, nil, labels)}
}

// Histogram registers tidemark_<function>_<what>; what ends in its unit, which is that of the buckets too. Buckets are
// upper limits, in rising order.
func (t *Telemetry) Histogram(what, help string, buckets []float64, labels ...string) *HistogramVec {
	return &HistogramVec{t.metrics.add(kindHistogram, t.name(what), help, buckets, labels)}
}

// Also adds metrics that are kept elsewhere; write writes them in Prometheus' text format.
func (t *Telemetry) Also(write func(io.Writer) error) {
	t.metrics.mu.Lock()
	defer t.metrics.mu.Unlock()
	t.metrics.others = append(t.metrics.others, write)
}

// Seconds are buckets for what takes between a millisecond and a minute.
var Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func (t *Telemetry) name(what string) string { return "tidemark_" + t.function + "_" + what }
