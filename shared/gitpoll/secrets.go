package gitpoll

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// SecretReader reads the data of a Secret.
type SecretReader interface {
	SecretData(ctx context.Context, name types.NamespacedName) (map[string][]byte, error)
}

// credentialError is a Secret that could not be read: trouble with the API server, not with the git host.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// secretMemo reads each Secret once in a sweep, however many sources share it.
type secretMemo struct {
	reader   SecretReader
	failures prometheus.Counter

	mu   sync.Mutex
	read map[types.NamespacedName]*secretRead
}

type secretRead struct {
	done chan struct{} // closed when data and err are there
	data map[string][]byte
	err  error
}

func (m *secretMemo) get(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	if m.reader == nil {
		return nil, fmt.Errorf("secret %s is referenced, but nothing reads Secrets here", name)
	}
	m.mu.Lock()
	r, ok := m.read[name]
	if !ok {
		if m.read == nil {
			m.read = map[types.NamespacedName]*secretRead{}
		}
		r = &secretRead{done: make(chan struct{})}
		m.read[name] = r
	}
	m.mu.Unlock()
	if ok {
		<-r.done
		return r.data, r.err
	}
	defer close(r.done)
	if r.data, r.err = m.reader.SecretData(ctx, name); r.err == nil {
		return r.data, nil
	}
	r.data, r.err = nil, &credentialError{fmt.Errorf("getting secret %s: %w", name, r.err)}
	// A read that failed because the sweep was stopped is no failure of the API server.
	if ctx.Err() == nil && m.failures != nil {
		m.failures.Inc()
	}
	return nil, r.err
}
