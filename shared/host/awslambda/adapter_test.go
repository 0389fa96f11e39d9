package awslambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/host"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../events/samples/platforms", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// call is what the function saw of one request.
type call struct {
	Request, Host, Remote, Authorization, Cookie, ContentType, Encoding string
	CE, Name                                                            string
	Trusted                                                             bool
	Body                                                                string
}

// recorder remembers its requests and answers as the test says.
type recorder struct {
	calls  []call
	answer func(w http.ResponseWriter, r *http.Request, body string)
}

func (f *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	h := r.Header
	f.calls = append(f.calls, call{
		r.Method + " " + r.URL.RequestURI(), r.Host, r.RemoteAddr, h.Get("Authorization"), h.Get("Cookie"), h.Get("Content-Type"), h.Get("Content-Encoding"),
		h.Get("Ce-Type"), h.Get("Ce-Name"), host.Trusted(r.Context()), string(body),
	})
	if f.answer != nil {
		f.answer(w, r, string(body))
	}
}

func invoke(t testing.TB, f http.Handler, payload []byte, logs io.Writer) ([]byte, error) {
	t.Helper()
	cfg := Config{EventPath: "/", LogsPath: "/audit-webhook/{cluster}"}
	return New(cfg, f, slog.New(slog.NewJSONHandler(logs, nil))).Invoke(t.Context(), payload)
}

