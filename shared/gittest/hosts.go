package gittest

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Replay is a server that answers every ls-refs request with the same bytes, which are a whole HTTP answer. It
// allocates nothing for a request, so a test can count what its client allocates.
func Replay(t testing.TB, answer []byte) (url string) {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go replay(conn, answer)
		}
	}()
	return "http://" + listener.Addr().String()
}

func replay(conn net.Conn, answer []byte) {
	buf, n := make([]byte, 8<<10), 0
	for {
		more, err := conn.Read(buf[n:])
		if err != nil {
			return
		}
		if n += more; !bytes.HasSuffix(buf[:n], []byte("\n0000")) { // the flush packet that ends a request
			continue
		}
		n = 0
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// Silent is the address of a server that takes connections and never says a word.
func Silent(t testing.TB) (address string) {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// Dead is an address where nobody listens.
func Dead(t testing.TB) (address string) {
	t.Helper()
	listener := listen(t)
	address = listener.Addr().String()
	_ = listener.Close()
	return address
}

// Flood is a server whose answers have no end: with the given status, pkt-lines or whatever else chunk repeats.
func Flood(t testing.TB, status int, chunk string) (url string) {
	t.Helper()
	piece := bytes.Repeat([]byte(chunk), 1+(32<<10)/len(chunk))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		w.WriteHeader(status)
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
