package queue

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/sigv4"
)

// RedisEnv is the part of a function's settings that says how to reach the store. Embed it in the
// function's Config and read that with settings.Load.
type RedisEnv struct {
	Addr       string          `envconfig:"REDIS_ADDR" desc:"host:port; several, comma-separated, mean Cluster, or the Sentinels of REDIS_MASTER_NAME"`
	Username   string          `envconfig:"REDIS_USERNAME" desc:"ACL user; empty means the default user"`
	Password   settings.Secret `envconfig:"REDIS_PASSWORD" secret:"true" desc:"password of the user"`
	IAMCache   string          `envconfig:"REDIS_IAM_CACHE" desc:"name of the ElastiCache Serverless cache to sign in to with the credentials of the Lambda function's role, instead of a password"`
	DB         int             `envconfig:"REDIS_DB" default:"0" desc:"logical database; Cluster has only 0"`
	TLS        bool            `envconfig:"REDIS_TLS" default:"false" desc:"connect with TLS"`
	CAFile     string          `envconfig:"REDIS_CA_FILE" desc:"PEM file of the authorities to trust; implies TLS"`
	MasterName string          `envconfig:"REDIS_MASTER_NAME" desc:"the primary's name, where REDIS_ADDR lists Sentinels"`
	KeyPrefix  string          `envconfig:"REDIS_KEY_PREFIX" default:"gitops-reverser" desc:"begins every key"`
}

// Validate refuses settings that contradict each other.
func (e *RedisEnv) Validate() error {
	if e.IAMCache == "" {
		return nil
	}
	switch {
	case e.Username == "":
		return settings.Missing("REDIS_USERNAME", "REDIS_IAM_CACHE signs in as a named user")
	case e.Password.Configured():
		return settings.Invalid("REDIS_IAM_CACHE", e.IAMCache, "must be empty when REDIS_PASSWORD is set: keep one")
	case !e.TLS && e.CAFile == "":
		return settings.Invalid("REDIS_IAM_CACHE", e.IAMCache, "needs REDIS_TLS=true: ElastiCache takes a signed password over TLS only")
	case os.Getenv("AWS_REGION") == "":
		return settings.Missing("AWS_REGION", "the region is part of what is signed for REDIS_IAM_CACHE; Lambda sets it")
	}
	return nil
}

// OpenStore is NewRedisStore with all settings. A password from a file or a secret store is read again for new
// connections, so that it can be rotated.
func (e RedisEnv) OpenStore() (*RedisStore, error) {
	if e.KeyPrefix != "" {
		if _, err := ValidateKeyPrefix(e.KeyPrefix); err != nil {
			return nil, fmt.Errorf("REDIS_KEY_PREFIX: %w", err)
		}
	}
	return e.connection().open()
}

func (e RedisEnv) connection() connection {
	c := connection{
		RedisStoreConfig: RedisStoreConfig{
			Addr: e.Addr, Username: e.Username, DB: e.DB, TLSEnabled: e.TLS, KeyPrefix: e.KeyPrefix, MasterName: e.MasterName, CAFile: e.CAFile,
		},
	}
	switch {
	case e.IAMCache != "":
		c.credentials = func(context.Context) (string, string, error) {
			role, err := sigv4.FromEnv()
			if err != nil {
				return "", "", err
			}
			return e.Username, sigv4.ElastiCachePassword(role, os.Getenv("AWS_REGION"), e.IAMCache, e.Username, time.Now()), nil
		}
	case e.Password.Configured():
		c.credentials = func(ctx context.Context) (string, string, error) {
			password, err := e.Password.Get(ctx)
			return e.Username, password, err
		}
	}
	return c
}
