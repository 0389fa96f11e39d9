package auditingest

import (
	"strconv"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Causes of a 503.
const (
	causeBusy  = "busy"
	causeStore = "store"
)

var reasons = attribution.Reasons()

// counts is how many events ended with which reason; the position is that in reasons.
type counts [32]int

func (c *counts) add(reason attribution.Reason) { c[position(reason)]++ }

func (c *counts) of(reason attribution.Reason) int { return c[position(reason)] }

// appendJSON appends {"stored":N,"counts":{…}} with the reasons that occurred.
func (c *counts) appendJSON(b []byte) []byte {
	b = append(b, `{"stored":`...)
	b = strconv.AppendInt(b, int64(c.of(attribution.ReasonStored)), 10)
	b = append(b, `,"counts":{`...)
	separator := ""
	for i, reason := range reasons {
		if c[i] == 0 {
			continue
		}
		b = append(b, separator...)
		b = append(append(append(b, '"'), reason...), `":`...)
		b = strconv.AppendInt(b, int64(c[i]), 10)
		separator = ","
	}
	return append(b, "}}\n"...)
}

func position(reason attribution.Reason) int {
	for i := range reasons {
		if reasons[i] == reason {
			return i
		}
	}
	panic("reason outside the vocabulary: " + string(reason))
}

// measures are the function's metrics.
type measures struct {
	events      []telemetry.Counter // by position of the reason
	refused     *telemetry.CounterVec
	unavailable *telemetry.CounterVec
	bytes       telemetry.Observer
	oversized   telemetry.Observer
	store       telemetry.Observer
}

func newMeasures(tel *telemetry.Telemetry) *measures {
	sizes := telemetry.Exponential(1<<10, 4, 10) // 1 KiB to 256 MiB
	m := &measures{
		refused:     tel.Counter("refused_total", "Requests refused, by status code.", "code"),
		unavailable: tel.Counter("unavailable_total", "Posts answered 503, by cause.", "cause"),
		bytes:       tel.Histogram("body_bytes", "Size of posts, unpacked.", sizes).WithLabelValues(),
		oversized:   tel.Histogram("oversized_body_bytes", "Size of posts refused for it, as far as it was seen.", sizes).WithLabelValues(),
		store:       tel.Histogram("store_duration_seconds", "Time that the store took for a batch.", telemetry.Seconds).WithLabelValues(),
	}
	for _, cause := range []string{causeBusy, causeStore} {
		m.unavailable.WithLabelValues(cause)
	}
	events := tel.Counter("events_total", "Audit events, by what became of them.", "reason")
	for _, reason := range reasons {
		m.events = append(m.events, events.WithLabelValues(string(reason)))
	}
	return m
}

func (m *measures) counted(c *counts) {
	for i, counter := range m.events {
		if c[i] > 0 {
			counter.Add(float64(c[i]))
		}
	}
}

// storing begins to measure a call of the store; the returned function ends it.
func (m *measures) storing() func() {
	start := time.Now()
	return func() { m.store.Observe(time.Since(start).Seconds()) }
}
