package auditstream_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
)

const samples = "../../events/samples"

// posts are the recorded bodies of audit webhooks, by file and line.
func posts(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"corpus/audit/*.jsonl", "sessions/*/audit.jsonl"} {
		files, err := filepath.Glob(filepath.Join(samples, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no samples for %s (%v)", pattern, err)
		}
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 64<<20)
			for n := 1; lines.Scan(); n++ {
				var line struct{ Body json.RawMessage }
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Fatalf("%s:%d: %v", file, n, err)
				}
				out[fmt.Sprintf("%s:%d", strings.TrimPrefix(file, samples+"/"), n)] = bytes.Clone(line.Body)
			}
			f.Close()
			if lines.Err() != nil {
				t.Fatal(lines.Err())
			}
		}
	}
	return out
}

func TestRecordedPostsAreReadAsTheReferenceReadsThem(t *testing.T) {
	events := 0
	for name, body := range posts(t) {
		t.Run(name, func(t *testing.T) {
			agree(t, body)
			got, err := decode(t, bytes.NewReader(body), "", options)
			if err != nil {
				t.Fatal(err)
			}
			events += len(got)
			trickled, err := decode(t, iotest.OneByteReader(bytes.NewReader(body)), "", options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, trickled); diff != "" {
				t.Errorf("differs when it comes byte by byte:\n%s", diff)
			}
			packed, err := decode(t, bytes.NewReader(pack(t, body)), "gzip", options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, packed); diff != "" {
				t.Errorf("differs when it comes gzipped:\n%s", diff)
			}
		})
	}
	if events < 450 {
		t.Errorf("only %d events in the samples", events)
	}
}

