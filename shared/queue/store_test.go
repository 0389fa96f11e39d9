package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func newStore(t *testing.T, server valkeytest.Server) *queue.RedisStore {
	t.Helper()
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix, AuthValue: os.Getenv("REDIS_PASSWORD")})
	if err != nil {
		t.Fatalf("NewRedisStore: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestStoreAnswersPing(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		if err := newStore(t, server).Ping(context.Background()); err != nil {
			t.Fatalf("Ping: %v", err)
		}
	})
}

func TestStoreConfigurationIsChecked(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(notPEM, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  queue.RedisEnv
		want string // part of the error; empty: accepted
	}{
		{"an empty address is an error", queue.RedisEnv{}, "empty"},
		{"only commas are an empty address", queue.RedisEnv{Addr: " , "}, "empty"},
		{"an address without a port", queue.RedisEnv{Addr: "h"}, "REDIS_ADDR must be host:port"},
		{"an IPv6 address", queue.RedisEnv{Addr: "[::1]:6379"}, ""},
		{"a URL is not an address, and is not repeated", queue.RedisEnv{Addr: "redis://u:hunter2@h:6379"}, "host:port"},
		{"glob characters in the prefix", queue.RedisEnv{Addr: "h:1", KeyPrefix: "a*"}, "REDIS_KEY_PREFIX: key prefix \"a*\""},
		{"a prefix of colons only", queue.RedisEnv{Addr: "h:1", KeyPrefix: "::"}, "empty"},
		{"a negative database", queue.RedisEnv{Addr: "h:1", DB: -1}, "-1"},
		{"a database other than 0 on a cluster", queue.RedisEnv{Addr: "h:1,h:2", DB: 3}, "Cluster"},
		{"a database other than 0 behind Sentinels", queue.RedisEnv{Addr: "h:1,h:2", DB: 3, MasterName: "m"}, ""},
		{"a CA file that is not there", queue.RedisEnv{Addr: "h:1", CAFile: "/nowhere/ca.crt"}, "REDIS_CA_FILE must be a readable file"},
		{"a CA file without a certificate", queue.RedisEnv{Addr: "h:1", CAFile: notPEM}, "REDIS_CA_FILE ("},
		{"one address", queue.RedisEnv{Addr: "h:1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, err := c.env.OpenStore()
			switch {
			case c.want == "" && err != nil:
				t.Fatalf("got %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("got %v, want an error with %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Fatalf("the error repeats a password: %v", err)
			}
			if store != nil {
				_ = store.Close()
			}
		})
	}
}

func TestKeyPrefix(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", queue.DefaultKeyPrefix}, {" ", queue.DefaultKeyPrefix}, {"a", "a"}, {" a:b:: ", "a:b"}, {"A-z_0.9", "A-z_0.9"},
	} {
		store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: "h:1", KeyPrefix: c.in})
		if err != nil {
			t.Fatalf("%q: %v", c.in, err)
		}
		if got := store.KeyPrefix(); got != c.want {
			t.Errorf("prefix %q: got %q, want %q", c.in, got, c.want)
		}
		_ = store.Close()
	}
	for _, bad := range []string{"a%b", "a b", "a*", "a?", "[a]", strings.Repeat("x", 129), "ä"} {
		if _, err := queue.ValidateKeyPrefix(bad); err == nil {
			t.Errorf("prefix %q is accepted", bad)
		}
	}
}

func TestStoreBehindSentinels(t *testing.T) {
	server := valkeytest.Sentinel(t)
	store, err := queue.RedisEnv{Addr: server.Addr, MasterName: valkeytest.MasterName, KeyPrefix: server.Prefix}.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	if err := store.AdvanceWatchCursor(ctx, "t", configmaps, "", "7"); err != nil {
		t.Fatal(err)
	}
	if rv, ok := store.LookupWatchCursor(ctx, "t", configmaps, ""); !ok || rv != "7" {
		t.Fatalf("cursor %q %v, want 7", rv, ok)
	}
}

func TestStoreOverTLS(t *testing.T) {
	server, caFile := valkeytest.TLS(t)
	ctx := context.Background()
	for _, c := range []struct {
		name string
		cfg  queue.RedisStoreConfig
		want bool
	}{
		{"with its authority", queue.RedisStoreConfig{CAFile: caFile}, true},
		{"with the system's authorities", queue.RedisStoreConfig{TLSEnabled: true}, false},
		{"without TLS", queue.RedisStoreConfig{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Addr, c.cfg.KeyPrefix = server.Addr, server.Prefix
			store, err := queue.NewRedisStore(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.Ping(ctx); (err == nil) != c.want {
				t.Errorf("ping: %v", err)
			}
		})
	}
}