func TestHTTPPayloads(t *testing.T) {
	url, api := "k3xample7u.lambda-url.eu-central-1.on.aws", "k3xample7u.execute-api.eu-central-1.amazonaws.com"
	for _, c := range []struct {
		file string
		want call
	}{
		{"function-url-text.json", call{Request: "POST /audit-webhook/default", Host: url, ContentType: "application/json"}},
		{"function-url-base64-gzip.json", call{Request: "POST /audit-webhook/default", Host: url, ContentType: "application/json", Encoding: "gzip"}},
		{"function-url-get.json", call{Request: "GET /health/readiness", Host: url, ContentType: "application/json"}},
		{"http-api-text.json", call{Request: "POST /audit-webhook/default?debug=a%20b", Host: api, ContentType: "application/json", Cookie: "session=1; theme=dark"}},
		{"http-api-base64.json", call{Request: "POST /audit-webhook/default", Host: api, ContentType: "application/json"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			payload := sample(t, c.file)
			var raw struct {
				Body            string
				IsBase64Encoded bool
			}
			if err := json.Unmarshal(payload, &raw); err != nil {
				t.Fatal(err)
			}
			c.want.Body = raw.Body
			if raw.IsBase64Encoded {
				body, err := base64.StdEncoding.DecodeString(raw.Body)
				if err != nil {
					t.Fatal(err)
				}
				c.want.Body = string(body)
			}
			c.want.Authorization, c.want.Remote = "Bearer sesame", "203.0.113.9:0"
			f := &recorder{}
			if _, err := invoke(t, f, payload, io.Discard); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]call{c.want}, f.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHTTPAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request, body string)
		want   string
	}{
		{"JSON", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Add("X-Many", "a")
			w.Header().Add("X-Many", "b")
			fmt.Fprint(w, `{"stored":1}`)
		}, `{"statusCode":200,"headers":{"content-type":"application/json","x-many":"a,b"},"body":"{\"stored\":1}","isBase64Encoded":false}`},
		{"cookies", func(w http.ResponseWriter, _ *http.Request, _ string) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
			w.WriteHeader(204)
		}, `{"statusCode":204,"headers":{},"cookies":["a=1","b=2"],"body":"","isBase64Encoded":false}`},
		{"bytes", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write([]byte{0, 0xff})
		}, `{"statusCode":200,"headers":{"content-type":"application/octet-stream"},"body":"AP8=","isBase64Encoded":true}`},
		{"busy", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}, `{"statusCode":503,"headers":{"content-type":"text/plain; charset=utf-8","retry-after":"5","x-content-type-options":"nosniff"},"body":"busy\n","isBase64Encoded":false}`},
		{"nothing", func(http.ResponseWriter, *http.Request, string) {}, `{"statusCode":200,"headers":{},"body":"","isBase64Encoded":false}`},
		{"a header after the status", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(202)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(500)
		}, `{"statusCode":202,"headers":{},"body":"","isBase64Encoded":false}`},
		{"a panic", func(http.ResponseWriter, *http.Request, string) { panic("hunter2") },
			`{"statusCode":500,"headers":{"content-type":"text/plain; charset=utf-8","x-content-type-options":"nosniff"},"body":"internal error\n","isBase64Encoded":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logs bytes.Buffer
			got, err := invoke(t, &recorder{answer: c.answer}, sample(t, "function-url-text.json"), &logs)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, c.want)
			}
			if strings.Contains(logs.String(), "hunter2") {
				t.Errorf("the log shows what the panic held: %s", logs.String())
			}
		})
	}
}

func TestHTTPPayloadsThatAreOdd(t *testing.T) {
	payload := func(path, stage, body string, encoded bool) []byte {
		return fmt.Appendf(nil, `{"version":"2.0","rawPath":%q,"headers":{"authorization":"Bearer sesame"},"requestContext":{"stage":%q,"http":{"method":"POST","sourceIp":"2001:db8::1"}},"body":%q,"isBase64Encoded":%t}`, path, stage, body, encoded)
	}
	f := &recorder{}
	for _, c := range []struct{ path, stage, want string }{
		{"/audit-webhook/a%3Ab", "$default", "POST /audit-webhook/a%3Ab"},
		{"/audit-webhook/100%", "$default", "POST /audit-webhook/100%25"},
		{"/prod/x", "prod", "POST /x"},
		{"/production/x", "prod", "POST /production/x"},
		{"/prod", "prod", "POST /"},
		{"", "", "POST /"},
	} {
		if _, err := invoke(t, f, payload(c.path, c.stage, "", false), io.Discard); err != nil {
			t.Fatal(err)
		}
		last := f.calls[len(f.calls)-1]
		if last.Request != c.want || last.Remote != "[2001:db8::1]:0" || last.Trusted {
			t.Errorf("path %q in stage %q is seen as %+v, want %s", c.path, c.stage, last, c.want)
		}
	}
	calls := len(f.calls)
	got, err := invoke(t, f, payload("/x", "", "***", true), io.Discard)
	if err != nil || !strings.Contains(string(got), `"statusCode":400`) || len(f.calls) != calls {
		t.Errorf("a body that is no base64: %s, %v", got, err)
	}
}

func TestEventsArePosted(t *testing.T) {
	f := &recorder{answer: func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, `{"moved":2}`) }}
	for _, c := range []struct {
		name    string
		payload []byte
		want    call
	}{
		{"a schedule", sample(t, "scheduler.json"), call{ContentType: "application/json"}},
		{"a schedule with an input of its own", sample(t, "scheduler-own-input.json"), call{ContentType: "application/json"}},
		{"text", []byte(`"go"`), call{ContentType: "application/json"}},
	} {
		got, err := invoke(t, f, c.payload, io.Discard)
		if err != nil || string(got) != `{"moved":2}` {
			t.Errorf("%s: result %s (%v), want what the function answered", c.name, got, err)
		}
		c.want.Request, c.want.Trusted, c.want.Body = "POST /", true, string(c.payload)
		if diff := cmp.Diff(c.want, f.calls[len(f.calls)-1]); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestOnlyWhatARetryCanMendIsAnError(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		failed bool
		result string
	}{
		{200, "", false, "null"},
		{200, "done", false, `"done"`},
		{202, `{"a":1}`, false, `{"a":1}`},
		{400, "bad input", false, `"bad input"`},
		{404, "no such path", false, `"no such path"`},
		{429, "slow down", true, ""},
		{500, "oops", true, ""},
		{503, "busy", true, ""},
	} {
		var logs bytes.Buffer
		f := &recorder{answer: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}}
		got, err := invoke(t, f, sample(t, "scheduler.json"), &logs)
		if (err != nil) != c.failed || string(got) != c.result {
			t.Errorf("status %d: result %s, error %v", c.status, got, err)
		}
		if refused := c.status >= 400 && !c.failed; refused != strings.Contains(logs.String(), "not retried") {
			t.Errorf("status %d: log %q", c.status, logs.String())
		}
	}
}

func TestOneBadRecordOfAQueueBatch(t *testing.T) {
	f := &recorder{answer: func(w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case r.Header.Get("Ce-Name") == "fails":
			http.Error(w, "later", http.StatusServiceUnavailable)
		case body == "not json at all":
			http.Error(w, "what is this", 400)
		}
	}}
	var logs bytes.Buffer
	got, err := invoke(t, f, sample(t, "sqs-batch.json"), &logs)
	if want := `{"batchItemFailures":[{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975970002"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	if len(f.calls) != 3 || f.calls[0].CE != "dev.knative.apiserver.ref.update" || f.calls[0].Name != "prices" || !f.calls[0].Trusted || f.calls[2].ContentType != "text/plain; charset=utf-8" || f.calls[2].CE != queueMessage {
		t.Errorf("seen: %+v", f.calls)
	}
	if !strings.Contains(logs.String(), "059f36b4-87a3-44ab-83d2-661975970003") {
		t.Errorf("the record that is not retried is not in the log: %s", logs.String())
	}
	f.answer = nil
	if got, err := invoke(t, f, sample(t, "sqs-batch.json"), io.Discard); err != nil || string(got) != `{"batchItemFailures":[]}` {
		t.Errorf("a batch without failures: %s (%v)", got, err)
	}
}

func TestLogsBecomeOnePostOfAuditEvents(t *testing.T) {
	f := &recorder{}
	if _, err := invoke(t, f, sample(t, "cloudwatch-logs.json"), io.Discard); err != nil {
		t.Fatal(err)
	}
	if len(f.calls) != 1 || f.calls[0].Request != "POST /audit-webhook/prod" || !f.calls[0].Trusted {
		t.Fatalf("seen: %+v", f.calls)
	}
	var list struct {
		Kind, APIVersion string
		Items            []*struct{ AuditID string }
	}
	if err := json.Unmarshal([]byte(f.calls[0].Body), &list); err != nil {
		t.Fatalf("%v: %s", err, f.calls[0].Body)
	}
	if list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" || len(list.Items) != 3 || list.Items[0].AuditID == "" || list.Items[1].AuditID == "" || list.Items[2] != nil {
		t.Errorf("body: %s", f.calls[0].Body)
	}
	for name, payload := range map[string][]byte{
		"a control message": sample(t, "cloudwatch-logs-control.json"),
		"no base64":         []byte(`{"awslogs":{"data":"***"}}`),
		"base64 of no gzip": []byte(`{"awslogs":{"data":"aGVsbG8="}}`),
		"no data":           []byte(`{"awslogs":{}}`),
	} {
		if got, err := invoke(t, f, payload, io.Discard); err != nil || string(got) != "null" || len(f.calls) != 1 {
			t.Errorf("%s: %s (%v), %d posts", name, got, err, len(f.calls)-1)
		}
	}
	f.answer = func(w http.ResponseWriter, _ *http.Request, _ string) {
		http.Error(w, "down", http.StatusServiceUnavailable)
	}
	if _, err := invoke(t, f, sample(t, "cloudwatch-logs.json"), io.Discard); err == nil {
		t.Error("a batch that was not stored is acknowledged")
	}
}

func TestPathsAreChecked(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{EventPath: "/", LogsPath: "/x"}, ""},
		{Config{EventPath: "x", LogsPath: "/x"}, "LAMBDA_EVENT_PATH (x) must begin with /"},
		{Config{EventPath: "/", LogsPath: ""}, "LAMBDA_LOGS_PATH () must begin with /"},
	} {
		err := c.cfg.Validate()
		if got := fmt.Sprint(err); err != nil && got != c.want || err == nil && c.want != "" {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}
