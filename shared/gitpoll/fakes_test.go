package gitpoll_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

// listFunc is a Lister.
type listFunc func(ctx context.Context, url string, auth transport.AuthMethod) (map[string]string, error)

func (f listFunc) List(ctx context.Context, url string, auth transport.AuthMethod) (map[string]string, error) {
	return f(ctx, url, auth)
}

// remote is a Lister over made-up repositories.
type remote struct {
	mu    sync.Mutex
	refs  map[string]map[string]string
	errs  map[string]error
	asked map[string]int
	auths []transport.AuthMethod
}

func (r *remote) List(_ context.Context, url string, auth transport.AuthMethod) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[url]++
	r.auths = append(r.auths, auth)
	if err := r.errs[url]; err != nil {
		return nil, err
	}
	return maps.Clone(r.refs[url]), nil
}

func (r *remote) used() []transport.AuthMethod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]transport.AuthMethod(nil), r.auths...)
}

func (r *remote) set(url, ref, sha string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs == nil {
		r.refs, r.errs = map[string]map[string]string{}, map[string]error{}
	}
	r.refs[url], r.errs[url] = map[string]string{ref: sha}, err
}

func (r *remote) count(url string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[url]
}

// secretsMap reads Secrets from a map and counts.
type secretsMap struct {
	mu    sync.Mutex
	data  map[string]map[string][]byte
	reads map[string]int
}

func (s *secretsMap) SecretData(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == nil {
		s.reads = map[string]int{}
	}
	s.reads[name.String()]++
	data, ok := s.data[name.String()]
	if !ok {
		return nil, errNoSecret
	}
	return data, nil
}

func (s *secretsMap) counts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.reads)
}

var errNoSecret = errors.New("no such secret")

type metrics struct {
	failures    *prometheus.CounterVec
	credentials prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "wavefront_ref_list_failures_total"}, []string{"host"}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "wavefront_credential_read_failures_total"}),
	}
}

func name(s string) types.NamespacedName { return types.NamespacedName{Namespace: "flux", Name: s} }

func target(source, url string) gitpoll.Target {
	return gitpoll.Target{Source: name(source), URL: url, TrackingRef: main}
}

// start runs a Poller until the test's bubble ends.
func start(t *testing.T, p *gitpoll.Poller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v, want nil", err)
		}
	}
}

// after lets the bubble's clock run.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type blockedSecrets struct{}

// slowSecrets takes two seconds for a Secret.
type slowSecrets struct{ reads atomic.Int32 }

func (s *slowSecrets) SecretData(context.Context, types.NamespacedName) (map[string][]byte, error) {
	s.reads.Add(1)
	time.Sleep(2 * time.Second)
	return map[string][]byte{"username": []byte("alice")}, nil
}

// upper is a strategy of a user's own: it sees every ref.
type upper struct{ selection.Strategy }
