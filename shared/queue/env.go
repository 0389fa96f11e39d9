package queue

// RedisEnv is the part of a function's settings that says how to reach the store. Embed it in the
// function's Config and read that with envconfig.Process("", &cfg).
type RedisEnv struct {
	Addr       string `envconfig:"REDIS_ADDR" desc:"host:port; several, comma-separated, mean Cluster, or the Sentinels of REDIS_MASTER_NAME"`
	Username   string `envconfig:"REDIS_USERNAME" desc:"ACL user; empty means the default user"`
	Password   string `envconfig:"REDIS_PASSWORD" desc:"password of the user"`
	DB         int    `envconfig:"REDIS_DB" default:"0" desc:"logical database; Cluster has only 0"`
	TLS        bool   `envconfig:"REDIS_TLS" default:"false" desc:"connect with TLS"`
	CAFile     string `envconfig:"REDIS_CA_FILE" desc:"PEM file of the authorities to trust; implies TLS"`
	MasterName string `envconfig:"REDIS_MASTER_NAME" desc:"the primary's name, where REDIS_ADDR lists Sentinels"`
	KeyPrefix  string `envconfig:"REDIS_KEY_PREFIX" default:"gitops-reverser" desc:"begins every key"`
}

// StoreConfig is the same as a RedisStoreConfig.
func (e RedisEnv) StoreConfig() RedisStoreConfig {
	return RedisStoreConfig{
		Addr: e.Addr, Username: e.Username, AuthValue: e.Password, DB: e.DB,
		TLSEnabled: e.TLS, CAFile: e.CAFile, MasterName: e.MasterName, KeyPrefix: e.KeyPrefix,
	}
}
