// Command knative is what cold starts are measured beside: func-go's hello with a connection to Redis.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/redis/go-redis/v9"
	fn "knative.dev/func-go/http"
)

type hello struct{ client *redis.Client }

func (h hello) Handle(w http.ResponseWriter, r *http.Request) {
	pong, err := h.client.Ping(r.Context()).Result()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, pong)
}

func main() {
	fn.SetLogLevel(fn.LogDisabled)
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	if err := fn.New(hello{client}).Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
