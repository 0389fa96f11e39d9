package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Deadlines of the connection itself; each call is bounded by its context as well.
const (
	dialTimeout = 5 * time.Second
	callTimeout = 3 * time.Second
	maxRetries  = 2
)

// RedisStoreConfig says how to reach the store. The zero value of every field but Addr is usable. It begins with the fields
// of gitops-reverser's.
type RedisStoreConfig struct {
	// Addr is host:port. Several, separated by commas, mean Redis Cluster, or the Sentinels of MasterName.
	Addr string
	// Username of an ACL user; empty means the default user.
	Username string
	// AuthValue is the password. It appears in no error, log or key.
	AuthValue string
	// DB is the logical database; Cluster has only 0.
	DB int
	// TLSEnabled connects with TLS 1.2 or newer.
	TLSEnabled bool
	// KeyPrefix begins every key; empty means DefaultKeyPrefix.
	KeyPrefix string
	// MasterName is the name under which the Sentinels at Addr know the primary.
	MasterName string
	// CAFile is a PEM file with the certificate authorities to trust instead of the system's. It implies TLS.
	CAFile string
}

// connection is a RedisStoreConfig and what only the settings of a function ask for.
type connection struct {
	RedisStoreConfig
	// credentials gives username and password for each new connection instead of Username and AuthValue, where a
	// password lives for minutes.
	credentials func(context.Context) (username, password string, err error)
}

// RedisStore is the connection and the keyspace. Any number of them, in any number of processes, may share
// one Redis; a RedisStore itself is safe for concurrent use.
type RedisStore struct {
	client redis.UniversalClient
	prefix string
}

// clientLog keeps the client library's own lines, which go to standard error as plain text and tell what the errors of
// the calls tell too, out of the functions' logs, except at debug level.
type clientLog struct{}

func (clientLog) Printf(_ context.Context, format string, v ...any) {
	slog.Debug("redis client", "error", fmt.Sprintf(format, v...))
}

var quietClient = sync.OnceFunc(func() { redis.SetLogger(clientLog{}) })

// NewRedisStore checks the configuration and returns a store that connects when first used.
func NewRedisStore(cfg RedisStoreConfig) (*RedisStore, error) {
	return connection{RedisStoreConfig: cfg}.open()
}

func (c connection) open() (*RedisStore, error) {
	quietClient()
	addrs, err := splitAddrs(c.Addr)
	if err != nil {
		return nil, err
	}
	prefix := DefaultKeyPrefix
	if strings.TrimSpace(c.KeyPrefix) != "" {
		if prefix, err = ValidateKeyPrefix(c.KeyPrefix); err != nil {
			return nil, err
		}
	}
	if c.DB < 0 {
		return nil, fmt.Errorf("redis database (%d) must not be negative", c.DB)
	}
	if len(addrs) > 1 && c.MasterName == "" && c.DB != 0 {
		return nil, fmt.Errorf("redis database (%d) must be 0 with several addresses: a Cluster has no other", c.DB)
	}
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		CredentialsProviderContext: c.credentials,

		Addrs:                 addrs,
		MasterName:            c.MasterName,
		Username:              c.Username,
		Password:              c.AuthValue,
		DB:                    c.DB,
		TLSConfig:             tlsConfig,
		DialTimeout:           dialTimeout,
		ReadTimeout:           callTimeout,
		WriteTimeout:          callTimeout,
		MaxRetries:            maxRetries,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true, // two commands less on a cold start
		Protocol:              2,    // nothing here needs RESP3, which looks for pushed messages before each answer
	})
	return &RedisStore{client: client, prefix: prefix}, nil
}

// KeyPrefix is the prefix in use, without a trailing colon.
func (s *RedisStore) KeyPrefix() string { return s.prefix }

// Client is the connection itself, for the stores that other packages keep beside this one.
func (s *RedisStore) Client() redis.UniversalClient { return s.client }

// Ping answers whether the store can be reached now.
func (s *RedisStore) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Close gives the connections back.
func (s *RedisStore) Close() error { return s.client.Close() }

// AddHook lets a caller see each round trip: metrics, or a test that counts them.
func (s *RedisStore) AddHook(hook redis.Hook) { s.client.AddHook(hook) }

// errAddr does not repeat the address: it may hold a password.
var errAddr = errors.New("REDIS_ADDR must be host:port, several separated by commas, without scheme or credentials")

func splitAddrs(addr string) ([]string, error) {
	var addrs []string
	for _, a := range strings.Split(addr, ",") {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if strings.ContainsAny(a, "@/ ") {
			return nil, errAddr
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, errAddr
		}
		addrs = append(addrs, a)
	}
	if len(addrs) == 0 {
		return nil, errors.New("REDIS_ADDR is empty: it must be host:port")
	}
	return addrs, nil
}

func (c connection) tlsConfig() (*tls.Config, error) {
	if !c.TLSEnabled && c.CAFile == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return out, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("REDIS_CA_FILE must be a readable file: %w", err)
	}
	out.RootCAs = x509.NewCertPool()
	if !out.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("REDIS_CA_FILE (%s) must hold a certificate in PEM", c.CAFile)
	}
	return out, nil
}
