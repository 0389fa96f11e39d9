package watchcommit

import (
	"context"
	"net/http"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// maxWindow is how long a tick may listen: the longest request of the platforms is 15 minutes.
const maxWindow = 14 * time.Minute

// Config is what watchcommit is told from outside.
type Config struct {
	queue.RedisEnv
	kube.Env
	Window      time.Duration   `envconfig:"WATCH_WINDOW" default:"55s" desc:"how long a tick listens for changes; 0s: catch up and leave"`
	Grace       time.Duration   `envconfig:"ATTRIBUTION_GRACE" default:"45s" desc:"how long a change waits for its author, from when it was first seen; a target may set its own"`
	Lease       time.Duration   `envconfig:"BRANCH_LEASE" default:"30s" desc:"how long a branch stays taken by a drain that has died"`
	TargetsFile string          `envconfig:"TARGETS_FILE" desc:"file of GitTarget documents, for a cluster without the CustomResourceDefinitions"`
	FactTTL     time.Duration   `envconfig:"AUDIT_FACT_TTL" default:"10m" desc:"how long facts about authors are kept; the same as auditingest's"`
	ClockSkew   time.Duration   `envconfig:"AUDIT_CLOCK_SKEW" default:"0s" desc:"by how much the clocks of the API servers may differ"`
	ReadToken   settings.Secret `envconfig:"READ_TOKEN" desc:"Bearer token for /metrics, where that is public"`
}

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	switch {
	case c.Window < 0 || c.Window > maxWindow:
		return settings.Invalid("WATCH_WINDOW", c.Window, "must be between 0s and %s", maxWindow)
	case c.Grace < 0 || c.Grace > kube.MaxAttributionGrace:
		return settings.Invalid("ATTRIBUTION_GRACE", c.Grace, "must be between 0s and %s: the API server may forget changes after 75s", kube.MaxAttributionGrace)
	case c.Lease < time.Second || c.Lease > 10*time.Minute:
		return settings.Invalid("BRANCH_LEASE", c.Lease, "must be between 1s and 10m")
	case c.FactTTL <= c.Grace:
		return settings.Invalid("AUDIT_FACT_TTL", c.FactTTL, "must be more than ATTRIBUTION_GRACE (%s): a fact must outlive the change that waits for it", c.Grace)
	case c.ClockSkew < 0:
		return settings.Invalid("AUDIT_CLOCK_SKEW", c.ClockSkew, "must not be negative")
	}
	return nil
}

// FromEnv makes the function from its environment. It connects at the first drain.
func FromEnv() (http.Handler, error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, err
	}
	store, err := cfg.OpenStore()
	if err != nil {
		return nil, err
	}
	cluster, err := cfg.Connect("watchcommit")
	if err != nil {
		return nil, err
	}
	tel := telemetry.New("watchcommit")
	pool := &gitwire.Pool{}
	function, err := New(cfg, Deps{Store: store, Cluster: cluster, Pool: pool, Telemetry: tel})
	if err != nil {
		return nil, err
	}
	return tel.Handler(function, telemetry.Options{
		ReadToken: cfg.ReadToken,
		Close: func(context.Context) error {
			pool.Close()
			return store.Close()
		},
	}), nil
}
