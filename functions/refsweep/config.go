package refsweep

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what refsweep is told from outside.
type Config struct {
	queue.RedisEnv
	kube.Env
	Fleet          string          `envconfig:"SWEEP_FLEET" default:"default" desc:"name of the set of sources; two functions that share a Redis and sweep different sources need two names"`
	Namespace      string          `envconfig:"SWEEP_NAMESPACE" desc:"namespace of the GitRepository objects; empty: all"`
	Selector       string          `envconfig:"SWEEP_SELECTOR" desc:"label selector for the GitRepository objects; empty: all"`
	TargetsFile    string          `envconfig:"SWEEP_TARGETS_FILE" desc:"file of GitRepository documents, instead of a cluster"`
	SecretsDir     string          `envconfig:"SWEEP_SECRETS_DIR" desc:"folder of the Secrets of SWEEP_TARGETS_FILE: <namespace>/<name>/<key>, or <name>/<key>"`
	PerHost        int             `envconfig:"SWEEP_PER_HOST" default:"4" desc:"listings of one git host at a time"`
	ListingTimeout time.Duration   `envconfig:"SWEEP_LISTING_TIMEOUT" default:"15s" desc:"longest time for one listing"`
	Timeout        time.Duration   `envconfig:"SWEEP_TIMEOUT" default:"100s" desc:"longest time for a tick where the platform allows more; the sweep ends 5 s before"`
	MaxMoves       int             `envconfig:"SWEEP_MAX_MOVES" default:"500" desc:"most moves in one notification; the others come with the next"`
	Annotate       bool            `envconfig:"SWEEP_ANNOTATE" default:"false" desc:"ask Flux to reconcile a GitRepository that moved, with the annotation reconcile.fluxcd.io/requestedAt"`
	Sink           string          `envconfig:"K_SINK" desc:"URL that CloudEvents about moves are posted to; Knative's SinkBinding sets it"`
	Overrides      ceOverrides     `envconfig:"K_CE_OVERRIDES" desc:"JSON with extensions for the CloudEvents; Knative's SinkBinding sets it"`
	ReadToken      settings.Secret `envconfig:"READ_TOKEN" desc:"Bearer token for /observations, /metrics and the names in a tick's answer, where they are public"`
}

// ceOverrides is what K_CE_OVERRIDES holds.
type ceOverrides struct {
	Extensions map[string]string `json:"extensions"`
}

// Decode reads the JSON; envconfig calls it.
func (o *ceOverrides) Decode(value string) error { return json.Unmarshal([]byte(value), o) }

const (
	minTimeout = 10 * time.Second
	maxTimeout = 14 * time.Minute
)

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	if _, err := labels.Parse(c.Selector); err != nil {
		return settings.Invalid("SWEEP_SELECTOR", c.Selector, "must be a label selector such as team=shop: %v", err)
	}
	if c.Sink != "" {
		if u, err := url.Parse(c.Sink); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return settings.Invalid("K_SINK", "…", "must be an http or https URL")
		}
	}
	switch {
	case c.TargetsFile == "" && c.SecretsDir != "":
		return settings.Invalid("SWEEP_SECRETS_DIR", c.SecretsDir, "must be empty without SWEEP_TARGETS_FILE: the cluster's Secrets are read then")
	case c.GitSecrets != "" && c.SecretsDir != "":
		return settings.Invalid("SWEEP_SECRETS_DIR", c.SecretsDir, "must be empty when GIT_SECRETS_PREFIX is set: keep one")
	case c.TargetsFile != "" && c.Annotate:
		return settings.Invalid("SWEEP_ANNOTATE", c.Annotate, "must be false with SWEEP_TARGETS_FILE: there is nothing to annotate")
	case c.PerHost < 1 || c.PerHost > 64:
		return settings.Invalid("SWEEP_PER_HOST", c.PerHost, "must be between 1 and 64")
	case c.Timeout < minTimeout || c.Timeout > maxTimeout:
		return settings.Invalid("SWEEP_TIMEOUT", c.Timeout, "must be between %s and %s", minTimeout, maxTimeout)
	case c.ListingTimeout <= 0 || c.ListingTimeout > c.Timeout-endBefore:
		return settings.Invalid("SWEEP_LISTING_TIMEOUT", c.ListingTimeout, "must be more than 0s and at most %s less than SWEEP_TIMEOUT (%s)", endBefore, c.Timeout)
	case c.MaxMoves < 1 || c.MaxMoves > 10_000:
		return settings.Invalid("SWEEP_MAX_MOVES", c.MaxMoves, "must be between 1 and 10000")
	}
	return nil
}

// FromEnv makes the function from its environment. It connects at the first tick.
func FromEnv() (http.Handler, error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, err
	}
	store, err := cfg.OpenStore()
	if err != nil {
		return nil, err
	}
	return FromConfig(cfg, store, telemetry.New("refsweep"))
}

// FromConfig makes the function with a store, which it closes when it is stopped.
func FromConfig(cfg Config, store *queue.RedisStore, tel *telemetry.Telemetry) (http.Handler, error) {
	fleet, err := gitpoll.NewFleet(store.Client(), store.KeyPrefix(), cfg.Fleet)
	if err != nil {
		return nil, settings.Invalid("SWEEP_FLEET", cfg.Fleet, "is not usable: %v", err)
	}
	deps := Deps{Fleet: fleet}
	if cfg.TargetsFile != "" {
		if _, err := os.Stat(cfg.TargetsFile); err != nil {
			return nil, settings.Invalid("SWEEP_TARGETS_FILE", cfg.TargetsFile, "must be a readable file")
		}
		if dir, err := os.Stat(cfg.SecretsDir); cfg.SecretsDir != "" && (err != nil || !dir.IsDir()) {
			return nil, settings.Invalid("SWEEP_SECRETS_DIR", cfg.SecretsDir, "must be a readable folder")
		}
		deps.Targets, deps.Secrets = FileTargets(cfg.TargetsFile), DirSecrets(cfg.SecretsDir)
		if cfg.GitSecrets != "" {
			deps.Secrets = managedSecrets(kube.ManagedSecrets(cfg.GitSecrets))
		}
	} else {
		client, err := cfg.Connect("refsweep")
		if err != nil {
			return nil, err
		}
		flux := NewFlux(client, cfg.Namespace, cfg.Selector)
		deps.Targets, deps.Secrets = flux, flux
		if cfg.Annotate {
			deps.Annotate = flux.RequestReconcile
		}
	}
	return tel.Handler(New(cfg, deps, tel), telemetry.Options{
		ReadToken: cfg.ReadToken,
		Close:     func(context.Context) error { return store.Close() },
	}), nil
}
