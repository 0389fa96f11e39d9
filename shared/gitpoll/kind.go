package gitpoll

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// Kind names why a target has no fresh commit. The set is bounded: it labels metrics.
type Kind string

// The kinds of failure; the empty Kind is success.
const (
	KindNone          Kind = ""
	KindConfiguration Kind = "configuration"  // the URL, the ref or what the Secret holds
	KindCredentials   Kind = "credentials"    // the Secret could not be read
	KindAuthorization Kind = "authorization"  // the host refused the credentials
	KindNotFound      Kind = "not-found"      // the host knows no such repository
	KindEmpty         Kind = "empty"          // a repository without refs
	KindNotAdvertised Kind = "not-advertised" // a repository without this ref
	KindThrottled     Kind = "throttled"      // the host asked to be left alone
	KindServer        Kind = "server"         // the host failed
	KindRefused       Kind = "refused"        // the host said no in words of its own
	KindTimeout       Kind = "timeout"
	KindUnreachable   Kind = "unreachable" // no connection
	KindTrust         Kind = "trust"       // certificate or host key
	KindProtocol      Kind = "protocol"    // the answer was cut, too long, redirected or not git's
	KindNotReached    Kind = "not-reached" // the sweep ended first
	KindHostDown      Kind = "host-down"   // given up after the failures of others
	KindSuspended     Kind = "suspended"   // not to be looked at
	KindOther         Kind = "other"
)

// notAdvertisedError is a complete answer without the tracking ref.
type notAdvertisedError struct{ ref string }

func (e *notAdvertisedError) Error() string {
	return fmt.Sprintf("tracking ref %q is not advertised", e.ref)
}

// KindOf classifies the error of a Result or Observation.
func KindOf(err error) Kind {
	var (
		missing    *notAdvertisedError
		unread     *credentialError
		unusable   *configurationError
		throttled  *ThrottledError
		status     *gitwire.StatusError
		unverified *tls.CertificateVerificationError
		operation  *net.OpError
		timeout    net.Error
	)
	switch {
	case err == nil:
		return KindNone
	case errors.Is(err, ErrNotReached):
		return KindNotReached
	case errors.Is(err, ErrHostDown):
		return KindHostDown
	case errors.Is(err, ErrSuspended):
		return KindSuspended
	case errors.As(err, &missing):
		return KindNotAdvertised
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return KindEmpty
	case errors.As(err, &unread):
		return KindCredentials
	case errors.As(err, &unusable):
		return KindConfiguration
	case errors.As(err, &throttled):
		return KindThrottled
	case errors.As(err, &status):
		return kindOfStatus(status)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return KindNotFound
	case errors.As(err, &unverified), errors.Is(err, gitauth.ErrHostKey), errors.Is(err, gitauth.ErrUnknownHost):
		return KindTrust
	case errors.Is(err, gitauth.ErrRefused):
		return KindAuthorization
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return KindTimeout
	case errors.As(err, &operation), errors.As(err, new(*net.DNSError)):
		return KindUnreachable
	case errors.As(err, new(*gitwire.RemoteError)):
		return KindRefused
	case errors.Is(err, gitwire.ErrTruncated), errors.Is(err, gitwire.ErrTooLarge), errors.Is(err, gitwire.ErrProtocol), errors.Is(err, gitwire.ErrRedirect):
		return KindProtocol
	}
	return KindOther
}

// configurationError is a target that cannot be listed as it is described, whatever the host says.
type configurationError struct{ err error }

func (e *configurationError) Error() string { return e.err.Error() }
func (e *configurationError) Unwrap() error { return e.err }

// AsConfiguration marks an error as one that only a change of the target or its Secret can mend.
func AsConfiguration(err error) error {
	if err == nil {
		return nil
	}
	return &configurationError{err}
}

func kindOfStatus(e *gitwire.StatusError) Kind {
	switch {
	case e.Throttled:
		return KindThrottled
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden:
		return KindAuthorization
	case e.Code == http.StatusNotFound, e.Code == http.StatusGone:
		return KindNotFound
	case e.Code >= 500:
		return KindServer
	}
	return KindProtocol
}

// blames says whether an error counts against the host: not when a Secret could not be read, nor when nobody asked.
func blames(err error) bool {
	var skipped *ThrottledError
	switch KindOf(err) {
	case KindNone, KindCredentials, KindNotReached, KindHostDown, KindSuspended:
		return false
	}
	return !errors.As(err, &skipped)
}

// ThrottledError is a target that was not listed because its host had asked to be left alone.
type ThrottledError struct{ Until time.Time }

func (e *ThrottledError) Error() string {
	return "host asked to be left alone until " + e.Until.UTC().Format(time.RFC3339)
}
