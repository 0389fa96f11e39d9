package watchcommit

import (
	"context"
	"sync"
)

// turns keeps wakes from piling up. One of them drains; those that come meanwhile share the next drain, which begins
// after all of them and so sees what each was sent for. The zero value is usable.
type turns struct {
	mu      sync.Mutex
	next    *turn
	running sync.Mutex
}

type turn struct {
	wake   Wake
	done   chan struct{}
	result Result
	err    error
}

// do drains for a wake, or waits for the drain that does. The drain outlives the request that began it: others wait
// for it too.
func (t *turns) do(ctx context.Context, wake Wake, drain func(context.Context, Wake) (Result, error)) (Result, error) {
	t.mu.Lock()
	mine := t.next
	if mine == nil {
		mine = &turn{wake: wake, done: make(chan struct{})}
		t.next = mine
		go t.run(context.WithoutCancel(ctx), mine, drain)
	} else if mine.wake != wake {
		mine.wake = Wake{} // everything
	}
	t.mu.Unlock()
	select {
	case <-mine.done:
		return mine.result, mine.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (t *turns) run(ctx context.Context, mine *turn, drain func(context.Context, Wake) (Result, error)) {
	t.running.Lock()
	defer t.running.Unlock()
	t.mu.Lock()
	t.next = nil // from now on it may be too late to be seen
	wake := mine.wake
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, catchUp+finish)
	defer cancel()
	mine.result, mine.err = drain(ctx, wake)
	close(mine.done)
}
