//go:build bench

package bench

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// storedRows posts an hour's worth of a large cluster, and measures what a POST costs beside that many facts.
func storedRows(t *testing.T) []Row {
	counts := []int{0, 100_000, 1_000_000}
	rounds, budget := 9, time.Second
	if Quick() {
		counts = []int{0, 4_000, 20_000}
		rounds, budget = 3, 300*time.Millisecond
	}
	var rows []Row
	events := recordedEvents(t)
	ingests := make([]*ingest, len(counts))
	for i, count := range counts {
		server, _ := valkeytest.Own(t)
		ingests[i] = startIngest(t, "functions/auditingest/knative", server, server.Addr)
		if count == 0 {
			continue
		}
		lost, first, last := ingests[i].fill(t, server, count)
		if lost != 0 {
			t.Errorf("%d of %d events are lost", lost, count)
		}
		if i == len(counts)-1 {
			rows = append(rows,
				Plain(fmt.Sprintf("%d events in POSTs of 400: lost", count), "events", float64(lost)),
				LessIsBetter(fmt.Sprintf("%d events in POSTs of 400: latency of the last tenth", count), "ms", last, first, "the first tenth"),
			)
		}
	}
	for _, size := range []int{400, 50} {
		posts := newPosts(events, size)
		sides := make([]func() float64, len(counts))
		for i, s := range ingests {
			sides[i] = func() float64 {
				perCPU, _ := s.run(t, posts, budget)
				return perCPU
			}
		}
		m := Interleave(rounds, sides...)
		for i := 1; i < len(counts); i++ {
			rows = append(rows, MoreIsBetter(fmt.Sprintf("ingest, POSTs of %d, %d facts stored", size, counts[i]), "events/CPU-s", m[i], m[0], "the same with none stored"))
		}
	}
	return rows
}

// fill posts count events of as many objects and checks that each is stored under its version and as its object's last.
// first and last are the median latencies of the first and of the last tenth of the POSTs, in ms.
func (s *ingest) fill(t *testing.T, server valkeytest.Server, count int) (lost int, first, last float64) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	keysBefore, err := client.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	const size = 400
	posts := newPosts([][]byte{uniqueEvent()}, size)
	posts.each = true
	var took []float64
	stored := 0
	for range count / size {
		body := posts.next()
		begin := time.Now()
		text := s.post(t, body)
		took = append(took, time.Since(begin).Seconds()*1000)
		var answer struct{ Stored int }
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		stored += answer.Stored
	}
	if stored != count {
		t.Errorf("%d of %d events are answered as stored", stored, count)
	}
	keys, err := client.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	const keysPerEvent, keysPerRoute = 2, 1
	lost = count - int(keys-keysBefore-keysPerRoute)/keysPerEvent
	tenth := max(1, len(took)/10)
	return lost, Median(took[:tenth]), Median(took[len(took)-tenth:])
}

// uniqueEvent is an update whose uid each POST makes unique, event by event.
func uniqueEvent() []byte {
	return fmt.Appendf(nil, `{"level":"RequestResponse","auditID":"0b6a3f0e-7b7e-4d4e-9a44-%s","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps/c","verb":"update","user":{"username":"alice","groups":["system:authenticated"]},"sourceIPs":["198.51.100.7"],"userAgent":"kubectl/v1.36.3","objectRef":{"resource":"configmaps","namespace":"shop","name":"c","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"shop"},"data":{"a":"b"}},"responseObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"shop","uid":"0c1c2a6e-0000-4000-8000-%s","resourceVersion":"4711","managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-03-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}}]},"data":{"a":"b"}},"requestReceivedTimestamp":"2026-03-01T10:00:00.000000Z","stageTimestamp":"2026-03-01T10:00:00.010000Z","annotations":{"authorization.k8s.io/decision":"allow"}}`, uidMark, uidMark)
}
