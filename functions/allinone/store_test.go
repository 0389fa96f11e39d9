package allinone

import (
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tidemark-dev/tidemark/shared/queue"
)

func TestTheEmbeddedStoreServesOnlyTheseFunctions(t *testing.T) {
	for _, name := range []string{"REDIS_ADDR", "REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_DB"} {
		t.Setenv(name, "set before")
	}
	release, err := embedStore()
	if err != nil {
		t.Fatal(err)
	}
	ping := func(password string) error {
		store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: os.Getenv("REDIS_ADDR"), AuthValue: password})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		return store.Ping(t.Context())
	}
	if err := ping(os.Getenv("REDIS_PASSWORD")); err != nil {
		t.Errorf("with its password: %v", err)
	}
	if err := ping("guess"); err == nil {
		t.Error("another password opens the store")
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if err := ping(os.Getenv("REDIS_PASSWORD")); err == nil {
		t.Error("the store outlives its release")
	}
}

func TestKeysOfTheEmbeddedStoreGrowOld(t *testing.T) {
	store := miniredis.RunT(t)
	if err := store.Set("fact", "alice"); err != nil {
		t.Fatal(err)
	}
	store.SetTTL("fact", 1500*time.Millisecond)
	end, ended := make(chan struct{}), make(chan struct{})
	go age(store, end, ended)
	for deadline := time.Now().Add(10 * time.Second); store.Exists("fact"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the key is still there after 10 s")
		}
	}
	close(end)
	<-ended
}
