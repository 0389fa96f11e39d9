package allinone

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/functions/refsweep"
	"github.com/tidemark-dev/tidemark/functions/watchcommit"
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what the process reads for itself; each function reads its own settings beside it.
type Config struct {
	Functions  []string      `envconfig:"FUNCTIONS" default:"auditingest,authorcapture,watchcommit" desc:"the functions to run; refsweep must be asked for, as it needs sources, and so must who, as it tells names"`
	RedisAddr  string        `envconfig:"REDIS_ADDR" desc:"the store of all functions; empty: one inside this process, which is gone when it ends"`
	DrainEvery time.Duration `envconfig:"DRAIN_EVERY" default:"1s" desc:"pause between two ticks of watchcommit"`
	SweepEvery time.Duration `envconfig:"SWEEP_EVERY" default:"1m" desc:"pause between two ticks of refsweep"`
}

// member is a function that can be run, and how.
type member struct {
	name    string
	fromEnv host.FromEnv
	paths   []string
	every   func(*Config) time.Duration
}

var members = []member{
	{"auditingest", auditingest.FromEnv, []string{"/audit-webhook", "/audit-webhook/"}, nil},
	{"authorcapture", authorcapture.FromEnv, []string{"/validate-operator-types"}, nil},
	{"watchcommit", watchcommit.FromEnv, nil, func(c *Config) time.Duration { return c.DrainEvery }},
	{"who", who.FromEnv, nil, nil},
	{"refsweep", refsweep.FromEnv, []string{"/observations"}, func(c *Config) time.Duration { return c.SweepEvery }},
}

func names() []string {
	var out []string
	for _, m := range members {
		out = append(out, m.name)
	}
	return out
}

// Validate checks what types alone cannot.
func (c *Config) Validate() error {
	for _, f := range c.Functions {
		if !slices.Contains(names(), f) {
			return settings.Invalid("FUNCTIONS", f, "must be some of %s", strings.Join(names(), ","))
		}
	}
	switch {
	case len(c.Functions) == 0:
		return settings.Missing("FUNCTIONS", "there would be nothing to run")
	case c.DrainEvery <= 0:
		return settings.Invalid("DRAIN_EVERY", c.DrainEvery, "must be more than 0s")
	case c.SweepEvery <= 0:
		return settings.Invalid("SWEEP_EVERY", c.SweepEvery, "must be more than 0s")
	}
	return nil
}

// FromEnv makes the functions from the environment, with a store of their own if none is named, and begins to tick.
func FromEnv() (http.Handler, error) {
	var cfg Config
	if err := settings.Load(&cfg); err != nil {
		return nil, withMembers(err)
	}
	tel := telemetry.New("allinone")
	release := func() error { return nil }
	if cfg.RedisAddr == "" {
		if name := ownStoreMeant(); name != "" {
			return nil, settings.Missing("REDIS_ADDR", "%s is set, so a store of your own is meant; unset both for one inside this process", name)
		}
		var err error
		if release, err = embedStore(); err != nil {
			return nil, err
		}
		tel.Log.Warn("REDIS_ADDR is empty: the store is inside this process and NOT DURABLE; facts and cursors are gone when it ends")
	}
	var functions []Function
	for _, m := range members {
		if !slices.Contains(cfg.Functions, m.name) {
			continue
		}
		handler, err := m.fromEnv()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", m.name, err), release())
		}
		f := Function{Name: m.name, Handler: handler, Paths: m.paths}
		if m.every != nil {
			f.Every = m.every(&cfg)
		}
		functions = append(functions, f)
	}
	return New(functions, tel, release), nil
}

// ownStoreMeant names a setting that makes sense for a store outside this process only.
func ownStoreMeant() string {
	for _, name := range []string{"REDIS_MASTER_NAME", "REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_PASSWORD_FILE", "REDIS_PASSWORD_SECRET_ARN", "REDIS_IAM_CACHE", "REDIS_TLS", "REDIS_CA_FILE", "REDIS_DB"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// withMembers puts the settings of every function below our own, when -help was asked for.
func withMembers(err error) error {
	var own *settings.Help
	if !errors.As(err, &own) {
		return err
	}
	table := own.Table
	for _, m := range members {
		var help *settings.Help
		if _, err := m.fromEnv(); errors.As(err, &help) {
			table += "\n" + m.name + ":\n\n" + help.Table
		}
	}
	return &settings.Help{Table: table}
}
