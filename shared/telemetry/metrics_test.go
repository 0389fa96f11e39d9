package telemetry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, tel *telemetry.Telemetry) (text string, families map[string]float64) {
	t.Helper()
	text = get(tel.Handler(http.NotFoundHandler(), telemetry.Options{}), telemetry.MetricsPath, "").Body.String()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("Prometheus cannot read the metrics: %v\n%s", err, text)
	}
	families = map[string]float64{}
	for name, family := range parsed {
		for _, m := range family.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += "|" + l.GetValue()
			}
			switch {
			case m.GetCounter() != nil:
				families[key] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				families[key] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				families[key] = m.GetHistogram().GetSampleSum()
				families[key+"|count"] = float64(m.GetHistogram().GetSampleCount())
				for _, b := range m.GetHistogram().GetBucket() {
					families[key+"|le"+model.SampleValue(b.GetUpperBound()).String()] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return text, families
}

func TestPrometheusReadsTheMetrics(t *testing.T) {
	tel := telemetry.WriteTo(io.Discard, "f")
	c := tel.Counter("things_total", "Things,\nand \\ more.", "kind", "place")
	c.WithLabelValues("a", "x").Inc()
	c.WithLabelValues("a", "x").Add(2.5)
	c.WithLabelValues("a", "x").Add(-7)
	c.WithLabelValues(`q"\`+"\n", "\xff").Inc()
	g := tel.Gauge("level_bytes", "Level.", "kind")
	g.WithLabelValues("gone").Set(1)
	g.Reset()
	g.WithLabelValues("up").Set(5)
	g.WithLabelValues("up").Add(-7)
	h := tel.Histogram("wait_seconds", "Wait.", []float64{.1, 1, 10}).WithLabelValues()
	for _, v := range []float64{.05, .1, .5, 3, 100} {
		h.Observe(v)
	}
	tel.Gauge("now_timestamp_seconds", "Now.").WithLabelValues().SetToCurrentTime()
	tel.Counter("never_total", "Never with a label.", "kind")
	tel.CounterFunc("elsewhere_total", "Kept elsewhere.", func() float64 { return 12 })
	_, got := scrape(t, tel)
	for key, want := range map[string]float64{
		"tidemark_f_things_total|a|x":            3.5,
		"tidemark_f_things_total|q\"\\\n|\uFFFD": 1,
		"tidemark_f_elsewhere_total":             12,
		"tidemark_f_level_bytes|up":              -2,
		"tidemark_f_wait_seconds":                103.65,
		"tidemark_f_wait_seconds|count":          5,
		"tidemark_f_wait_seconds|le0.1":          2,
		"tidemark_f_wait_seconds|le1":            3,
		"tidemark_f_wait_seconds|le10":           4,
		"tidemark_f_wait_seconds|le+Inf":         5,
	} {
		if got[key] != want {
			t.Errorf("%q is %v, want %v", key, got[key], want)
		}
	}
	if _, ok := got["tidemark_f_level_bytes|gone"]; ok {
		t.Error("a gauge that was reset is shown")
	}
	if got["tidemark_f_now_timestamp_seconds"] < 1.7e9 {
		t.Errorf("now is %v", got["tidemark_f_now_timestamp_seconds"])
	}
}

func TestTheProcessIsMeasured(t *testing.T) {
	_, got := scrape(t, telemetry.New("f"))
	for _, name := range []string{"go_goroutines", "go_memstats_alloc_bytes_total", "go_memstats_mallocs_total", "process_cpu_seconds_total", "process_start_time_seconds"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func TestMetricsOfOthers(t *testing.T) {
	tel := telemetry.WriteTo(io.Discard, "f")
	tel.Also(func(w io.Writer) error { _, err := io.WriteString(w, "other_total 7\n"); return err })
	if text, got := scrape(t, tel); got["other_total"] != 0 && !strings.Contains(text, "other_total 7") {
		t.Errorf("the metrics lack those of others:\n%s", text)
	}
	var logs bytes.Buffer
	tel = telemetry.WriteTo(&logs, "f")
	tel.Also(func(io.Writer) error { return errors.New("broken") })
	get(tel.Handler(http.NotFoundHandler(), telemetry.Options{}), telemetry.MetricsPath, "")
	if !strings.Contains(logs.String(), "broken") {
		t.Errorf("the failure is not logged: %s", logs.String())
	}
}

func TestManyCountAtOnce(t *testing.T) {
	tel := telemetry.WriteTo(io.Discard, "f")
	c := tel.Counter("things_total", "Things.", "kind")
	h := tel.Histogram("wait_seconds", "Wait.", telemetry.Exponential(1, 2, 4)).WithLabelValues()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				c.WithLabelValues("a").Inc()
				h.Observe(3)
			}
		})
	}
	all.Wait()
	if _, got := scrape(t, tel); got["tidemark_f_things_total|a"] != 8000 || got["tidemark_f_wait_seconds"] != 24000 || got["tidemark_f_wait_seconds|le4"] != 8000 || got["tidemark_f_wait_seconds|le2"] != 0 {
		t.Errorf("got %v", got)
	}
}

func TestMistakesInTheCodePanic(t *testing.T) {
	tel := telemetry.WriteTo(io.Discard, "f")
	c := tel.Counter("things_total", "Things.", "kind")
	for name, mistake := range map[string]func(){
		"twice":           func() { tel.Gauge("things_total", "Again.") },
		"too few labels":  func() { c.WithLabelValues() },
		"too many labels": func() { c.WithLabelValues("a", "b") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			mistake()
		}()
	}
}
