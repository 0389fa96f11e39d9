package refsweep

import (
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// measures are the metrics of the function. The two wavefront counters keep the names under which they are known.
type measures struct {
	failures           *prometheus.CounterVec
	credentialFailures prometheus.Counter
	sweeps             *telemetry.CounterVec
	moves              telemetry.Counter
	notifications      *telemetry.CounterVec
	took               telemetry.Observer
	targets            *telemetry.GaugeVec
	slowest            *telemetry.GaugeVec
	last               telemetry.Gauge
}

func newMeasures(tel *telemetry.Telemetry) measures {
	m := measures{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wavefront_ref_list_failures_total", Help: "Listings of refs that failed, by host.",
		}, []string{"host"}),
		credentialFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "wavefront_credential_read_failures_total", Help: "Secrets with credentials that could not be read, once per Secret and sweep.",
		}),
		sweeps:        tel.Counter("sweeps_total", "Ticks, by outcome.", "outcome"),
		moves:         tel.Counter("moves_total", "Sources that moved and were notified.").WithLabelValues(),
		notifications: tel.Counter("notifications_total", "Notifications, by channel and outcome.", "channel", "outcome"),
		took:          tel.Histogram("sweep_duration_seconds", "Time from tick to notification.", telemetry.Seconds).WithLabelValues(),
		targets:       tel.Gauge("targets", "Sources of the last sweep, by how it found them; listed ones have a commit.", "kind"),
		slowest:       tel.Gauge("slowest_listing_seconds", "Longest listing of the hosts that were slowest in the last sweep.", "host"),
		last:          tel.Gauge("last_sweep_timestamp_seconds", "When the last sweep was published.").WithLabelValues(),
	}
	pollers := prometheus.NewRegistry()
	pollers.MustRegister(m.failures, m.credentialFailures)
	tel.Also(func(w io.Writer) error {
		families, err := pollers.Gather()
		if err != nil {
			return err
		}
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
				return err
			}
		}
		return nil
	})
	return m
}

// report puts a published sweep into metrics and log.
func (f *function) report(s *Summary, start time.Time, err error) {
	f.took.Observe(time.Since(start).Seconds())
	f.last.SetToCurrentTime()
	f.targets.Reset()
	f.targets.WithLabelValues("listed").Set(float64(s.Listed))
	failed := 0
	for kind, n := range s.Failed {
		f.targets.WithLabelValues(string(kind)).Set(float64(n))
		if kind != gitpoll.KindSuspended {
			failed += n
		}
	}
	f.slowest.Reset()
	for _, h := range s.SlowestHosts {
		f.slowest.WithLabelValues(h.Host).Set(float64(h.MaxMS) / 1000)
	}
	if err != nil {
		return // fail says the rest
	}
	f.sweeps.WithLabelValues("published").Inc()
	f.moves.Add(float64(len(s.Moved)))
	f.tel.Log.Info("swept", "sweep", s.Sweep, "took_ms", s.TookMS, "targets", s.Targets, "listed", s.Listed, "failed", failed,
		"kinds", s.Failed, "moved", len(s.Moved), "appeared", len(s.Appeared), "dropped", s.Dropped, "slowest", s.SlowestHosts)
}
