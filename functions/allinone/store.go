package allinone

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embedStore runs a store inside this process and leads the functions to it, by the variables in which each looks
// for its store. Only who knows its password, drawn anew each time, can connect.
func embedStore() (release func() error, err error) {
	store := miniredis.NewMiniRedis()
	password := rand.Text()
	store.RequireAuth(password)
	if err := store.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the embedded store: %w", err)
	}
	for name, value := range map[string]string{"REDIS_ADDR": store.Addr(), "REDIS_USERNAME": "", "REDIS_PASSWORD": password, "REDIS_DB": "0"} {
		if err := os.Setenv(name, value); err != nil {
			store.Close()
			return nil, err
		}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go age(store, end, ended)
	return func() error {
		close(end)
		<-ended
		store.Close()
		return nil
	}, nil
}

// age lets the keys of the embedded store grow old: it does not do so by itself.
func age(store *miniredis.Miniredis, end <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-end:
			return
		case now := <-tick.C:
			store.FastForward(now.Sub(last))
			last = now
		}
	}
}
