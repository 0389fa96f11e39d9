//go:build bench

package bench

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// countedPosts is how many posts round trips are averaged over.
const countedPosts = 50

// oursTrips counts the round trips of a post where the client makes them. On the wire they cannot be counted: the server
// begins to answer a long request before its end.
func oursTrips(t *testing.T, server valkeytest.Server, p *posts) float64 {
	t.Helper()
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	index, trips, decoder := store.AttributionIndex(time.Hour), &valkeytest.Counter{}, auditstream.NewDecoder()
	store.AddHook(trips)
	for range countedPosts {
		if err := decoder.Reset(bytes.NewReader(p.next()), "", auditstream.Options{}); err != nil {
			t.Fatal(err)
		}
		events := make([]attribution.Event, p.size)
		for i := range events {
			if reason, err := decoder.Next(&events[i]); reason != "" || err != nil {
				t.Fatal(reason, err)
			}
		}
		if _, err := index.RecordEvents(t.Context(), "bench", events); err != nil {
			t.Fatal(err)
		}
	}
	return float64(trips.Trips()) / countedPosts
}

// plainTrips counts those of the plain way on the wire.
func plainTrips(t *testing.T, server valkeytest.Server, p *posts) float64 {
	t.Helper()
	wire := newCountedWire(t, server.Addr)
	plain := startIngest(t, "shared/bench/plainingest", server, wire.addr)
	plain.post(t, p.next())
	wire.reset()
	for range countedPosts {
		plain.post(t, p.next())
	}
	return float64(wire.trips()) / countedPosts
}

// countedWire is a way to a server that counts round trips: how often it was spoken to after it had answered.
type countedWire struct {
	addr string

	mu       sync.Mutex
	count    int
	speaking map[int]bool // by connection: whether the client spoke last
}

func newCountedWire(t *testing.T, target string) *countedWire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &countedWire{addr: l.Addr().String(), speaking: map[int]bool{}}
	go func() {
		for id := 0; ; id++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			go w.pump(server, client, id, true)
			go w.pump(client, server, id, false)
		}
	}()
	return w
}

func (w *countedWire) pump(dst io.WriteCloser, src io.Reader, id int, fromClient bool) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			w.heard(id, fromClient)
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *countedWire) heard(id int, fromClient bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fromClient && !w.speaking[id] {
		w.count++
	}
	w.speaking[id] = fromClient
}

func (w *countedWire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count = 0
}

func (w *countedWire) trips() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}
