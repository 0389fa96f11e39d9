// Package local runs a function as an ordinary HTTP server: on a laptop, a small machine, in the all-in-one.
package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Config is what the host itself reads.
type Config struct {
	host.Logging
	ListenAddress  string        `envconfig:"LISTEN_ADDRESS" default:"127.0.0.1:8080" desc:"address to listen on"`
	CertFile       string        `envconfig:"TLS_CERT_FILE" desc:"PEM file of the certificate to serve with, for https; an API server calls admission webhooks, and sends tokens to audit webhooks, over https only"`
	KeyFile        string        `envconfig:"TLS_KEY_FILE" desc:"PEM file of the certificate's key"`
	RequestTimeout time.Duration `envconfig:"REQUEST_TIMEOUT" default:"10m" desc:"longest time from a request's first byte to the end of its answer"`
	DrainTimeout   time.Duration `envconfig:"DRAIN_TIMEOUT" default:"30s" desc:"how long requests in flight may go on after SIGTERM"`
}

// Validate reads the certificate, so that a wrong one is found at the start.
func (c *Config) Validate() error {
	switch {
	case c.CertFile == "" && c.KeyFile == "":
		return nil
	case c.CertFile == "":
		return settings.Missing("TLS_CERT_FILE", "TLS_KEY_FILE is set, so https is meant")
	case c.KeyFile == "":
		return settings.Missing("TLS_KEY_FILE", "TLS_CERT_FILE is set, so https is meant")
	}
	if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
		return settings.Invalid("TLS_CERT_FILE", c.CertFile, "must be a PEM certificate that goes with TLS_KEY_FILE (%s): %v", c.KeyFile, err)
	}
	return nil
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.ListenAddress)
	if err != nil {
		return fmt.Errorf("%s: LISTEN_ADDRESS (%s) must be free to listen on: %w", function, cfg.ListenAddress, err)
	}
	telemetry.New(function).Log.Info("listening", "address", listener.Addr().String(), "https", cfg.CertFile != "")
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
	go func() {
		if cfg.CertFile != "" {
			failed <- server.ServeTLS(listener, cfg.CertFile, cfg.KeyFile)
			return
		}
		failed <- server.Serve(listener)
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	return errors.Join(server.Shutdown(drain), host.Stop(drain, handler))
}