func pack(t testing.TB, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func list(items ...string) []byte {
	return []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`)
}

// oddEvents are events that no recording has.
var oddEvents = []struct{ name, event string }{
	{"nothing in it", `{}`},
	{"null", `null`},
	{"not an object", `[{"verb":"get"}]`},
	{"a number for a word", `{"stage":7}`},
	{"a word for a number", `{"responseStatus":{"code":"200"}}`},
	{"a fraction for a number", `{"responseStatus":{"code":200.5}}`},
	{"a number too large", `{"responseStatus":{"code":4294967296}}`},
	{"an object for a word", `{"verb":{"a":[1,{"b":"}"}]},"auditID":"x"}`},
	{"a word for an object", `{"user":"alice"}`},
	{"null for everything", `{"level":null,"user":null,"objectRef":null,"impersonatedUser":null,"responseStatus":null,"requestObject":null,"annotations":null,"stageTimestamp":null}`},
	{"letters of another case", `{"VERB":"get","aUDITid":"x","objectref":{"NAME":"n","apigroup":"g"},"responseObject":{"Metadata":{"Uid":"u","RESOURCEVERSION":"1"}}}`},
	{"letters that fold beyond ASCII", `{"ſtage":"ResponseComplete","responseObject":{"\u212aind":"Status","details":{"uid":"u"}}}`},
	{"escapes in names and values", `{"\u0076erb":"g\u0065t","auditID":"\ud83d\ude00 \ud83d \ude00x \"\\\/\b\f\n\r\t é 日本","user":{"username":"a\u0000b"}}`},
	{"bytes that are no UTF-8", "{\"auditID\":\"a\xff\xc3b\",\"verb\":\"get\"}"},
	{"a JSON patch", `{"verb":"patch","requestObject":[{"op":"replace","path":"/a","value":"}]"}],"responseObject":{"kind":"ConfigMap","metadata":{"uid":"u"}}}`},
	{"a body of another type", `{"requestObject":"text","responseObject":17}`},
	{"metadata of another type", `{"responseObject":{"kind":"X","metadata":["a"],"details":{"uid":"u"}}}`},
	{"a uid of another type", `{"responseObject":{"kind":"X","metadata":{"name":"n","uid":5}}}`},
	{"details of another type", `{"responseObject":{"kind":"Status","metadata":{},"details":"none"}}`},
	{"details with a uid", `{"responseObject":{"kind":"Status","metadata":{},"details":{"name":"n","uid":"u"}},"responseStatus":{"code":200,"details":{"uid":"v"}}}`},
	{"dry run", `{"verb":"delete","requestObject":{"kind":"DeleteOptions","dryRun":["All"]}}`},
	{"empty dry run", `{"verb":"delete","requestObject":{"kind":"DeleteOptions","dryRun":[]}}`},
	{"dry run of another type", `{"verb":"delete","requestObject":{"kind":"DeleteOptions","dryRun":true}}`},
	{"deletion", `{"responseObject":{"metadata":{"deletionTimestamp":"2026-03-01T10:00:00Z"}}}`},
	{"deletion of another type", `{"responseObject":{"metadata":{"uid":"u","deletionTimestamp":12}}}`},
	{"members of a collection", `{"verb":"deletecollection","responseObject":{"kind":"List","items":[{"metadata":{"name":"a","uid":"u","Namespace":"n"}},{},null,{"metadata":null},{"spec":{}}]}}`},
	{"a verb in capitals", `{"responseObject":{"items":[{"metadata":{"name":"a","uid":"u"}}]},"verb":"DeleteCollection","requestObject":{"items":[{"metadata":{"name":"b","uid":"v"}}]}}`},
	{"members before the verb", `{"responseObject":{"items":[{"metadata":{"name":"a","uid":"u"}}]},"verb":"deletecollection"}`},
	{"members of another verb", `{"responseObject":{"items":[{"metadata":{"name":"a","uid":"u"}}]},"verb":"create"}`},
	{"one bad member", `{"verb":"deletecollection","responseObject":{"items":[{"metadata":{"name":"a","uid":"u"}},{"metadata":{"name":1}}]}}`},
	{"members that are no list", `{"verb":"deletecollection","responseObject":{"kind":"X","metadata":{"name":"n"},"items":{"a":1}}}`},
	{"extras", `{"user":{"username":"u","extra":{"configbutler.ai/claims/display-name":["Ana","B"],"configbutler.ai/claims/email":["a@example.com"],"other":["x"]}}}`},
	{"extras without a value", `{"user":{"username":"u","extra":{"configbutler.ai/claims/display-name":[],"username":["carol"],"configbutler.ai/claims/email":null}}}`},
	{"an empty extra gives way", `{"user":{"username":"u","extra":{"configbutler.ai/claims/display-name":[""],"username":["carol"]}}}`},
	{"extras of another type", `{"user":{"username":"u","extra":{"username":"carol"}}}`},
	{"extras of an impersonated user", `{"user":{"username":"u","extra":{"username":["a"]}},"impersonatedUser":{"username":"i","extra":{"username":["b"]}}}`},
	{"a route", `{"annotations":{"a":"b","kcp.io/cluster":"ws-a"}}`},
	{"a route of another type", `{"annotations":{"kcp.io/cluster":1}}`},
	{"instants", `{"requestReceivedTimestamp":"2026-02-28T23:59:59.999999Z","stageTimestamp":"2026-01-31T00:00:00.000000Z"}`},
	{"an instant in another zone", `{"stageTimestamp":"2026-02-28T23:59:59.999999+02:00"}`},
	{"a leap day", `{"stageTimestamp":"2028-02-29T00:00:00.000000Z"}`},
	{"a day that is none", `{"stageTimestamp":"2026-02-29T00:00:00.000000Z"}`},
	{"an instant without microseconds", `{"stageTimestamp":"2026-02-28T00:00:00Z"}`},
	{"an instant that is no text", `{"stageTimestamp":1772236800}`},
	{"brackets and quotes in what is skipped", `{"requestObject":{"data":{"a":"}]\"\\","b":"\\\\\"{["},"spec":[[[]],{"x":{}}]},"verb":"get"}`},
	{"white space everywhere", " {\n\t\"verb\" : \"get\" ,\r\n \"user\" : { \"username\" : \"u\" , \"groups\" : [ ] } } "},
}

func TestOddEventsAreReadAsTheReferenceReadsThem(t *testing.T) {
	good := `{"auditID":"good","verb":"update","responseObject":{"metadata":{"uid":"u","resourceVersion":"7"}}}`
	for _, c := range oddEvents {
		t.Run(c.name, func(t *testing.T) { agree(t, list(good, c.event, good)) })
	}
}

// Inside one window and across its border must make no difference.
func TestEventsAcrossTheWindowsBorder(t *testing.T) {
	for _, c := range oddEvents {
		t.Run(c.name, func(t *testing.T) {
			for pad := 65380; pad < 65540; pad += 7 {
				body := list(`{"userAgent":"`+strings.Repeat("x", pad-130)+`"}`, c.event, `{"auditID":"good"}`)
				agree(t, body)
			}
		})
	}
}

func TestABadEventCostsItselfOnly(t *testing.T) {
	const good = `{"auditID":"good"}`
	big := `{"auditID":"big","requestObject":{"data":{"k":"` + strings.Repeat("v", 8000) + `"}}}`
	for _, c := range []struct {
		name  string
		items []string
		want  string // a letter an event: g good, m malformed, l too large
	}{
		{"a wrong type", []string{good, `{"stage":7}`, good}, "gmg"},
		{"a word that is none", []string{good, `{"verb":gett,"user":{"username":"u"}}`, good}, "gmg"},
		{"a missing colon", []string{good, `{"verb" "get","user":{"extra":{"a":[1]}}}`, good}, "gmg"},
		{"a bad escape in what is read", []string{good, `{"verb":"\q","user":{}}`, good}, "gmg"},
		{"a control character in what is read", []string{good, "{\"verb\":\"a\nb\"}", good}, "gmg"},
		{"a comma too many, deep inside", []string{good, `{"responseObject":{"metadata":{,"uid":"u"}}}`, good}, "gmg"},
		{"not an object", []string{`"text"`, good, `17`, good, `null`}, "mgmgm"},
		{"too large", []string{good, big, good, good}, "glgg"},
		{"too large and malformed", []string{big[:20] + `:` + big[20:], good}, "lg"},
		{"a text that ends", []string{good, good, `{"verb":"g`}, "ggm"},
		{"a bracket too many", []string{good, `{"verb":"get"}}`, good}, "ggm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := list(c.items...)
			if strings.HasPrefix(c.name, "a text that ends") {
				body = body[:len(body)-2]
			}
			got, err := decode(t, bytes.NewReader(body), "", auditstream.Options{MaxEventBytes: 4096})
			if err != nil {
				t.Fatal(err)
			}
			var letters strings.Builder
			for _, d := range got {
				switch d.Reason {
				case "":
					letters.WriteByte('g')
				case attribution.ReasonEventMalformed:
					letters.WriteByte('m')
				case attribution.ReasonEventTooLarge:
					letters.WriteByte('l')
				}
			}
			if letters.String() != c.want {
				t.Errorf("events ended as %q, want %q\ninput: %s", letters.String(), c.want, body)
			}
		})
	}
}

