// Package local runs a function as an ordinary HTTP server: on a laptop, a small machine, in the all-in-one.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
)

// Config is what the host itself reads.
type Config struct {
	ListenAddress  string        `envconfig:"LISTEN_ADDRESS" default:"127.0.0.1:8080" desc:"address to listen on"`
	RequestTimeout time.Duration `envconfig:"REQUEST_TIMEOUT" default:"10m" desc:"longest time from a request's first byte to the end of its answer"`
	DrainTimeout   time.Duration `envconfig:"DRAIN_TIMEOUT" default:"30s" desc:"how long requests in flight may go on after SIGTERM"`
}

// Main runs the function until SIGTERM or SIGINT; requests in flight are finished first.
func Main(function string, fromEnv host.FromEnv) {
	host.Exit(run(function, fromEnv))
}

func run(function string, fromEnv host.FromEnv) error {
	var cfg Config
	handler, err := host.Prepare(function, &cfg, fromEnv, os.Stdout)
	if err != nil || handler == nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.ListenAddress)
	if err != nil {
		return fmt.Errorf("LISTEN_ADDRESS (%s) must be free to listen on: %w", cfg.ListenAddress, err)
	}
	return Serve(ctx, cfg, listener, handler)
}

// Serve answers requests on listener until ctx ends, then finishes those in flight and stops the function.
func Serve(ctx context.Context, cfg Config, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { host.Serve(handler, w, r) }),
		ReadTimeout:       cfg.RequestTimeout,
		WriteTimeout:      cfg.RequestTimeout,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return host.WithDraining(context.Background(), ctx.Done()) },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	return errors.Join(server.Shutdown(drain), host.Stop(drain, handler))
}
