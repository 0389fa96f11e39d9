package auditingest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// BenchmarkPost is for profiles; `make bench` measures processes.
func BenchmarkPost(b *testing.B) {
	server := valkeytest.Real(b)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: server.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	cfg := config(func(c *auditingest.Config) { c.MaxBodyBytes = 64 << 20 })
	f := httptest.NewServer(newFunction(b, cfg, auditingest.NewStore(cfg, store), io.Discard))
	defer f.Close()
	for _, size := range []int{1, 50, 400} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			body := []byte(list(recordedEvents(b, size)...))
			b.ReportAllocs()
			for range b.N {
				r, err := http.NewRequestWithContext(b.Context(), "POST", f.URL+"/audit-webhook/default", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer sesame")
				resp, err := f.Client().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
				resp.Body.Close()
				if resp.StatusCode != 200 {
					b.Fatal(resp.Status)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/event")
		})
	}
}

// recordedEvents are events of a real API server, as many as are wanted.
func recordedEvents(b *testing.B, n int) (out []string) {
	b.Helper()
	files, err := filepath.Glob("../../events/samples/sessions/*/audit.jsonl")
	if err != nil || len(files) == 0 {
		b.Fatalf("recordings: %v, %v", files, err)
	}
	for {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			for line := range bytes.Lines(text) {
				var post struct {
					Body struct{ Items []json.RawMessage }
				}
				if err := json.Unmarshal(line, &post); err != nil {
					b.Fatal(err)
				}
				for _, item := range post.Body.Items {
					if out = append(out, string(item)); len(out) == n {
						return out
					}
				}
			}
		}
	}
}
