package auditingest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/bench"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

const (
	maxBytesPerEvent  = 600      // allocated, in a POST of 50, store included
	maxPeakManyEvents = 32 << 20 // above idle, for 64 MiB of 40,000 events
	maxPeakOneEvent   = 16 << 20 // above idle, for one event of 2 MiB
)

// discard is a ResponseWriter that keeps the status only.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

func TestAnEventAllocatesLittle(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates too, and makes pools forget")
	}
	server := valkeytest.Real(t)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cfg := config()
	f := newFunction(t, cfg, auditingest.NewStore(cfg, store), io.Discard)
	const posts, size = 200, 50
	body := []byte(list(manyEvents(size)...))
	var before, after runtime.MemStats
	run := func(n int) {
		t.Helper()
		for range n {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "/audit-webhook/default", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer sesame")
			w := &discard{header: http.Header{}}
			if f.ServeHTTP(w, r); w.status != 0 && w.status != 200 {
				t.Fatalf("answered %d", w.status)
			}
		}
	}
	run(20) // pools and the connection
	runtime.GC()
	runtime.ReadMemStats(&before)
	run(posts)
	runtime.ReadMemStats(&after)
	perEvent := (after.TotalAlloc - before.TotalAlloc) / (posts * size)
	t.Logf("%d bytes in %d allocations an event", perEvent, (after.Mallocs-before.Mallocs)/(posts*size))
	if perEvent > maxBytesPerEvent {
		t.Errorf("an event allocates %d bytes, want at most %d", perEvent, maxBytesPerEvent)
	}
}

// manyEvents are writes of different objects, each with the managedFields and annotations that real ones have.
func manyEvents(n int) []string {
	out := make([]string, n)
	noise := `"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-03-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{},"f:b":{}}}}],` +
		`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"a\":\"` + strings.Repeat("v", 200) + `\"}}"},`
	for i := range out {
		out[i] = strings.NewReplacer(`"uid":"u-1"`, fmt.Sprintf(`"uid":"0c1c2a6e-0000-4000-8000-%012d"`, i), `"metadata":{`, `"metadata":{`+noise).Replace(update(fmt.Sprintf("6ed97f9e-4b71-4653-9a35-%012d", i)))
	}
	return out
}

func TestMemoryFollowsNeitherThePostNorTheEvent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak of a process' memory is read from Linux' /proc")
	}
	server := valkeytest.Real(t)
	address := bench.FreeAddress(t)
	process := bench.Start(t, bench.Build(t, "functions/auditingest/knative"), address,
		"REDIS_ADDR="+server.Addr, "REDIS_KEY_PREFIX="+server.Prefix, "AUDIT_TOKENS=default=sesame", "AUDIT_STORE_TIMEOUT=60s")
	post := func(body []byte) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/audit-webhook/default", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer sesame")
		resp, err := (&http.Client{Timeout: 5 * time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("answered %s %s (%v)", resp.Status, text, err)
		}
		return strings.TrimSpace(string(text))
	}
	post([]byte(list(manyEvents(1)...)))

	large := strings.Replace(update("large"), `"kind":"ConfigMap"`, `"data":{"k":"`+strings.Repeat("v", 2<<20)+`"},"kind":"ConfigMap"`, 1)
	many := list(manyEvents(40_000)...)
	padding := (64<<20 - len(many)) / 40_000
	many = strings.ReplaceAll(many, `"kind":"ConfigMap"`, `"data":{"k":"`+strings.Repeat("x", padding)+`"},"kind":"ConfigMap"`)
	for _, c := range []struct {
		name, body, want string
		limit            int
	}{
		{"one event of 2 MiB", list(large), `{"stored":1,"counts":{"stored":1}}`, maxPeakOneEvent},
		{"64 MiB of 40,000 events", many, `{"stored":40000,"counts":{"stored":40000}}`, maxPeakManyEvents},
	} {
		idle := resident(t, process.Pid, "VmRSS")
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", process.Pid), []byte("5"), 0); err != nil {
			t.Fatalf("begin a new peak: %v", err)
		}
		answer := post([]byte(c.body))
		peak := resident(t, process.Pid, "VmHWM") - idle
		t.Logf("%s: %d bytes, peak %.1f MiB above %.1f MiB", c.name, len(c.body), float64(peak)/(1<<20), float64(idle)/(1<<20))
		if answer != c.want {
			t.Errorf("%s: answered %s, want %s", c.name, answer, c.want)
		}
		if peak > c.limit {
			t.Errorf("%s: memory peaks %d bytes above idle, want at most %d", c.name, peak, c.limit)
		}
	}
}

// resident reads a size from the status of a process.
func resident(t *testing.T, pid int, field string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in the status of process %d", field, pid)
	return 0
}
