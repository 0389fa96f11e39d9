package auditstream_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
)

func BenchmarkDecode(b *testing.B) {
	var bodies [][]byte
	size, events := 0, 0
	for _, body := range posts(b) {
		bodies = append(bodies, body)
		size += len(body)
	}
	d := auditstream.NewDecoder()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		events = 0
		for _, body := range bodies {
			if err := d.Reset(bytes.NewReader(body), "", options); err != nil {
				b.Fatal(err)
			}
			for {
				var e attribution.Event
				if _, err := d.Next(&e); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					b.Fatal(err)
				}
				events++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
}
