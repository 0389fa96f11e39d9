package watchcommit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// noticing is a context that counts who waits for its end.
type noticing struct {
	context.Context
	waiting *atomic.Int32
}

func (n noticing) Done() <-chan struct{} {
	n.waiting.Add(1)
	return n.Context.Done()
}

func TestWakesThatComeTogetherShareADrain(t *testing.T) {
	var turns turns
	var mu sync.Mutex
	var drained []Wake
	release := make(chan struct{})
	drain := func(_ context.Context, w Wake) (Result, error) {
		mu.Lock()
		drained = append(drained, w)
		mu.Unlock()
		<-release
		return Result{Branches: 7}, nil
	}
	var all sync.WaitGroup
	var waiting atomic.Int32
	wake := func(resource string) {
		all.Go(func() {
			if r, err := turns.do(noticing{context.Background(), &waiting}, Wake{Resource: resource}, drain); err != nil || r.Branches != 7 {
				t.Errorf("%s: %+v %v", resource, r, err)
			}
		})
	}
	began := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(drained) == n
	}
	wake("first")
	for !began(1) {
		time.Sleep(time.Millisecond)
	}
	for _, resource := range []string{"second", "third", "fourth", "second"} {
		wake(resource)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := turns.do(ctx, Wake{Resource: "second"}, drain); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait gets %v", err)
	}
	for waiting.Load() < 5 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	all.Wait()
	if len(drained) != 2 || drained[0].Resource != "first" || drained[1] != (Wake{}) {
		t.Errorf("drained %+v, want the first and then everything once", drained)
	}
}
