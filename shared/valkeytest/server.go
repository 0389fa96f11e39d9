// Package valkeytest gives tests a real Redis or Valkey: one node, a Cluster of three, one that goes away, and
// a counter of round trips. It is for tests only.
//
// A server is found through REDIS_ADDR, else as redis-server or valkey-server on PATH, else it is installed
// with the system's package manager where that is allowed. When none of this works the test fails and says
// so; it is never skipped.
package valkeytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// Server is what a test connects to. Tests share servers, so each uses its own Prefix.
type Server struct {
	Kind   string // "miniredis", "server" or "cluster"
	Addr   string // host:port, several separated by commas for a cluster
	Prefix string // a key prefix that nothing else uses
	// Forward lets time pass for TTLs; nil on a real server, where only waiting does.
	Forward func(time.Duration)
}

// Each runs the test on miniredis and on a real server.
func Each(t *testing.T, test func(t *testing.T, server Server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { test(t, Mini(t)) })
	t.Run("server", func(t *testing.T) { test(t, Real(t)) })
}

// EachAndCluster runs the test on miniredis, on a real server and on a Cluster of three.
func EachAndCluster(t *testing.T, test func(t *testing.T, server Server)) {
	t.Helper()
	Each(t, test)
	t.Run("cluster", func(t *testing.T) { test(t, Cluster(t)) })
}

// Mini is an in-process miniredis of its own, gone when the test ends.
func Mini(t testing.TB) Server {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		t.Fatalf("start miniredis: %v", err)
	}
	t.Cleanup(m.Close)
	return Server{Kind: "miniredis", Addr: m.Addr(), Prefix: newPrefix(), Forward: m.FastForward}
}

var (
	sharedServer = sync.OnceValues(func() (string, error) {
		if addr := os.Getenv("REDIS_ADDR"); addr != "" {
			return addr, ping(addr)
		}
		addr, _, err := start()
		return addr, err
	})
	sharedCluster = sync.OnceValues(startCluster)
)

// Real is a real single node. Tests of one process share it; it ends with the process.
func Real(t testing.TB) Server {
	t.Helper()
	addr, err := sharedServer()
	if err != nil {
		t.Fatalf("a real redis is needed: %v", err)
	}
	return Server{Kind: "server", Addr: addr, Prefix: newPrefix()}
}

// Cluster is a real Redis Cluster of three nodes. Tests of one process share it; it ends with the process.
func Cluster(t testing.TB) Server {
	t.Helper()
	addr, err := sharedCluster()
	if err != nil {
		t.Fatalf("a real redis cluster is needed: %v", err)
	}
	return Server{Kind: "cluster", Addr: addr, Prefix: newPrefix()}
}

// Own is a real single node of the test's own, for tests that flush it or stop it. stop ends it early.
func Own(t testing.TB) (server Server, stop func()) {
	t.Helper()
	addr, stop, err := start()
	if err != nil {
		t.Fatalf("a real redis is needed: %v", err)
	}
	t.Cleanup(stop)
	return Server{Kind: "server", Addr: addr, Prefix: newPrefix()}, stop
}

// Configured is a real single node of the test's own with a configuration file, but for its port, folder and persistence,
// and with more arguments. It may want users to sign in.
func Configured(t testing.TB, file string, args ...string) Server {
	t.Helper()
	addr, stop, err := startWith(file, args...)
	if err != nil {
		t.Fatalf("a real redis is needed: %v", err)
	}
	t.Cleanup(stop)
	return Server{Kind: "server", Addr: addr, Prefix: newPrefix()}
}

// Start gives programs what Real gives tests: the server at REDIS_ADDR or one of their own, which ends with the
// process.
func Start() (addr string, err error) { return sharedServer() }

func newPrefix() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "test-" + hex.EncodeToString(b[:])
}

// start runs a server on a free port of the loopback. It ends when stop is called or when this process is
// gone: its shell waits for the end of a pipe that only this process holds open.
func start(args ...string) (addr string, stop func(), err error) { return startWith("", args...) }

// held keeps the pipes of running servers reachable: one that is collected as garbage is closed.
var held sync.Map

// startWith is start with a configuration file, which the arguments overrule; "" is none.
func startWith(config string, args ...string) (addr string, stop func(), err error) {
	binary, err := find()
	if err != nil {
		return "", nil, err
	}
	port, err := loopback.Port()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "valkeytest-")
	if err != nil {
		return "", nil, err
	}
	command := []string{"-c", `"$@" & pid=$!; cat >/dev/null; kill -9 $pid; rm -rf "$0"`, dir, binary}
	if config != "" {
		command = append(command, config)
	}
	command = append(command, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no", "--loglevel", "warning")
	if !slices.Contains(args, "--sentinel") { // which keeps no data and knows no such settings
		command = append(command, "--save", "", "--appendonly", "no")
	}
	command = append(command, args...)
	shell := exec.CommandContext(context.Background(), "/bin/sh", command...) // ended by its pipe
	pipe, err := shell.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	shell.Stdout, shell.Stderr = io.Discard, io.Discard
	if err := shell.Start(); err != nil {
		return "", nil, fmt.Errorf("start %s: %w", binary, err)
	}
	held.Store(dir, pipe)
	stop = sync.OnceFunc(func() {
		held.Delete(dir)
		_ = pipe.Close()
		_ = shell.Wait()
	})
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := ping(addr); err != nil {
		stop()
		return "", nil, fmt.Errorf("%s does not answer: %w", binary, err)
	}
	return addr, stop, nil
}

func ping(addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, Password: os.Getenv("REDIS_PASSWORD")})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if strings.HasPrefix(err.Error(), "NOAUTH") { // it answers, but not to those who do not sign in
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
