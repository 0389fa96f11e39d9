package watchcommit

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

func TestSettingsNameTheVariableTheValueAndTheRule(t *testing.T) {
	for _, c := range []struct{ name, variable, value, want string }{
		{"a grace that outlasts the watch cache", "ATTRIBUTION_GRACE", "90s", "ATTRIBUTION_GRACE (1m30s) must be between 0s and 1m0s"},
		{"a negative grace", "ATTRIBUTION_GRACE", "-1s", "ATTRIBUTION_GRACE (-1s) must be between 0s"},
		{"a window longer than any request", "WATCH_WINDOW", "20m", "WATCH_WINDOW (20m0s) must be between 0s and 14m0s"},
		{"a lease that is over at once", "BRANCH_LEASE", "10ms", "BRANCH_LEASE (10ms) must be between 1s and 10m"},
		{"facts that die before the change they are for", "AUDIT_FACT_TTL", "30s", "AUDIT_FACT_TTL (30s) must be more than ATTRIBUTION_GRACE (45s)"},
		{"a negative skew", "AUDIT_CLOCK_SKEW", "-1s", "AUDIT_CLOCK_SKEW (-1s) must not be negative"},
		{"no duration", "WATCH_WINDOW", "soon", `WATCH_WINDOW ("soon") must be a duration`},
		{"the longest grace", "ATTRIBUTION_GRACE", "60s", ""},
		{"no window", "WATCH_WINDOW", "0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("REDIS_ADDR", "localhost:6379")
			t.Setenv(c.variable, c.value)
			var cfg Config
			err := settings.Load(&cfg)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	var cfg Config
	t.Setenv("REDIS_ADDR", "localhost:6379")
	if err := settings.Load(&cfg); err != nil || cfg.Window != 55*time.Second || cfg.Grace != 45*time.Second {
		t.Errorf("defaults: %+v %v", cfg, err)
	}
}
