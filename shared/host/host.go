// Package host holds what a function may know of the platform that runs it. Its sub-packages translate a platform's call
// into a request to the function's http.Handler and nothing else; they alone import a platform's library.
//
// A function is an http.Handler. If it has a method Stop(context.Context) error, every host calls it when the last request
// is answered, to release what is held.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

// FromEnv makes a function from its environment; called once, when the process starts.
type FromEnv func() (http.Handler, error)

type trustKey struct{}

// WithTrust marks a request whose caller the platform has authenticated already, such as a CloudWatch Logs subscription
// that IAM let invoke the function: it carries no token of ours and needs none.
func WithTrust(ctx context.Context) context.Context { return context.WithValue(ctx, trustKey{}, true) }

// Trusted reports whether the platform authenticated the caller. Nothing in a request's text can set it.
func Trusted(ctx context.Context) bool {
	trusted, _ := ctx.Value(trustKey{}).(bool)
	return trusted
}

type drainKey struct{}

// WithDraining gives requests a channel that is closed when the process has been asked to end.
func WithDraining(ctx context.Context, draining <-chan struct{}) context.Context {
	return context.WithValue(ctx, drainKey{}, draining)
}

// Draining is closed when the process has been asked to end: a long request should come to its next resting point and
// answer. Its context is still alive then. Nil, which blocks for ever, where the host cannot tell.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return draining
}

// Logging is the setting that every host has. Embed it in the host's Config. telemetry reads the variable itself.
type Logging struct {
	Level string `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
}

// Validate refuses what would be taken for info.
func (l *Logging) Validate() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.TrimSpace(l.Level))); err != nil {
		return settings.Invalid("LOG_LEVEL", l.Level, "must be debug, info, warn or error")
	}
	return nil
}

// NoArguments refuses arguments: whoever gives some expects something of them.
func NoArguments(function string, args []string) error {
	if len(args) == 0 || settings.HelpWanted() {
		return nil
	}
	return fmt.Errorf("%s takes no argument %q: it is configured by environment variables, which -help prints", function, args[0])
}

// Prepare loads the host's own settings and makes the function. When -help was asked for it prints both tables to out and
// returns a nil handler and no error.
func Prepare(function string, own any, fromEnv FromEnv, out io.Writer) (http.Handler, error) {
	hostErr := settings.Load(own)
	var help *settings.Help
	wanted := errors.As(hostErr, &help)
	if hostErr != nil && !wanted {
		return nil, fmt.Errorf("%s: %w", function, hostErr)
	}
	handler, err := fromEnv()
	var functionHelp *settings.Help
	switch {
	case wanted && errors.As(err, &functionHelp):
		_, err = fmt.Fprintf(out, "%s is configured by environment variables.\n\n%s\nThe host:\n\n%s", function, functionHelp.Table, help.Table)
		return nil, err
	case wanted:
		_, err = fmt.Fprintf(out, "The host of %s is configured by environment variables.\n\n%s", function, help.Table)
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", function, err)
	}
	return handler, nil
}

// Exit ends the process with a message when err is not nil.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Stop calls the handler's Stop, if it has one.
func Stop(ctx context.Context, h http.Handler) error {
	if s, ok := h.(interface{ Stop(context.Context) error }); ok {
		return s.Stop(ctx)
	}
	return nil
}
