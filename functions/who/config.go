package who

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

// Config is what who is told from outside.
type Config struct {
	queue.RedisEnv
	kube.Env
	TargetsFile string          `envconfig:"TARGETS_FILE" desc:"file of GitTarget documents, for a cluster without the CustomResourceDefinitions"`
	Commits     int             `envconfig:"WHO_COMMITS" default:"2000" desc:"how many commits of a branch are looked through at most"`
	Timeout     time.Duration   `envconfig:"WHO_TIMEOUT" default:"20s" desc:"longest time for an answer"`
	ReadToken   settings.Secret `envconfig:"READ_TOKEN" desc:"Bearer token for /who and /metrics, where they are public"`
}

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	switch {
	case c.Commits < 1 || c.Commits > 100_000:
		return settings.Invalid("WHO_COMMITS", c.Commits, "must be between 1 and 100000")
	case c.Timeout < time.Second || c.Timeout > 5*time.Minute:
		return settings.Invalid("WHO_TIMEOUT", c.Timeout, "must be between 1s and 5m")
	}
	return nil
}

// FromEnv makes the function from its environment. It connects at the first question.
func FromEnv() (http.Handler, error) {
	f, stop, err := fromEnv()
	if err != nil {
		return nil, err
	}
	return f.deps.Telemetry.Handler(f, telemetry.Options{
		ReadToken: f.cfg.ReadToken,
		Close:     func(context.Context) error { return stop() },
	}), nil
}

func fromEnv() (f *function, stop func() error, err error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, nil, err
	}
	store, err := cfg.OpenStore()
	if err != nil {
		return nil, nil, err
	}
	cluster, err := cfg.Connect("who")
	if err != nil {
		return nil, nil, err
	}
	pool := &gitwire.Pool{}
	stop = func() error {
		pool.Close()
		return store.Close()
	}
	return &function{cfg, Deps{Cluster: cluster, Authors: store.AttributionIndex(0), Pool: pool, Telemetry: telemetry.New("who")}}, stop, nil
}
