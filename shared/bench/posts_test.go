//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// posts makes bodies of recorded events. Each has uids of its own, as new objects would, so that facts are added and not
// overwritten.
type posts struct {
	bodies [][]byte
	uids   [][]int // where the uids stand in each body
	size   int
	turn   int
	each   bool // each place gets a uid of its own; else all of a body get one ending
}

// uidMark stands in recorded events in place of what makes a uid differ.
var uidMark = []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")

func newPosts(events [][]byte, size int) *posts {
	p := &posts{size: size}
	for i := 0; i < max(len(events), size); i += size {
		var body bytes.Buffer
		body.WriteString(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
		for j := range size {
			if j > 0 {
				body.WriteByte(',')
			}
			body.Write(events[(i+j)%len(events)])
		}
		body.WriteString("]}")
		var at []int
		for from := 0; ; {
			n := bytes.Index(body.Bytes()[from:], uidMark)
			if n < 0 {
				break
			}
			at = append(at, from+n)
			from += n + len(uidMark)
		}
		p.bodies, p.uids = append(p.bodies, body.Bytes()), append(p.uids, at)
	}
	return p
}

func (p *posts) next() []byte {
	i := p.turn % len(p.bodies)
	p.turn++
	body := p.bodies[i]
	ending := rand.Uint64()
	for n, at := range p.uids[i] {
		if p.each {
			ending = uint64(p.turn)<<20 | uint64(n)
		}
		copy(body[at:], fmt.Appendf(nil, "%012x", ending&0xffffffffffff))
	}
	return body
}

// recordedEvents are the events of all recordings, the last part of the written object's uid replaced by uidMark.
func recordedEvents(t *testing.T) [][]byte {
	t.Helper()
	var out [][]byte
	for _, pattern := range []string{"corpus/audit/*.jsonl", "sessions/*/audit.jsonl"} {
		files, err := filepath.Glob(filepath.Join("../../events/samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			out = append(out, eventsOf(t, file)...)
		}
	}
	if len(out) < 400 {
		t.Fatalf("only %d recorded events", len(out))
	}
	return out
}

func eventsOf(t *testing.T, file string) (out [][]byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Body struct{ Items []json.RawMessage }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, item := range line.Body.Items {
			var event struct {
				ResponseObject struct{ Metadata struct{ UID string } }
			}
			_ = json.Unmarshal(item, &event) // an answer may be of any shape
			if uid := event.ResponseObject.Metadata.UID; len(uid) == 36 {
				item = bytes.ReplaceAll(item, []byte(uid), append([]byte(uid[:24]), uidMark...))
			}
			out = append(out, item)
		}
	}
	return out
}

// largeEvent is the patch of a ConfigMap whose answer makes the event about size bytes long.
func largeEvent(size int) []byte {
	const keys = 20
	data := map[string]string{}
	for i := range keys {
		data[fmt.Sprintf("key-%02d", i)] = string(bytes.Repeat([]byte("The quick brown fox\tjumps.\n"), size/keys/29))
	}
	answer, _ := json.Marshal(map[string]any{ // plain data always encodes
		"kind": "ConfigMap", "apiVersion": "v1", "data": data,
		"metadata": map[string]any{"name": "large", "namespace": "shop", "uid": "0c1c2a6e-0000-4000-8000-000000000000", "resourceVersion": "4711"},
	})
	return fmt.Appendf(nil, `{"level":"RequestResponse","auditID":"0b6a3f0e-7b7e-4d4e-9a44-0d5f5b2f6c11","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps/large","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"configmaps","namespace":"shop","name":"large","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestObject":{"data":{"a":"b"}},"responseObject":%s,"requestReceivedTimestamp":"2026-03-01T10:00:00.000000Z","stageTimestamp":"2026-03-01T10:00:00.010000Z"}`, answer)
}
