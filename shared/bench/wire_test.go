//go:build bench

package bench

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// wire passes TCP through, later by a delay each way, and counts. As on a real way of that length nothing can be sent
// before a connection's SYN and its answer have gone over it.
type wire struct {
	address string
	conns   atomic.Int64
	down    atomic.Int64 // bytes from the server
}

func startWire(t *testing.T, to string, delay time.Duration) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w := &wire{address: listener.Addr().String()}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			w.conns.Add(1)
			open := time.Now().Add(2 * delay)
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(far, near, open, delay, nil)
			go pass(near, far, open, delay, &w.down)
		}
	}()
	return w
}

// pass copies from one connection to the other. What was read is written a delay later, however much is under way, and
// counts as sent when the connection was open.
func pass(to, from net.Conn, open time.Time, delay time.Duration, count *atomic.Int64) {
	type piece struct {
		due  time.Time
		data []byte
	}
	line := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range line {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
				for range line { // let the reader end
				}
				return
			}
		}
	}()
	defer close(line)
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			if count != nil {
				count.Add(int64(n))
			}
			sent := time.Now()
			if sent.Before(open) {
				sent = open
			}
			line <- piece{sent.Add(delay), data[:n]}
		}
		if err != nil {
			return
		}
	}
}
