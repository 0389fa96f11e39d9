package queue_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/queue"
)

func TestTheStoresConfigurationBeginsWithTheSeedsFields(t *testing.T) {
	seed := []string{"Addr string", "Username string", "AuthValue string", "DB int", "TLSEnabled bool", "KeyPrefix string"}
	cfg := reflect.TypeFor[queue.RedisStoreConfig]()
	for i, want := range seed {
		if f := cfg.Field(i); f.Name+" "+f.Type.String() != want {
			t.Errorf("field %d is %s %s, want %s", i, f.Name, f.Type, want)
		}
	}
	if !cfg.Comparable() {
		t.Error("two configurations cannot be compared")
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
