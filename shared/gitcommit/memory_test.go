package gitcommit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
)

// memory is an ObjectCache and a TipMemory that can misbehave the way a shared store does.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	tips    map[string]string
	// down makes every call fail; poison flips a byte in what is returned; evict forgets every other object; stale
	// remembers only the first tip.
	down, poison, evict, stale bool
	gets, hits                 int
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}, tips: map[string]string{}} }

var errDown = errors.New("the store is down")

func (m *memory) Get(_ context.Context, repository string, ids []string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	if m.down {
		return nil, errDown
	}
	out := map[string][]byte{}
	for _, id := range ids {
		value, found := m.objects[repository+id]
		if !found || m.evict && rand.IntN(2) == 0 {
			continue
		}
		m.hits++
		value = append([]byte(nil), value...)
		if m.poison {
			value[rand.IntN(len(value))] ^= 1
		}
		out[id] = value
	}
	return out, nil
}

func (m *memory) Put(_ context.Context, repository string, objects map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	for id, value := range objects {
		m.objects[repository+id] = append([]byte(nil), value...)
	}
	return nil
}

func (m *memory) RememberedTip(_ context.Context, repository, branch string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return "", errDown
	}
	return m.tips[repository+" "+branch], nil
}

func (m *memory) RememberTip(_ context.Context, repository, branch, tip string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	if m.stale && m.tips[repository+" "+branch] != "" {
		return nil
	}
	m.tips[repository+" "+branch] = tip
	return nil
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}
