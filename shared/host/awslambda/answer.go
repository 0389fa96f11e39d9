package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/tidemark-dev/tidemark/shared/host"
)

// excerptLength bounds how much of an answer is logged.
const excerptLength = 200

// answer is the http.ResponseWriter that collects what the function says.
type answer struct {
	status int
	header http.Header
	sent   http.Header
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}} }

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		if a.header.Get("Content-Type") == "" {
			a.header.Set("Content-Type", http.DetectContentType(b))
		}
		a.WriteHeader(http.StatusOK)
	}
	return a.body.Write(b)
}

func (a *answer) retryable() bool {
	return a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout
}

func (a *answer) excerpt() string {
	b := a.body.Bytes()
	return string(b[:min(len(b), excerptLength)])
}

// json is the body as an invocation result: JSON as it is, other text as a JSON string, nothing as null.
func (a *answer) json() []byte {
	b := bytes.TrimSpace(a.body.Bytes())
	switch {
	case len(b) == 0:
		return []byte("null")
	case json.Valid(b):
		return b
	default:
		s, _ := json.Marshal(string(b)) // a string always encodes
		return s
	}
}

// serve calls the function; a panic is an answer too, so that it costs one invocation and not the execution environment.
func (a *Adapter) serve(r *http.Request) (out *answer) {
	out = newAnswer()
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("request panicked", "method", r.Method, "error", fmt.Sprintf("%T", p))
			out = newAnswer()
			http.Error(out, "internal error", http.StatusInternalServerError)
		}
		if out.status == 0 {
			out.WriteHeader(http.StatusOK)
		}
	}()
	host.Serve(a.handler, out, r)
	return out
}

// post sends an event that the platform authenticated to the function.
func (a *Adapter) post(ctx context.Context, path string, body []byte) *answer {
	return a.postWith(ctx, path, body, nil)
}

// postWith is post with more headers.
func (a *Adapter) postWith(ctx context.Context, path string, body []byte, header map[string]string) *answer {
	r := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: path}, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType(body)}}, Body: readCloser{bytes.NewReader(body)}, ContentLength: int64(len(body)),
	}).WithContext(host.WithTrust(ctx))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return a.serve(r)
}

// cloudEvent is the media type of a structured CloudEvent.
const cloudEvent = "application/cloudevents+json"

// contentType tells a structured CloudEvent from other payloads.
func contentType(body []byte) string {
	var ce struct {
		SpecVersion string `json:"specversion"`
	}
	switch {
	case json.Unmarshal(body, &ce) == nil && ce.SpecVersion != "":
		return cloudEvent
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
