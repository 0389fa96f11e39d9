package attribution

import (
	"encoding/json"
	"testing"
	"time"
)

func TestAppendRecordIsWhatEncodingJSONWrites(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 120_000_000, time.FixedZone("", 3600))
	hostile := "a\"b\\c<d>&e\n\r\t\b\f\x01\x7f\u2028\u2029é漢\xff/"
	proofs := []Proof{
		{Fact: Fact{Author: "alice"}},
		{
			Fact: Fact{
				GroupResource: "apps/deployments", Namespace: "shop", Name: "web", UID: "u", Author: hostile, DisplayName: hostile, Email: "a@example.com",
				Verb: "patch", Subresource: "scale", AuditID: "id", ResourceVersion: "7", StageTimestamp: at.UTC().Format(time.RFC3339Nano),
				IsServiceAccount: true, ImpersonatedBy: "ci-bot",
			},
			Received: at.Add(-3 * time.Millisecond), Staged: at, Deletion: DeletionStarted, Deleting: true, Unverified: true, Skew: 2 * time.Second,
		},
	}
	for _, p := range proofs {
		record := Record{Fact: p.Fact, Deletion: p.Deletion, Deleting: p.Deleting, Unverified: p.Unverified}
		if !p.Received.Equal(p.Staged) {
			record.Received = p.Received.UTC().Format(time.RFC3339Nano)
		}
		if p.Skew > 0 {
			record.Skew = p.Skew.String()
		}
		want, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendRecord([]byte("x"), &p); string(got) != "x"+string(want) {
			t.Errorf("got  %s\nwant x%s", got, want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\xed\xa0\x80\u2028<")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, s); string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}
