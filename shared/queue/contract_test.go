package queue_test

import (
	"encoding/json"
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

func TestEmptyValuesAsJSON(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{queue.AuthorFact{}, `{"author":""}`},
		{queue.AuthorResolution{}, `{"Fact":{"author":""},"Result":""}`},
		{queue.CommandAuthor{}, `{"author":""}`},
	} {
		if got, err := json.Marshal(c.value); err != nil || string(got) != c.want {
			t.Errorf("%T is %s, %v; want %s", c.value, got, err, c.want)
		}
	}
}
