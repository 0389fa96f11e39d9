package valkeytest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

const dialTimeout = 5 * time.Second

// Weather is how the network to a store behaves.
type Weather int

const (
	Fair        Weather = iota
	Down                // connections are refused and cut
	Hanging             // connections open, nothing comes back and nothing arrives
	LoseAnswers         // requests arrive and take effect, then the connection is cut
)

// Outage is a way to a server on which the network can fail.
type Outage struct {
	Addr    string
	target  string
	mu      sync.Mutex
	weather Weather
	conns   map[net.Conn]struct{}
}

// NewOutage listens in front of a single node. It begins Fair and ends with the test.
func NewOutage(t testing.TB, target string) *Outage {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	o := &Outage{Addr: l.Addr().String(), target: target, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { _ = l.Close(); o.Set(Down) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

// Set changes the weather. Down cuts what is connected.
func (o *Outage) Set(w Weather) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.weather = w
	if w == Down {
		for conn := range o.conns {
			_ = conn.Close()
		}
	}
}

func (o *Outage) now() Weather {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.weather
}

func (o *Outage) track(conns ...net.Conn) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range conns {
		o.conns[conn] = struct{}{}
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
			delete(o.conns, conn)
		}
	}
}

func (o *Outage) serve(client net.Conn) {
	if o.now() == Down {
		_ = client.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", o.target)
	if err != nil {
		_ = client.Close()
		return
	}
	done := o.track(client, server)
	defer done()
	ended := make(chan struct{}, 2)
	go func() {
		o.pump(server, client, func(w Weather) bool { return w != Hanging })
		ended <- struct{}{}
	}()
	go func() {
		o.pump(client, server, func(w Weather) bool { return w == Fair })
		ended <- struct{}{}
	}()
	<-ended
}

// pump copies while the weather allows; what it does not allow is swallowed, and a lost answer cuts.
func (o *Outage) pump(dst io.Writer, src io.Reader, allowed func(Weather) bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		switch w := o.now(); {
		case w == Down:
			return
		case allowed(w):
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		case w == LoseAnswers:
			return
		}
	}
}
