//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

const plainIngest = "UniversalDeserializer, one SET a key"

// ingestRows measures auditingest and the plain way as processes of their own, over HTTP, on one real server.
func ingestRows(t *testing.T) []Row {
	server := valkeytest.Real(t)
	events := recordedEvents(t)
	ours := startIngest(t, "functions/auditingest/knative", server, server.Addr)
	plain := startIngest(t, "shared/bench/plainingest", server, server.Addr)
	rounds, budget := 7, 1500*time.Millisecond
	if Quick() {
		rounds, budget = 3, 300*time.Millisecond
	}
	var rows []Row
	compare := func(name string, posts *posts) {
		var wall [2][]float64
		side := func(i int, s *ingest) func() float64 {
			return func() float64 {
				perCPU, perSecond := s.run(t, posts, budget)
				wall[i] = append(wall[i], perSecond)
				return perCPU
			}
		}
		m := Interleave(rounds, side(0, ours), side(1, plain))
		rows = append(rows,
			MoreIsBetter("ingest, "+name, "events/CPU-s", m[0], m[1], plainIngest),
			LessIsBetter("ingest, "+name+", CPU", "µs/event", 1e6/m[0], 1e6/m[1], plainIngest),
			MoreIsBetter("ingest, "+name+", one sender", "events/s", Median(wall[0]), Median(wall[1]), plainIngest),
		)
	}
	for _, size := range []int{400, 50, 1} {
		compare(fmt.Sprintf("POSTs of %d", size), newPosts(events, size))
	}
	compare("one event of 943 KB", newPosts([][]byte{largeEvent(943_000)}, 1))

	fifty := newPosts(events, 50)
	oursBytes, oursAllocations := ours.allocations(t, fifty)
	plainBytes, plainAllocations := plain.allocations(t, fifty)
	return append(rows,
		LessIsBetter("ingest, POSTs of 50, memory", "B/event", oursBytes, plainBytes, plainIngest),
		LessIsBetter("ingest, POSTs of 50, allocations", "/event", oursAllocations, plainAllocations, plainIngest),
		LessIsBetter("ingest, POSTs of 50, round trips to Redis", "/POST", oursTrips(t, server, fifty), plainTrips(t, server, fifty), plainIngest),
	)
}

// ingest is a process that takes audit posts.
type ingest struct {
	pid     int
	address string
	client  *http.Client
}

func startIngest(t *testing.T, pkg string, server valkeytest.Server, redisAddr string) *ingest {
	t.Helper()
	address := FreeAddress(t)
	p := Start(t, Build(t, pkg), address, "REDIS_ADDR="+redisAddr, "REDIS_KEY_PREFIX="+server.Prefix,
		"AUDIT_ALLOW_ANONYMOUS=true", "AUDIT_FACT_TTL=24h")
	return &ingest{pid: p.Pid, address: "http://" + address, client: &http.Client{Timeout: time.Minute}}
}

// run posts for as long as the process takes the given processor time, and returns events per second of that and of the
// clock.
func (s *ingest) run(t *testing.T, p *posts, budget time.Duration) (perCPU, perSecond float64) {
	t.Helper()
	s.post(t, p.next()) // a connection, and warm pools
	before, begin := s.cpu(t), time.Now()
	events, used := 0, time.Duration(0)
	for used < budget {
		for range max(1, 20/p.size) {
			s.post(t, p.next())
			events += p.size
		}
		used = s.cpu(t) - before
	}
	return float64(events) / used.Seconds(), float64(events) / time.Since(begin).Seconds()
}

// allocations are bytes and allocations for an event.
func (s *ingest) allocations(t *testing.T, p *posts) (bytes, count float64) {
	t.Helper()
	const posts = 100
	for range 20 {
		s.post(t, p.next())
	}
	bytesBefore, countBefore := s.allocated(t)
	for range posts {
		s.post(t, p.next())
	}
	bytesAfter, countAfter := s.allocated(t)
	events := float64(posts * p.size)
	return (bytesAfter - bytesBefore) / events, (countAfter - countBefore) / events
}

// allocated asks the process what it has allocated so far.
func (s *ingest) allocated(t *testing.T) (bytes, allocations float64) {
	t.Helper()
	resp, err := s.client.Get(s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var value float64
		if _, err := fmt.Sscanf(lines.Text(), "go_memstats_alloc_bytes_total %g", &value); err == nil {
			bytes = value
		}
		if _, err := fmt.Sscanf(lines.Text(), "go_memstats_mallocs_total %g", &value); err == nil {
			allocations = value
		}
	}
	if lines.Err() != nil || bytes == 0 {
		t.Fatalf("no memory statistics (%v)", lines.Err())
	}
	return bytes, allocations
}

func (s *ingest) cpu(t *testing.T) time.Duration {
	t.Helper()
	used, err := CPU(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// post sends a body and returns the answer.
func (s *ingest) post(t *testing.T, body []byte) []byte {
	t.Helper()
	resp, err := s.client.Post(s.address+"/audit-webhook/bench", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the post is answered %s: %s (%v)", resp.Status, text, err)
	}
	return text
}
