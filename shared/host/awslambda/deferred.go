package awslambda

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/tidemark-dev/tidemark/shared/host"
)

// deferred makes the function at the first request. The Parameters and Secrets extension refuses to answer while the
// execution environment starts, so a function with a setting that it holds cannot be made before.
type deferred struct {
	fromEnv host.FromEnv
	log     *slog.Logger

	mu   sync.Mutex
	made http.Handler
}

// fromExtension reports whether a setting's value is with the extension.
func fromExtension() bool {
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasSuffix(name, "_SECRET_ARN") && value != "" {
			return true
		}
	}
	return false
}

// handler makes the function, once; a failure is tried again with the next request.
func (d *deferred) handler() (http.Handler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil {
		return d.made, nil
	}
	var err error
	d.made, err = d.fromEnv()
	return d.made, err
}

func (d *deferred) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, err := d.handler()
	if err != nil {
		d.log.Error("the function could not be made, will be tried again", "error", err)
		http.Error(w, "not configured", http.StatusServiceUnavailable)
		return
	}
	handler.ServeHTTP(w, r)
}

func (d *deferred) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		return nil
	}
	return host.Stop(ctx, d.made)
}
