package auditingest

import (
	"context"
	"time"
)

// turns bounds how many posts are worked on and how many wait, and so the memory that posts can take. A waiting post has
// not been read yet: it costs a connection and no more.
type turns struct {
	working chan struct{}
	waiting chan struct{}
	wait    time.Duration
}

func newTurns(concurrency, queue int, wait time.Duration) *turns {
	return &turns{working: make(chan struct{}, concurrency), waiting: make(chan struct{}, queue), wait: wait}
}

// take reports whether it is the caller's turn now; if so, done must be called.
func (t *turns) take(ctx context.Context) bool {
	select {
	case t.working <- struct{}{}:
		return true
	default:
	}
	select {
	case t.waiting <- struct{}{}:
		defer func() { <-t.waiting }()
	default:
		return false
	}
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case t.working <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func (t *turns) done() { <-t.working }
