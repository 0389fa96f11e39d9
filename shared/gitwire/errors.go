package gitwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
)

// RemoteError is what the git server said went wrong: an ERR packet, or its standard error over SSH.
type RemoteError struct {
	Text string // bounded, printable, without credentials
}

func (e *RemoteError) Error() string { return "remote: " + e.Text }

// ErrTooLarge is an answer above the limit.
var ErrTooLarge = errors.New("answer is larger than the limit")

// ErrNoVersion2 is a server that answered a protocol v2 request with an older version, or a fetch with nothing.
var ErrNoVersion2 = errors.New("server does not speak protocol v2")

// ErrRedirect is a redirect that was not followed: of a POST, to another origin, to no git service, or in a loop.
var ErrRedirect = errors.New("redirect not followed")

// StatusError is an HTTP answer other than 200. What the body says is left out: servers echo requests.
type StatusError struct {
	Code int
	// Throttled says that the server asked to be left alone: 429, 503 with or without Retry-After, or a 403 whose
	// headers say that the rate limit is used up.
	Throttled bool
	// RetryAt is when the server says to come back; zero if it did not say.
	RetryAt time.Time
}

func (e *StatusError) Error() string {
	text := http.StatusText(e.Code)
	if text == "" {
		text = "unknown status"
	}
	msg := fmt.Sprintf("HTTP %d %s", e.Code, text)
	if e.Throttled {
		msg += " (throttled)"
	}
	return msg
}

// maxExcerpt bounds what a server's words may take in an error.
const maxExcerpt = 200

// printable makes a server's words fit for an error: one line, bounded, no control bytes, no credentials.
func printable[T ~string | ~[]byte](text T) string {
	s := string(text[:min(len(text), 4*maxExcerpt)])
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f || r == 0xfffd || 0x80 <= r && r < 0xa0:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = gitauth.Redact(strings.TrimSpace(s))
	if len(s) > maxExcerpt {
		s = strings.ToValidUTF8(s[:maxExcerpt], "") + "…"
	}
	return s
}

// transportError strips the URL that net/http puts into its errors, and keeps the chain below it.
func transportError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	// A cancelled or expired context surfaces in many shapes; the context itself says it plainly. A dialler that
	// copied its deadline may be a moment ahead of it.
	cause := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && cause == nil && time.Until(deadline) < 10*time.Millisecond {
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			cause = context.DeadlineExceeded
		}
	}
	if cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %s", cause, printable(err.Error()))
	}
	var dns *net.DNSError
	if errors.As(err, &dns) || len(err.Error()) <= maxExcerpt {
		return err
	}
	return &shortError{err}
}

// shortError bounds the text of an error and keeps its chain.
type shortError struct{ err error }

func (e *shortError) Error() string { return printable(e.err.Error()) }
func (e *shortError) Unwrap() error { return e.err }
