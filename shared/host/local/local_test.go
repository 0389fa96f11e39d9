package local

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
)

type waiting struct {
	serving chan struct{}
	stopped chan struct{}
}

func (f waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	close(f.serving)
	<-host.Draining(r.Context())
	_, _ = io.WriteString(w, "finished")
}

func (f waiting) Stop(context.Context) error { close(f.stopped); return nil }

func TestRequestsInFlightAreFinishedBeforeTheFunctionStops(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := waiting{make(chan struct{}), make(chan struct{})}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, Config{RequestTimeout: time.Minute, DrainTimeout: time.Minute}, listener, f)
	}()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+listener.Addr().String(), "text/plain", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-f.serving
	end()
	if got := <-answered; got != "finished" {
		t.Errorf("the request in flight ends with %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	select {
	case <-f.stopped:
	default:
		t.Error("the function was not stopped")
	}
}