func TestBodiesThatAreNoListOfEvents(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		name, body, encoding string
		maxBody              int64
		want                 error
	}{
		{name: "nothing", want: auditstream.ErrNotEvents},
		{name: "a page", body: "<html></html>", want: auditstream.ErrNotEvents},
		{name: "another kind", body: `{"kind":"Event","apiVersion":"audit.k8s.io/v1","items":[]}`, want: auditstream.ErrNotEvents},
		{name: "another version", body: `{"kind":"EventList","apiVersion":"audit.k8s.io/v1beta1","items":[]}`, want: auditstream.ErrNotEvents},
		{name: "no kind and no items", body: `{"a":1}`, want: auditstream.ErrNotEvents},
		{name: "items that are no list", body: `{"kind":"EventList","items":{}}`, want: auditstream.ErrNotEvents},
		{name: "an array", body: `[]`, want: auditstream.ErrNotEvents},
		{name: "another encoding", body: `{}`, encoding: "br", want: auditstream.ErrEncoding},
		{name: "gzip that is none", body: `{}`, encoding: "gzip", want: auditstream.ErrNotEvents},
		{name: "too large", body: string(list(`{"auditID":"` + strings.Repeat("x", 100) + `"}`)), maxBody: 120, want: auditstream.ErrBodyTooLarge},
		{name: "an empty list", body: string(list())},
		{name: "a null list", body: `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":null}`},
		{name: "no items", body: `{"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(t, strings.NewReader(c.body), c.encoding, auditstream.Options{MaxBodyBytes: c.maxBody})
			if !errors.Is(err, c.want) || len(got) != 0 {
				t.Errorf("decode = %v, %v; want no event and %v", got, err, c.want)
			}
		})
	}
	t.Run("a source that fails", func(t *testing.T) {
		body := io.MultiReader(bytes.NewReader(list(`{"auditID":"a"}`, `{"auditID":"b"}`)[:100]), iotest.ErrReader(broken))
		got, err := decode(t, body, "", auditstream.Options{})
		if !errors.Is(err, broken) || len(got) != 1 {
			t.Errorf("decode = %v, %v; want the whole event and the source's error", got, err)
		}
	})
}

func TestADecoderThatIsUsedAgainForgetsEverything(t *testing.T) {
	d := auditstream.NewDecoder()
	full := `{"auditID":"a","verb":"deletecollection","user":{"username":"u","extra":{"username":["x"]}},"responseObject":{"items":[{"metadata":{"name":"n"}}]},"annotations":{"kcp.io/cluster":"r"}}`
	for range 3 {
		for _, c := range []struct {
			body string
			want attribution.Event
		}{
			{full, attribution.Event{AuditID: "a", Verb: "deletecollection", User: attribution.User{Username: "u", DisplayName: "x"},
				Response: attribution.Body{Items: []attribution.Item{{Name: "n"}}}, Route: "r"}},
			{`{}`, attribution.Event{}},
		} {
			if err := d.Reset(bytes.NewReader(list(c.body)), "", options); err != nil {
				t.Fatal(err)
			}
			got := attribution.Event{Level: "left over"}
			if reason, err := d.Next(&got); reason != "" || err != nil {
				t.Fatal(reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			d.Close()
		}
	}
}
