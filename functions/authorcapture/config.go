package authorcapture

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what the function reads from its environment.
type Config struct {
	queue.RedisEnv
	Token             settings.Secret `envconfig:"ADMISSION_TOKEN" desc:"Bearer token that callers must show; empty where the cluster cannot send one"`
	Timeout           time.Duration   `envconfig:"ADMISSION_TIMEOUT" default:"1s" desc:"time after which a review is answered whatever the store does; far below the webhook's timeoutSeconds"`
	Kinds             []string        `envconfig:"ADMISSION_KINDS" default:"commitrequests.tidemark.dev,commitrequests.configbutler.ai" desc:"command kinds as resource.group, comma-separated"`
	DisplayNameExtras []string        `envconfig:"DISPLAY_NAME_EXTRAS" default:"configbutler.ai/claims/display-name" desc:"user extras that may hold a display name; the first with a value wins"`
	EmailExtras       []string        `envconfig:"EMAIL_EXTRAS" default:"configbutler.ai/claims/email" desc:"user extras that may hold an e-mail address; the first with a value wins"`
	ReadToken         settings.Secret `envconfig:"READ_TOKEN" desc:"Bearer token for /metrics, where that is public"`
}

// maxTimeout keeps the answer well within the 10 s that an API server waits by default.
const maxTimeout = 5 * time.Second

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	if c.Timeout <= 0 || c.Timeout > maxTimeout {
		return settings.Invalid("ADMISSION_TIMEOUT", c.Timeout, "must be between 1ms and %s: the API server waits 10 s by default", maxTimeout)
	}
	if len(c.Kinds) == 0 {
		return settings.Missing("ADMISSION_KINDS", "there would be nothing to capture")
	}
	for _, kind := range c.Kinds {
		if resource, group, ok := strings.Cut(kind, "."); !ok || resource == "" || group == "" || kind != strings.ToLower(kind) {
			return settings.Invalid("ADMISSION_KINDS", kind, "must be resource.group in lower case, such as commitrequests.tidemark.dev")
		}
	}
	return nil
}

// FromEnv makes the function from its environment. It connects at the first review.
func FromEnv() (http.Handler, error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, err
	}
	store, err := cfg.OpenStore()
	if err != nil {
		return nil, err
	}
	tel := telemetry.New("authorcapture")
	handler := New(cfg, store.CommandAuthorStore(), tel)
	return tel.Handler(handler, telemetry.Options{
		ReadToken: cfg.ReadToken,
		Close:     func(context.Context) error { return store.Close() },
	}), nil
}
