package auditingest_test

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// slowStore lets the test decide when a call ends.
type slowStore struct {
	fakeStore
	entered chan struct{}
	leave   chan struct{}
}

func (s *slowStore) RecordEvents(ctx context.Context, route string, events []attribution.Event) ([]attribution.Reason, error) {
	s.entered <- struct{}{}
	select {
	case <-s.leave:
		return s.fakeStore.RecordEvents(ctx, route, events)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// countingBody tells whether it was touched.
type countingBody struct {
	io.Reader
	mu   sync.Mutex
	read bool
}

func (b *countingBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.read = true
	b.mu.Unlock()
	return b.Reader.Read(p)
}

func TestMorePostsThanThereIsRoomForAreSentAwayUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{entered: make(chan struct{}, 100), leave: make(chan struct{})}
		f := newFunction(t, config(func(c *auditingest.Config) {
			c.Concurrency, c.Queue, c.QueueWait, c.StoreTimeout = 2, 3, time.Hour, 2*time.Hour
		}), store, io.Discard)
		answers := make(chan int, 100)
		bodies := make([]*countingBody, 8)
		for i := range bodies {
			bodies[i] = &countingBody{Reader: strings.NewReader(list(update("a")))}
			go func() {
				r := httptest.NewRequest("POST", "/audit-webhook/default", bodies[i])
				r.Header.Set("Authorization", "Bearer sesame")
				w := httptest.NewRecorder()
				f.ServeHTTP(w, r)
				if w.Code == 503 && w.Header().Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
				answers <- w.Code
			}()
			synctest.Wait()
		}
		if got := len(answers); got != 3 {
			t.Fatalf("%d posts are sent away at once, want 3 of 8 (2 work, 3 wait)", got)
		}
		touched := 0
		for _, b := range bodies {
			if b.read {
				touched++
			}
		}
		if touched != 2 {
			t.Errorf("%d bodies were read, want those of the 2 that work", touched)
		}
		close(store.leave)
		synctest.Wait()
		status := map[int]int{}
		for range 8 {
			status[<-answers]++
		}
		if status[200] != 5 || status[503] != 3 {
			t.Errorf("answers %v, want 5 times 200 and 3 times 503", status)
		}
	})
}

func TestAPostDoesNotWaitForItsTurnForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{entered: make(chan struct{}, 100), leave: make(chan struct{})}
		f := newFunction(t, config(func(c *auditingest.Config) {
			c.Concurrency, c.Queue, c.QueueWait, c.StoreTimeout = 1, 1, 2*time.Second, 10*time.Second
		}), store, io.Discard)
		answers := make(chan time.Duration, 2)
		start := time.Now()
		for range 2 {
			go func() {
				w := send(f, "POST", "/audit-webhook/default", bearer("sesame"), strings.NewReader(list(update("a"))))
				if w.Code != 503 {
					t.Errorf("answered %d, want 503", w.Code)
				}
				answers <- time.Since(start)
			}()
			synctest.Wait()
		}
		// The second gives up its place in the queue; the first has the store's deadline.
		if first, second := <-answers, <-answers; first != 2*time.Second || second != 10*time.Second {
			t.Errorf("answered after %s and %s, want 2s and 10s", first, second)
		}
	})
}
