// Package runtimetest plays AWS Lambda to a function: it hands out payloads one after another over the Runtime API and
// takes what comes back. It is for tests and measurements only.
package runtimetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// patience is how long the API waits for a function.
const patience = 20 * time.Second

// API is the Runtime API of one execution environment.
type API struct {
	// Address is what AWS_LAMBDA_RUNTIME_API must say.
	Address string

	t        testing.TB
	payloads chan string
	results  chan string
}

// New listens until the test ends.
func New(t testing.TB) *API {
	t.Helper()
	api := &API{t: t, payloads: make(chan string), results: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", api.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/response", api.take(""))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/1/error", api.take("error: "))
	mux.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Lambda-Extension-Identifier", "x")
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	api.Address = strings.TrimPrefix(server.URL, "http://")
	return api
}

func (api *API) next(w http.ResponseWriter, r *http.Request) {
	select {
	case payload := <-api.payloads:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
		fmt.Fprint(w, payload)
	case <-r.Context().Done():
	}
}

func (api *API) take(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		w.WriteHeader(http.StatusAccepted)
		api.results <- kind + string(body)
	}
}

// Invoke hands the payload to the function and returns its result; an error of the function begins with "error: ".
func (api *API) Invoke(payload string) string {
	api.t.Helper()
	select {
	case api.payloads <- payload:
	case <-time.After(patience):
		api.t.Fatal("the function does not ask for work")
	}
	select {
	case result := <-api.results:
		return result
	case <-time.After(patience):
		api.t.Fatal("the function does not answer")
	}
	return ""
}
