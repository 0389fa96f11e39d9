package awslambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// httpRequest is the payload, format 2.0, that function URLs and HTTP APIs share.
type httpRequest struct {
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Cookies        []string          `json:"cookies"`
	Headers        map[string]string `json:"headers"`
	RequestContext struct {
		DomainName string `json:"domainName"`
		Stage      string `json:"stage"`
		HTTP       struct {
			Method   string `json:"method"`
			Protocol string `json:"protocol"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
	} `json:"requestContext"`
	Body            string `json:"body"`
	IsBase64Encoded bool   `json:"isBase64Encoded"`
}

// httpResponse is the answer in the same format.
type httpResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Cookies         []string          `json:"cookies,omitempty"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (a *Adapter) serveHTTPRequest(ctx context.Context, raw []byte) ([]byte, error) {
	var in httpRequest
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("read the HTTP payload: %w", err)
	}
	r, err := in.request(ctx)
	if err != nil {
		out := newAnswer()
		http.Error(out, err.Error(), http.StatusBadRequest)
		return out.response()
	}
	return a.serve(r).response()
}

// request is the HTTP request that the payload describes.
func (in *httpRequest) request(ctx context.Context) (*http.Request, error) {
	body := []byte(in.Body)
	if in.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(in.Body)
		if err != nil {
			return nil, fmt.Errorf("the body is not the base64 that the payload says it is")
		}
		body = decoded
	}
	path := in.RawPath
	// An HTTP API with a named stage puts the stage before the path.
	if stage := in.RequestContext.Stage; stage != "" && stage != "$default" {
		if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	if path == "" {
		path = "/"
	}
	u := &url.URL{Path: path, RawQuery: in.RawQueryString}
	if decoded, err := url.PathUnescape(path); err == nil && decoded != path {
		u.Path, u.RawPath = decoded, path
	}
	header := make(http.Header, len(in.Headers)+1)
	for name, value := range in.Headers { // several values of one header come joined by a comma
		header.Set(name, value)
	}
	if len(in.Cookies) > 0 {
		header.Set("Cookie", strings.Join(in.Cookies, "; "))
	}
	r := &http.Request{
		Method: in.RequestContext.HTTP.Method, URL: u, RequestURI: u.RequestURI(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Host: in.RequestContext.DomainName, Body: readCloser{bytes.NewReader(body)}, ContentLength: int64(len(body)),
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	if ip := in.RequestContext.HTTP.SourceIP; ip != "" {
		r.RemoteAddr = ip + ":0"
		if strings.Contains(ip, ":") {
			r.RemoteAddr = "[" + ip + "]:0"
		}
	}
	return r.WithContext(ctx), nil
}

// response is the answer in payload format 2.0; a body that is not text goes as base64.
func (a *answer) response() ([]byte, error) {
	out := httpResponse{StatusCode: a.status, Headers: make(map[string]string, len(a.sent))}
	for name, values := range a.sent {
		if name == "Set-Cookie" {
			out.Cookies = values
			continue
		}
		out.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if body := a.body.Bytes(); isText(a.sent.Get("Content-Type")) && utf8.Valid(body) {
		out.Body = string(body)
	} else {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return json.Marshal(out)
}

func isText(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType == ""
	}
	return strings.HasPrefix(media, "text/") || media == "application/json" || strings.HasSuffix(media, "+json")
}
