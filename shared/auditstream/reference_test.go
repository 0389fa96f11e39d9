package auditstream_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
)

var options = auditstream.Options{
	ExtraKeys: attribution.ExtraKeys{
		DisplayName: []string{"configbutler.ai/claims/display-name", "username"},
		Email:       []string{"configbutler.ai/claims/email"},
	},
	RouteAnnotation: "kcp.io/cluster",
}

var equalTimes = cmp.Comparer(func(x, y time.Time) bool { return x.Equal(y) })

// decoded is one event as read, or why it was not.
type decoded struct {
	Event  attribution.Event
	Reason attribution.Reason
}

func decode(t testing.TB, body io.Reader, encoding string, opts auditstream.Options) ([]decoded, error) {
	t.Helper()
	d := auditstream.NewDecoder()
	if err := d.Reset(body, encoding, opts); err != nil {
		return nil, err
	}
	var out []decoded
	for {
		var e attribution.Event
		reason, err := d.Next(&e)
		if err == io.EOF { //nolint:errorlint // Next promises io.EOF itself
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if reason != "" {
			e = attribution.Event{}
		}
		out = append(out, decoded{e, reason})
	}
}

// reference is the same by encoding/json and Kubernetes' types, event by event.
func reference(t testing.TB, body []byte) ([]decoded, bool) {
	t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, false
	}
	out := make([]decoded, 0, len(list.Items))
	for _, item := range list.Items {
		var event auditv1.Event
		if bytes.Equal(bytes.TrimSpace(item), []byte("null")) || json.Unmarshal(item, &event) != nil {
			out = append(out, decoded{Reason: attribution.ReasonEventMalformed})
			continue
		}
		out = append(out, decoded{Event: kubeaudit.Event(&event, options.ExtraKeys, options.RouteAnnotation)})
	}
	return out, true
}

// agree fails the test when the decoder differs from the reference on a body that the reference can read.
func agree(t testing.TB, body []byte) {
	t.Helper()
	want, ok := reference(t, body)
	if !ok {
		t.Fatalf("the reference cannot read %s", body)
	}
	got, err := decode(t, bytes.NewReader(body), "", options)
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, body)
	}
	if diff := cmp.Diff(want, got, equalTimes); diff != "" {
		t.Fatalf("differs from the reference (-want +got):\n%s\ninput: %s", diff, body[max(0, len(body)-600):])
	}
}
