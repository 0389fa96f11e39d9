package watchcommit

import (
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// measures are the function's metrics.
type measures struct {
	drains    *telemetry.CounterVec
	changes   *telemetry.CounterVec
	commits   telemetry.Counter
	pushes    *telemetry.CounterVec
	settled   *telemetry.CounterVec
	settles   *telemetry.CounterVec
	wait      telemetry.Observer
	late      telemetry.Counter
	replays   telemetry.Counter
	readBack  telemetry.Counter
	forgotten telemetry.Counter
	drift     telemetry.Counter
}

func newMeasures(t *telemetry.Telemetry) measures {
	return measures{
		drains:    t.Counter("drains_total", "Requests, by outcome.", "outcome"),
		changes:   t.Counter("changes_total", "Changes pushed, by verb.", "verb"),
		commits:   t.Counter("commits_total", "Commits pushed.").WithLabelValues(),
		pushes:    t.Counter("pushes_total", "Pushes, by the class of their outcome.", "outcome"),
		settled:   t.Counter("authors_total", "Changes whose author was settled, by the class of evidence.", "class"),
		settles:   t.Counter("intents_total", "Intents of earlier drains that were settled, by what became of them.", "outcome"),
		wait:      t.Histogram("author_wait_seconds", "Time from the first sight of a change until its author was settled.", telemetry.Seconds).WithLabelValues(),
		late:      t.Counter("late_authors_total", "Changes whose author became known only after their grace was over.").WithLabelValues(),
		replays:   t.Counter("replays_total", "Replays begun.").WithLabelValues(),
		readBack:  t.Counter("read_back_total", "Changes read back after the API server had forgotten them.").WithLabelValues(),
		forgotten: t.Counter("forgotten_total", "Changes that could not be read back; the replay covers them.").WithLabelValues(),
		drift:     t.Counter("drift_total", "Files that somebody else had changed in git and that a newer change replaced.").WithLabelValues(),
	}
}

func outcomeOf(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}
