package queue_test

import (
	"testing"

	"github.com/tidemark-dev/tidemark/shared/queue"
)

func TestTheStoresConfigurationHasTheSeedsFields(t *testing.T) {
	type seed struct {
		Addr, Username, AuthValue string
		DB                        int
		TLSEnabled                bool
		KeyPrefix                 string
	}
	// Structs convert when they have the same fields in the same order.
	cfg := queue.RedisStoreConfig(seed{Addr: "h:1", AuthValue: "pw", DB: 3, TLSEnabled: true})
	if cfg != (queue.RedisStoreConfig{Addr: "h:1", AuthValue: "pw", DB: 3, TLSEnabled: true}) {
		t.Errorf("configuration %+v", cfg)
	}
}
