package valkeytest

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Counter is a client hook that counts round trips: a command alone is one, and so is a pipeline. Opening a
// connection is not counted.
type Counter struct {
	mu       sync.Mutex
	trips    int
	commands []string
}

// Trips is the number of round trips since the last Reset.
func (c *Counter) Trips() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trips
}

// Commands lists the commands since the last Reset, by name.
func (c *Counter) Commands() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.commands...)
}

// Reset starts counting from zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips, c.commands = 0, nil
}

func (c *Counter) add(cmds ...redis.Cmder) {
	switch cmds[0].Name() {
	case "hello", "auth", "select", "client", "readonly", "cluster":
		return // opening a connection
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips++
	for _, cmd := range cmds {
		c.commands = append(c.commands, cmd.Name())
	}
}

// DialHook is part of redis.Hook.
func (c *Counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook is part of redis.Hook.
func (c *Counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.add(cmd); return next(ctx, cmd) }
}

// ProcessPipelineHook is part of redis.Hook.
func (c *Counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.add(cmds...); return next(ctx, cmds) }
}
