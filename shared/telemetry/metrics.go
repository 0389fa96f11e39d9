package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The few kinds of metrics that functions need, in Prometheus' text format. Prometheus' own library does far more, and
// its start alone takes longer than all of ours.

// family is a metric with all its series.
type family struct {
	name, help, kind string
	labels           []string
	buckets          []float64 // of a histogram

	mu     sync.Mutex
	series map[string]*series // by rendered labels
}

// series is one combination of label values.
type series struct {
	labels  string // a="b",c="d"
	value   atomicFloat
	count   atomic.Uint64
	buckets []float64
	counts  []atomic.Uint64 // how many fell into each bucket alone
}

// atomicFloat is a number that many add to at once.
type atomicFloat struct{ bits atomic.Uint64 }

func (f *atomicFloat) load() float64   { return math.Float64frombits(f.bits.Load()) }
func (f *atomicFloat) store(v float64) { f.bits.Store(math.Float64bits(v)) }

func (f *atomicFloat) add(v float64) {
	for {
		old := f.bits.Load()
		if f.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Counter only grows.
type Counter struct{ s *series }

// Inc adds one.
func (c Counter) Inc() { c.s.value.add(1) }

// Add adds v, which must not be negative.
func (c Counter) Add(v float64) {
	if v > 0 {
		c.s.value.add(v)
	}
}

// Gauge goes up and down.
type Gauge struct{ s *series }

// Set makes v the value.
func (g Gauge) Set(v float64) { g.s.value.store(v) }

// Add adds v, which may be negative.
func (g Gauge) Add(v float64) { g.s.value.add(v) }

// SetToCurrentTime makes the present time the value, in seconds since 1970.
func (g Gauge) SetToCurrentTime() { g.Set(float64(time.Now().UnixNano()) / 1e9) }

// Observer takes single observations into a histogram.
type Observer struct{ s *series }

// Observe counts v.
func (o Observer) Observe(v float64) {
	at, _ := slices.BinarySearch(o.s.buckets, v)
	if at < len(o.s.counts) {
		o.s.counts[at].Add(1)
	}
	o.s.value.add(v)
	o.s.count.Add(1)
}

// CounterVec is a counter for each combination of label values.
type CounterVec struct{ f *family }

// WithLabelValues is the counter for these values, in the order of the labels.
func (v *CounterVec) WithLabelValues(values ...string) Counter { return Counter{v.f.with(values)} }

// GaugeVec is a gauge for each combination of label values.
type GaugeVec struct{ f *family }

// WithLabelValues is the gauge for these values, in the order of the labels.
func (v *GaugeVec) WithLabelValues(values ...string) Gauge { return Gauge{v.f.with(values)} }

// Reset forgets all combinations.
func (v *GaugeVec) Reset() {
	v.f.mu.Lock()
	defer v.f.mu.Unlock()
	clear(v.f.series)
}

// HistogramVec is a histogram for each combination of label values.
type HistogramVec struct{ f *family }

// WithLabelValues is the histogram for these values, in the order of the labels.
func (v *HistogramVec) WithLabelValues(values ...string) Observer { return Observer{v.f.with(values)} }

func (f *family) with(values []string) *series {
	if len(values) != len(f.labels) {
		panic(fmt.Sprintf("metric %s has %d labels, not %d", f.name, len(f.labels), len(values)))
	}
	var b strings.Builder
	for i, value := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f.labels[i] + `="` + labelEscaper.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`)
	}
	labels := b.String()
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.series[labels]
	if !ok {
		s = &series{labels: labels, buckets: f.buckets, counts: make([]atomic.Uint64, len(f.buckets))}
		f.series[labels] = s
	}
	return s
}

var (
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// registry holds the metrics of a function.
type registry struct {
	mu       sync.Mutex
	families map[string]*family
	others   []func(io.Writer) error
}

func (r *registry) add(kind, name, help string, buckets []float64, labels []string) *family {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.families[name] != nil {
		panic("metric " + name + " is registered twice")
	}
	f := &family{name: name, help: help, kind: kind, labels: labels, buckets: buckets, series: map[string]*series{}}
	r.families[name] = f
	if len(labels) == 0 {
		f.with(nil) // shown from the start, at zero
	}
	return f
}

// write writes all metrics in Prometheus' text format.
func (r *registry) write(w io.Writer) error {
	r.mu.Lock()
	families := make([]*family, 0, len(r.families))
	for _, f := range r.families {
		families = append(families, f)
	}
	others := slices.Clone(r.others)
	r.mu.Unlock()
	slices.SortFunc(families, func(a, b *family) int { return cmp.Compare(a.name, b.name) })
	var b []byte
	for _, f := range families {
		b = f.append(b)
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	for _, other := range others {
		if err := other(w); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) append(b []byte) []byte {
	f.mu.Lock()
	all := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	f.mu.Unlock()
	if len(all) == 0 {
		return b
	}
	slices.SortFunc(all, func(x, y *series) int { return cmp.Compare(x.labels, y.labels) })
	b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, helpEscaper.Replace(f.help), f.name, f.kind)
	for _, s := range all {
		if f.kind != kindHistogram {
			b = appendSample(b, f.name, s.labels, s.value.load())
			continue
		}
		below := uint64(0)
		for i, limit := range f.buckets {
			below += s.counts[i].Load()
			b = appendSample(b, f.name+"_bucket", and(s.labels, `le="`+strconv.FormatFloat(limit, 'g', -1, 64)+`"`), float64(below))
		}
		count := float64(max(below, s.count.Load())) // while others observe, the parts must not contradict each other
		b = appendSample(b, f.name+"_bucket", and(s.labels, `le="+Inf"`), count)
		b = appendSample(b, f.name+"_sum", s.labels, s.value.load())
		b = appendSample(b, f.name+"_count", s.labels, count)
	}
	return b
}

func and(labels, more string) string {
	if labels == "" {
		return more
	}
	return labels + "," + more
}

func appendSample(b []byte, name, labels string, value float64) []byte {
	b = append(b, name...)
	if labels != "" {
		b = append(append(append(b, '{'), labels...), '}')
	}
	b = append(b, ' ')
	b = strconv.AppendFloat(b, value, 'g', -1, 64)
	return append(b, '\n')
}

const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// Exponential are count buckets, each factor times the one before.
func Exponential(first, factor float64, count int) []float64 {
	out := make([]float64, count)
	for i := range out {
		out[i] = first
		first *= factor
	}
	return out
}
