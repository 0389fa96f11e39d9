package watchcommit

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// A custom type begins to be served while a tick listens. The tick takes it up by itself, so its first objects have
// authors and are not left to a reconcile commit, and it goes on listening.
func TestAListeningTickTakesUpANewType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, load(t, "story"), valkeytest.Mini(t))
	w.target(`
metadata: {name: prod}
spec:
  repository: {url: REPO, path: clusters/prod}
  attributionGrace: 2s
  resources: [{resource: services}, {group: shop.example, resource: features}]
`)
	w.clock.Set(20 * time.Second)
	w.facts()
	end, ended := make(chan struct{}), make(chan error)
	f := w.function(func(c *Config) { c.Window = time.Minute })
	go func() {
		_, err := f.Drain(host.WithDraining(t.Context(), end), Wake{Tick: true})
		ended <- err
	}()
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %s within 30 s: %v\n%s", what, w.api.Requests(), w.logs)
			}
		}
	}
	wait := func(what string) {
		t.Helper()
		until(what, func() bool { return w.api.Requests()[what] > 0 })
	}
	wait("watch services")
	w.clock.Set(22 * time.Second) // the type is there, and no object yet
	wait("watch features.shop.example")
	w.clock.Set(w.session.End())
	w.facts()
	until("removal of free-shipping", func() bool {
		log, err := w.repo.TryGit("log", "--format=%s", "main")
		return err == nil && strings.Contains(log, "delete shop.example/features shop/free-shipping")
	})
	close(end)
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, w.logs)
	}
	log := w.repo.Git("log", "--reverse", "--format=%an: %s", "main")
	for _, want := range []string{
		"Alice Adams: create shop.example/features shop/dark-mode", "Carol Chen: update shop.example/features shop/dark-mode",
		"bob: create shop.example/features shop/free-shipping", "Carol Chen: delete shop.example/features shop/free-shipping",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the history lacks %q:\n%s\n%s", want, log, w.logs)
		}
	}
}
