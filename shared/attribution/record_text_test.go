package attribution

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var recordTexts = []string{
	`{}`, `{"author":"alice"}`, `{"author":"alice",}`, `{"author":"alice"} `, ` {"author":"alice"}`, `{"author":"alice"}x`, `{"author":"alice"`, `{"author":alice}`,
	`{"author":"a","isServiceAccount":true,"deleting":true,"unverified":true,"proven":true}`, `{"author":"a","proven":false}`, `{"author":"a","proven":"true"}`, `{"author":true}`,
	`{"author":"a","author":"b"}`, `{"Author":"a"}`, `{"author":"a\u0062"}`, `{"author":"é 日本"}`, "{\"author\":\"\xff\"}", "{\"author\":\"a\nb\"}", `{"author":"a","unknown":"x"}`, `{"author":"a","unknown":true}`,
	`{"author":"a","tier":"named"}`, `{"author":"a","claims":[{"author":"b","received":"x"}]}`, `{"author":"a","write":{"author":"b"}}`, `{"author":"a","name":null}`, `{"author":"a","name":"x""uid":"y"}`,
	`{"author" :"a"}`, `{"author":"a","deletion":"final","received":"2026-03-01T10:00:00Z","manager":"kubectl"}`, `"author"`, `[]`, `null`, ``, `{`, `{"`, `{"author":"a","x":truex}`, `{"author":"a","deleting":truefalse}`,
}

func agree(t *testing.T, value string) {
	t.Helper()
	var r Record
	if !parsePlain(value, &r) {
		return
	}
	var want Record
	if err := json.Unmarshal([]byte(value), &want); err != nil {
		t.Fatalf("%q is read, but encoding/json says %v", value, err)
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Fatalf("%q (-json +plain):\n%s", value, diff)
	}
}

func TestPlainRecordsAreReadAsJSON(t *testing.T) {
	for _, text := range recordTexts {
		agree(t, text)
	}
	at := time.Date(2026, 3, 1, 10, 0, 0, 123456000, time.UTC)
	proofs := Prove(nil, &Event{
		AuditID: "6ed97f9e", Level: "RequestResponse", Stage: "ResponseComplete", Verb: "update", Code: 200, UserAgent: "kubectl/v1", Received: at, Staged: at.Add(time.Millisecond),
		User:   User{Username: "system:serviceaccount:shop:deployer", DisplayName: "日本"},
		Object: ObjectRef{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}, Response: Body{Kind: "Deployment", UID: "u", ResourceVersion: "7"},
	})
	if len(proofs) == 0 {
		t.Fatal("no proof")
	}
	for i := range proofs {
		text := string(AppendRecord(nil, &proofs[i]))
		var r Record
		if !parsePlain(text, &r) {
			t.Errorf("an ordinary record takes the long way: %s", text)
		}
		agree(t, text)
		agree(t, strings.Replace(text, `"author"`, `"author":"x","author"`, 1))
	}
}

func FuzzPlainRecordsAreReadAsJSON(f *testing.F) {
	for _, text := range recordTexts {
		f.Add(text)
	}
	f.Fuzz(agree)
}
