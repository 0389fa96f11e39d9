package gitwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// Service is one of git's two server programs.
type Service string

// The services.
const (
	UploadPack  Service = "git-upload-pack"
	ReceivePack Service = "git-receive-pack"
)

// Request is one stateless request to a service.
type Request struct {
	Service Service
	// Version2 asks for protocol v2, which only UploadPack has.
	Version2 bool
	// Body is the whole request in pkt-lines, and a pack after them where the service takes one.
	Body []byte
	// MaxResponse limits the answer in bytes, above which reading fails with ErrTooLarge. 0 is DefaultMaxResponse.
	MaxResponse int64
}

// Response is the answer of a service. Read it with a PacketReader, and close it: closing drains what is left, up
// to a limit, so that the connection can be used again.
type Response struct {
	io.Reader
	close func() error
}

// Close ends the exchange.
func (r *Response) Close() error { return r.close() }

// Exchange sends one request and returns the stream of the answer, which must be closed. The context's deadline
// covers dialling, the request and reading the answer.
//
// Over HTTP it is one POST, with no info/refs before it. Over SSH it is one session on the connection that all
// exchanges with the same host, user and key share; what the server says first (its capabilities or refs) is
// skipped. A POST is never sent again to where it was redirected: see ErrRedirect and Advertise.
//
// Errors: *StatusError for an HTTP status, *RemoteError for the server's words, ErrNoVersion2, ErrRedirect,
// ErrProtocol, gitauth's errors, and those of the network.
func (p *Pool) Exchange(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	if ep.IsSSH() {
		return p.exchangeSSH(ctx, ep, cred, req)
	}
	return p.post(ctx, ep, cred, req)
}

// Advertise asks what the service offers: with Version2 its capabilities, from older servers (and always from
// ReceivePack) the refs. Over HTTP it is GET info/refs, without the "# service" header in the answer; a redirect
// within the origin is followed and remembered for the Pool's later exchanges.
func (p *Pool) Advertise(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	if ep.IsSSH() {
		return p.advertiseSSH(ctx, ep, cred, req)
	}
	return p.getInfoRefs(ctx, ep, cred, req)
}

// post sends a request to where the repository is known to have moved. When it is no longer there, that is ErrRedirect: it
// has to be discovered anew.
func (p *Pool) post(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	name, at := string(req.Service), p.where(ep)
	r, err := newRequest(ctx, http.MethodPost, at.ServiceURL(name, ""), cred, req.Version2)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(req.Body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(req.Body)), nil }
	r.ContentLength = int64(len(req.Body))
	r.Header["Content-Type"] = []string{"application/x-" + name + "-request"}
	r.Header["Accept"] = []string{"application/x-" + name + "-result"}
	resp, err := p.transport(cred).RoundTrip(r) //nolint:bodyclose // drain closes it, here or when the Response is closed
	if err != nil {
		return nil, transportError(ctx, err)
	}
	if err := statusError(resp); err != nil {
		drain(resp.Body)
		if at != ep && resp.StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: the repository is no longer where it had moved to", ErrRedirect)
		}
		return nil, err
	}
	if err := checkContentType(resp, "application/x-"+name+"-result"); err != nil {
		drain(resp.Body)
		return nil, err
	}
	return response(ctx, resp.Body, req.MaxResponse), nil
}

// maxRedirects ends loops.
const maxRedirects = 5

func (p *Pool) getInfoRefs(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	name := string(req.Service)
	at := ep // where it had moved to may be out of date
	for range maxRedirects {
		r, err := newRequest(ctx, http.MethodGet, at.ServiceURL("info/refs", "service="+name), cred, req.Version2)
		if err != nil {
			return nil, err
		}
		r.Header["Accept"] = []string{"application/x-" + name + "-advertisement"}
		resp, err := p.transport(cred).RoundTrip(r) //nolint:bodyclose // drain closes it, here or when the Response is closed
		if err != nil {
			return nil, transportError(ctx, err)
		}
		if isRedirect(resp.StatusCode) {
			location := resp.Header.Get("Location")
			drain(resp.Body)
			if at, err = follow(at, r.URL, location); err != nil {
				return nil, err
			}
			continue
		}
		if err := statusError(resp); err != nil {
			drain(resp.Body)
			return nil, err
		}
		if err := checkContentType(resp, "application/x-"+name+"-advertisement"); err != nil {
			drain(resp.Body)
			return nil, err
		}
		p.setMoved(ep, at)
		answer := response(ctx, resp.Body, req.MaxResponse)
		if answer.Reader, err = skipServiceHeader(answer.Reader); err != nil {
			_ = answer.Close() // closing only drains
			return nil, err
		}
		return answer, nil
	}
	return nil, fmt.Errorf("%w: too many", ErrRedirect)
}

// follow checks where a GET info/refs was sent to: the same origin, and still info/refs.
func follow(at *giturl.Endpoint, from *url.URL, location string) (*giturl.Endpoint, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return nil, fmt.Errorf("%w: malformed location", ErrRedirect)
	}
	if !at.SameOrigin(to) {
		return nil, fmt.Errorf("%w: to another origin", ErrRedirect)
	}
	base, ok := strings.CutSuffix(to.EscapedPath(), "/info/refs")
	if !ok {
		return nil, fmt.Errorf("%w: to a page that is no git service, as a login page is", ErrRedirect)
	}
	return at.WithPath(base), nil
}

func newRequest(ctx context.Context, method, target string, cred *gitauth.Credentials, version2 bool) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, giturl.ErrSyntax // the error would repeat the URL
	}
	r.Header["User-Agent"] = []string{userAgent}
	if version2 {
		r.Header["Git-Protocol"] = []string{"version=2"}
	}
	if err := cred.Authorize(ctx, r.Header); err != nil {
		return nil, err
	}
	return r, nil
}

func isRedirect(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// checkContentType refuses pages: a login form with status 200 is no answer. A missing type is let through, and the
// packets decide.
func checkContentType(resp *http.Response, want string) error {
	given := resp.Header.Get("Content-Type")
	if given == "" || given == want {
		return nil
	}
	if t, _, err := mime.ParseMediaType(given); err == nil && (t == want || !strings.HasPrefix(t, "text/html")) {
		return nil
	}
	return fmt.Errorf("%w: it is a web page", ErrProtocol)
}

// response wraps an HTTP body.
func response(ctx context.Context, body io.ReadCloser, limit int64) *Response {
	if limit <= 0 {
		limit = DefaultMaxResponse
	}
	return &Response{
		Reader: &limitedReader{ctx: ctx, r: body, left: limit},
		close:  func() error { drain(body); return nil },
	}
}

// drain reads the rest of a body, up to a limit, so that its connection is used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxDrain) // an error only costs the connection
	_ = body.Close()
}

// limitedReader fails with ErrTooLarge above its limit, and says plainly when the context ended.
type limitedReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrTooLarge
	}
	if int64(len(b)) > l.left {
		b = b[:l.left]
	}
	n, err := l.r.Read(b)
	l.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = ErrTruncated
	default:
		err = transportError(l.ctx, err)
	}
	return n, err
}

// statusError classifies an answer that is not 200.
func statusError(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	if isRedirect(resp.StatusCode) {
		return ErrRedirect
	}
	e := &StatusError{Code: resp.StatusCode}
	e.Throttled, e.RetryAt = throttle(resp, time.Now())
	return e
}
