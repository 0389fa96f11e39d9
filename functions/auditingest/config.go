package auditingest

import (
	"context"
	"net/http"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what the function reads from its environment.
type Config struct {
	queue.RedisEnv
	Tokens             settings.Secret `envconfig:"AUDIT_TOKENS" desc:"route=token pairs, comma-separated, split at the first =; several tokens a route; *=token opens every route"`
	AllowAnonymous     bool            `envconfig:"AUDIT_ALLOW_ANONYMOUS" default:"false" desc:"take posts without a token; only where nobody but the API server reaches the function"`
	RouteAnnotationKey string          `envconfig:"AUDIT_ROUTE_ANNOTATION_KEY" desc:"audit annotation that holds an event's route, for API servers that serve many logical clusters; opens the bare path"`
	FactTTL            time.Duration   `envconfig:"AUDIT_FACT_TTL" default:"10m" desc:"how long a fact waits for its change"`
	ClockSkew          time.Duration   `envconfig:"AUDIT_CLOCK_SKEW" default:"0s" desc:"what the clocks of your API servers may differ by"`
	MaxEventBytes      int64           `envconfig:"AUDIT_MAX_EVENT_BYTES" default:"16777216" desc:"a longer event is left out and counted"`
	MaxBodyBytes       int64           `envconfig:"AUDIT_MAX_BODY_BYTES" default:"134217728" desc:"a longer body, unpacked, is answered 413"`
	Concurrency        int             `envconfig:"AUDIT_CONCURRENCY" default:"8" desc:"posts decoded at one time"`
	Queue              int             `envconfig:"AUDIT_QUEUE" default:"64" desc:"posts that may wait for their turn; more are answered 503"`
	QueueWait          time.Duration   `envconfig:"AUDIT_QUEUE_WAIT" default:"2s" desc:"how long a post waits for its turn before it is answered 503"`
	ReadTimeout        time.Duration   `envconfig:"AUDIT_READ_TIMEOUT" default:"30s" desc:"time for a post's body to arrive"`
	StoreTimeout       time.Duration   `envconfig:"AUDIT_STORE_TIMEOUT" default:"5s" desc:"time for the store to take a post's facts"`
	DisplayNameExtras  []string        `envconfig:"DISPLAY_NAME_EXTRAS" default:"configbutler.ai/claims/display-name" desc:"user extras that may hold a display name; the first with a value wins"`
	EmailExtras        []string        `envconfig:"EMAIL_EXTRAS" default:"configbutler.ai/claims/email" desc:"user extras that may hold an e-mail address; the first with a value wins"`
	ReadToken          settings.Secret `envconfig:"READ_TOKEN" desc:"Bearer token for /metrics, where that is public"`
}

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	switch {
	case c.AllowAnonymous && c.Tokens.Configured():
		return settings.Invalid("AUDIT_ALLOW_ANONYMOUS", true, "must not be set beside AUDIT_TOKENS: keep one")
	case !c.AllowAnonymous && !c.Tokens.Configured():
		return settings.Missing("AUDIT_TOKENS", "without a token anybody could name authors; AUDIT_ALLOW_ANONYMOUS=true accepts that")
	}
	for _, n := range []struct {
		name  string
		value int64
		least int64
	}{
		{"AUDIT_MAX_EVENT_BYTES", c.MaxEventBytes, 1},
		{"AUDIT_MAX_BODY_BYTES", c.MaxBodyBytes, 1},
		{"AUDIT_CONCURRENCY", int64(c.Concurrency), 1},
		{"AUDIT_QUEUE", int64(c.Queue), 0},
	} {
		if n.value < n.least {
			return settings.Invalid(n.name, n.value, "must be at least %d", n.least)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"AUDIT_FACT_TTL", c.FactTTL}, {"AUDIT_QUEUE_WAIT", c.QueueWait},
		{"AUDIT_READ_TIMEOUT", c.ReadTimeout}, {"AUDIT_STORE_TIMEOUT", c.StoreTimeout},
	} {
		if d.value <= 0 {
			return settings.Invalid(d.name, d.value, "must be more than 0s")
		}
	}
	if c.ClockSkew < 0 {
		return settings.Invalid("AUDIT_CLOCK_SKEW", c.ClockSkew, "must not be negative")
	}
	return nil
}

func (c *Config) extraKeys() attribution.ExtraKeys {
	return attribution.ExtraKeys{DisplayName: c.DisplayNameExtras, Email: c.EmailExtras}
}

// factStore is the Store in Redis.
type factStore struct {
	*queue.AttributionIndex
	*queue.RedisStore
}

// NewStore is the Store over a connection.
func NewStore(cfg Config, store *queue.RedisStore) Store {
	return newStore(cfg, store)
}

func newStore(cfg Config, store *queue.RedisStore) factStore {
	return factStore{store.AttributionIndex(cfg.FactTTL).WithClockSkew(cfg.ClockSkew), store}
}

// FromEnv makes the function from its environment. It connects at the first post.
func FromEnv() (http.Handler, error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, err
	}
	store, err := cfg.OpenStore()
	if err != nil {
		return nil, err
	}
	tel := telemetry.New("auditingest")
	facts := newStore(cfg, store)
	tel.CounterFunc("versions_already_claimed_total", "Facts for a version that an earlier request had claimed: no-ops, and posts that came twice.",
		func() float64 { return float64(facts.VersionsAlreadyClaimed()) })
	handler, err := New(cfg, facts, tel)
	if err != nil {
		return nil, err
	}
	return tel.Handler(handler, telemetry.Options{
		ReadToken: cfg.ReadToken,
		Close:     func(context.Context) error { return store.Close() },
	}), nil
}
