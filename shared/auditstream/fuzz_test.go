package auditstream_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
)

// FuzzAnEventIsReadAsTheReferenceReadsIt compares with encoding/json into auditv1.Event, for every event that this takes,
// and demands that whatever one event is, the ones around it are read.
func FuzzAnEventIsReadAsTheReferenceReadsIt(f *testing.F) {
	for _, c := range oddEvents {
		f.Add([]byte(c.event))
	}
	for _, body := range posts(f) {
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(body, &list); err != nil {
			f.Fatal(err)
		}
		for _, item := range list.Items {
			if len(item) < 8<<10 {
				f.Add([]byte(item))
			}
		}
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		const good = `{"auditID":"good"}`
		got, err := decode(t, bytes.NewReader(list(good, string(event), good)), "", options)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if len(got) == 0 || got[0].Event.AuditID != "good" {
			t.Fatalf("the event before is lost: %v", got)
		}
		if !json.Valid(event) || repeats(t, event) {
			return
		}
		if len(got) != 3 || got[2].Event.AuditID != "good" {
			t.Fatalf("the event behind is lost: %v", got)
		}
		var reference auditv1.Event
		if json.Unmarshal(event, &reference) != nil || string(bytes.TrimSpace(event)) == "null" {
			return // the decoder may be more lenient, or not
		}
		want := decoded{Event: kubeaudit.Event(&reference, options.ExtraKeys, options.RouteAnnotation)}
		if diff := cmp.Diff(want, got[1], equalTimes); diff != "" {
			t.Fatalf("differs from the reference (-want +got):\n%s", diff)
		}
	})
}

// FuzzAnyBodyEndsWithinItsBounds feeds bodies that need not be JSON.
func FuzzAnyBodyEndsWithinItsBounds(f *testing.F) {
	for _, c := range oddEvents {
		f.Add(list(c.event), int64(0))
	}
	f.Add([]byte(`{"kind":"EventList","items":[{"a":{]}`), int64(10))
	f.Fuzz(func(t *testing.T, body []byte, maxEvent int64) {
		opts := auditstream.Options{MaxEventBytes: maxEvent & 0xff, MaxBodyBytes: 1 << 16, RouteAnnotation: "r"}
		got, err := decode(t, bytes.NewReader(body), "", opts)
		if err == nil && len(got) > len(body) {
			t.Errorf("%d events in %d bytes", len(got), len(body))
		}
		for _, d := range got {
			switch d.Reason {
			case "", attribution.ReasonEventMalformed, attribution.ReasonEventTooLarge:
			default:
				t.Errorf("reason %q", d.Reason)
			}
		}
	})
}

// repeats reports whether an object has a member twice, letters' case aside: what counts then is a matter of taste.
func repeats(t *testing.T, text []byte) bool {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	type object struct {
		names map[string]bool // nil for an array
		value bool            // a name came, its value has not
	}
	var open []object
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		var top *object
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		if name, ok := token.(string); ok && top != nil && top.names != nil && !top.value {
			key := strings.ToLower(strings.NewReplacer("\u017f", "s", "\u212a", "k").Replace(name))
			if top.names[key] {
				return true
			}
			top.names[key], top.value = true, true
			continue
		}
		if top != nil {
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}
