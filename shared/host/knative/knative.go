// Package knative runs a function as a Knative service through func-go.
package knative

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	fn "knative.dev/func-go/http"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what the host itself reads. LISTEN_ADDRESS is func-go's own setting and is listed here for -help.
type Config struct {
	host.Logging
	ListenAddress  string        `envconfig:"LISTEN_ADDRESS" default:"[::]:8080" desc:"address to listen on"`
	RequestTimeout time.Duration `envconfig:"REQUEST_TIMEOUT" default:"10m" desc:"longest time from a request's first byte to the end of its answer; at least the service's timeoutSeconds"`
}

// Main runs the function until SIGTERM or SIGINT; requests in flight are finished first.
func Main(function string, fromEnv host.FromEnv) {
	host.Exit(run(function, fromEnv))
}

func run(function string, fromEnv host.FromEnv) error {
	if err := host.NoArguments(function, os.Args[1:]); err != nil {
		return err
	}
	var cfg Config
	handler, err := host.Prepare(function, &cfg, fromEnv, os.Stdout)
	if err != nil || handler == nil {
		return err
	}
	// func-go falls back to loopback when only PORT is set; a container must listen on every address.
	if err := os.Setenv("LISTEN_ADDRESS", cfg.ListenAddress); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	telemetry.New(function).Log.Info("starting", "address", cfg.ListenAddress)
	if err := NewService(ctx, cfg, handler).Start(ctx); err != nil {
		return fmt.Errorf("%s: LISTEN_ADDRESS (%s): %w", function, cfg.ListenAddress, err)
	}
	return nil
}

// NewService is the func-go service around a function. Its Handler can be called without listening.
func NewService(ctx context.Context, cfg Config, handler http.Handler) *fn.Service {
	fn.SetLogLevel(fn.LogWarn)
	svc := fn.New(instance{handler})
	// Both bound the whole request: with the library's 30 s a longer drain would lose its answer and its context.
	svc.ReadTimeout, svc.WriteTimeout = cfg.RequestTimeout, cfg.RequestTimeout
	svc.ReadHeaderTimeout = 10 * time.Second
	svc.BaseContext = func(net.Listener) context.Context { return host.WithDraining(context.Background(), ctx.Done()) }
	return svc
}

// instance gives func-go the methods it looks for.
type instance struct{ http.Handler }

func (i instance) Handle(w http.ResponseWriter, r *http.Request) { host.Serve(i.Handler, w, r) }

func (i instance) Stop(ctx context.Context) error { return host.Stop(ctx, i.Handler) }
