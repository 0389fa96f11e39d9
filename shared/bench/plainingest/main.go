// Command plainingest is the baseline that auditingest is measured beside: an audit webhook written the straightforward
// way, with Kubernetes' own decoder and one SET a key.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	goruntime "runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	if err := auditv1.AddToScheme(scheme); err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	mux := http.NewServeMux()
	mux.HandleFunc("/health/readiness", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var mem goruntime.MemStats
		goruntime.ReadMemStats(&mem)
		fmt.Fprintf(w, "go_memstats_alloc_bytes_total %d\ngo_memstats_mallocs_total %d\n", mem.TotalAlloc, mem.Mallocs)
	})
	mux.HandleFunc("POST /audit-webhook/{route}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		list := &auditv1.EventList{}
		if _, _, err := decoder.Decode(body, nil, list); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := store(r.Context(), client, r.PathValue("route"), list); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: os.Getenv("LISTEN_ADDRESS"), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// store sets one key after the other, the last writer winning.
func store(ctx context.Context, client *redis.Client, route string, list *auditv1.EventList) error {
	for i := range list.Items {
		event := kubeaudit.Event(&list.Items[i], attribution.DefaultExtraKeys(), "")
		if attribution.Admit(&event) != "" {
			continue
		}
		for _, proof := range attribution.Prove(nil, &event) {
			value, err := json.Marshal(proof.Fact)
			if err != nil {
				return err
			}
			root := "plain:" + route + ":" + proof.Fact.GroupResource + ":" + proof.Fact.UID + ":"
			keys := []string{root + "last"}
			if proof.Slots&attribution.SlotExact != 0 {
				keys = append(keys, root+proof.Fact.ResourceVersion)
			}
			for _, key := range keys {
				if err := client.Set(ctx, key, value, 10*time.Minute).Err(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
