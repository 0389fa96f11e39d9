package replay

import (
	"context"
	"sync"
	"time"
)

// Clock is the time of a session. It stands still until it is run or moved, and never goes back.
type Clock struct {
	mu      sync.Mutex
	at      time.Duration // when it was last set
	since   time.Time     // when it was last set; zero while it stands
	speed   float64
	changed chan struct{} // closed at every change
}

// NewClock is a clock that stands at zero.
func NewClock() *Clock { return &Clock{changed: make(chan struct{})} }

// Now is the time of the session.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Duration {
	if c.since.IsZero() {
		return c.at
	}
	return c.at + time.Duration(float64(time.Since(c.since))*c.speed)
}

// Run lets the clock run at so many times the speed of the recording; 0 stops it.
func (c *Clock) Run(speed float64) {
	c.change(func() {
		c.at, c.since, c.speed = c.now(), time.Time{}, speed
		if speed > 0 {
			c.since = time.Now()
		}
	})
}

// Set moves the clock to a time, if it has not passed it.
func (c *Clock) Set(at time.Duration) {
	c.change(func() {
		if at <= c.now() {
			return
		}
		c.at = at
		if !c.since.IsZero() {
			c.since = time.Now()
		}
	})
}

func (c *Clock) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait returns when the clock has reached a time, or with the context's error.
func (c *Clock) Wait(ctx context.Context, at time.Duration) error {
	for {
		c.mu.Lock()
		left, changed := at-c.now(), c.changed
		running, speed := !c.since.IsZero(), c.speed
		c.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		var timer <-chan time.Time
		if running {
			t := time.NewTimer(time.Duration(float64(left)/speed) + time.Microsecond)
			defer t.Stop()
			timer = t.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-timer:
		}
	}
}
