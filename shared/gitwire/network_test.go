package gitwire_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// countingProxy passes TCP through and counts what the server sends.
type countingProxy struct {
	url   string
	down  atomic.Int64
	conns atomic.Int64
	mu    sync.Mutex
	sent  []byte
}

func newCountingProxy(t testing.TB, to string) *countingProxy {
	t.Helper()
	p := &countingProxy{}
	listener := listen(t)
	p.url = "http://" + listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			server, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, io.TeeReader(server, p)); _ = client.Close() }()
		}
	}()
	return p
}

func (p *countingProxy) Write(b []byte) (int, error) {
	p.down.Add(int64(len(b)))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, b...)
	return len(b), nil
}

// answer is what the server has sent so far.
func (p *countingProxy) answer() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.sent)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// deafAfter passes TCP through, but of what clients send only the first bytes; after them it reads no more.
func deafAfter(t testing.TB, to string, bytes int64) (address string) {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go func() { _, _ = io.CopyN(server, client, bytes) }()
			go func() { _, _ = io.Copy(client, server) }()
		}
	}()
	return listener.Addr().String()
}
