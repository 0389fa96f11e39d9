//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

const manyObjects = 5000

// TestReplayOfManyObjects: five thousand objects that git has not seen are one commit; a second replay, without any cursor,
// is none. What it costs is printed, and memory is bounded.
func TestReplayOfManyObjects(t *testing.T) {
	w := newWorld(t, kubetest.Options{Controllers: []string{kubetest.AggregatedRoles}}, `
  resources: [{resource: configmaps, namespaces: [shop]}]
  prune: Always
`, "WATCH_WINDOW=0", "ATTRIBUTION_GRACE=20s")
	w.createMany(manyObjects)
	front := w.countAPI()
	for _, tc := range []struct {
		name    string
		commits int
	}{{"first replay", 1}, {"second replay", 0}} {
		t.Run(tc.name, func(t *testing.T) {
			w.forgetCursors()
			w.repo.Git("gc", "--quiet")
			watch := start(t, "watchcommit", append(w.settings, "KUBECONFIG="+front.kubeconfig)...)
			before, trips, requests := len(w.history()), w.roundTrips(), front.requests.Load()
			watch.tick()
			trips, requests = w.roundTrips()-trips, front.requests.Load()-requests
			if got := len(w.history()) - before; got != tc.commits {
				t.Errorf("%d commits, want %d", got, tc.commits)
			}
			w.wantTree("clusters/prod", kubetest.Listing{GVR: configMaps, Namespace: "shop"})
			memory := watch.peakMemory()
			t.Logf("%d objects: %d MiB at most, %d Redis round trips, %d API requests", manyObjects, memory>>20, trips, requests)
			if memory > 256<<20 {
				t.Errorf("%d MiB of memory, want at most 256", memory>>20)
			}
			if trips > 100 || requests > 10 {
				t.Errorf("%d Redis round trips and %d API requests: their number must not follow the objects", trips, requests)
			}
		})
	}
}

func (w *world) createMany(n int) {
	w.t.Helper()
	maps := w.cluster.Client(kubetest.Admin).Resource(configMaps).Namespace("shop")
	var all sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				u := configMap("shop", fmt.Sprintf("many-%04d", i), fmt.Sprint(i))
				u.Object["data"].(map[string]any)["text"] = strings.Repeat("words of some length\n", 40)
				if _, err := maps.Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// forgetCursors removes what Redis holds, as an outage of Redis would.
func (w *world) forgetCursors() {
	w.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	defer client.Close()
	if err := client.FlushDB(context.Background()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// roundTrips is how often Redis has read from a client so far.
func (w *world) roundTrips() int64 {
	w.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	defer client.Close()
	info, err := client.Info(context.Background(), "stats").Result()
	if err != nil {
		w.t.Fatal(err)
	}
	var n int64
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "total_reads_processed:"); ok {
			_, _ = fmt.Sscan(v, &n)
		}
	}
	if n == 0 {
		w.t.Fatal("Redis does not count its reads")
	}
	return n
}

// peakMemory is the most that the process has had resident.
func (f *function) peakMemory() int64 {
	f.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.cmd.Process.Pid))
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscan(v, &kib); err != nil {
				f.t.Fatal(err)
			}
			return kib << 10
		}
	}
	f.t.Fatal("the kernel does not say how much memory the process had")
	return 0
}

// counted is the API server behind something that counts requests.
type counted struct {
	kubeconfig string
	requests   atomic.Int64
}

func (w *world) countAPI() *counted {
	w.t.Helper()
	config := w.cluster.ServiceAccount("tidemark", "watchcommit")
	to, err := url.Parse(config.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	out := &counted{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	proxy.FlushInterval = -1
	front := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		out.requests.Add(1)
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(front.Close)
	out.kubeconfig = w.cluster.KubeconfigFor("counted", &rest.Config{
		Host: front.URL, BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: kubetest.CABundle(front)},
	})
	return out
}
