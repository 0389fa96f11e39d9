package gitpoll

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// Lister lists what a repository advertises: full ref name to hex id, with "name^{}" for what an annotated tag peels
// to. HEAD and other symbolic names outside refs/ are left out.
type Lister interface {
	List(ctx context.Context, repoURL string, auth transport.AuthMethod) (map[string]string, error)
}

// NewGoGitLister returns a Lister over smart HTTP and SSH with go-git's types of authentication and errors. It lists
// with one protocol v2 request where the server knows it. timeout bounds each listing, dialling included; 0 is none.
//
// An empty repository is an error with transport.ErrEmptyRemoteRepository in its chain; 401, 403 and 404 have
// transport.ErrAuthenticationRequired, ErrAuthorizationFailed and ErrRepositoryNotFound in theirs. Errors begin with
// "listing advertised refs: ".
func NewGoGitLister(timeout time.Duration) Lister { return NewWireLister(timeout) }

// WireLister is what NewGoGitLister returns. In a sweep it also takes trust, client certificates, proxies and GitHub
// Apps, asks only for the refs that the strategy looks at, and serves all targets of a repository with one listing.
type WireLister struct {
	pool    gitwire.Pool
	timeout time.Duration

	mu    sync.Mutex
	known map[string]gitwire.Knowledge
}

// NewWireLister returns a WireLister. timeout bounds each listing; 0 is none.
func NewWireLister(timeout time.Duration) *WireLister {
	return &WireLister{timeout: timeout, known: map[string]gitwire.Knowledge{}}
}

// Close closes its connections. The lister stays usable.
func (l *WireLister) Close() { l.pool.Close() }

// List implements Lister.
func (l *WireLister) List(ctx context.Context, repoURL string, auth transport.AuthMethod) (map[string]string, error) {
	refs, err := l.listAll(ctx, repoURL, auth)
	if err != nil {
		return nil, listingError(err)
	}
	return refs, nil
}

func (l *WireLister) listAll(ctx context.Context, repoURL string, auth transport.AuthMethod) (map[string]string, error) {
	ep, err := giturl.Parse(repoURL)
	if err != nil {
		return nil, err
	}
	cred, err := credentialsOf(ep, auth)
	if err != nil {
		return nil, err
	}
	refs, err := l.list(ctx, ep, cred, nil)
	if err == nil && len(refs) == 0 {
		err = transport.ErrEmptyRemoteRepository
	}
	return refs, err
}

// list is one listing within the timeout, with what earlier ones learned.
func (l *WireLister) list(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, names []string) (map[string]string, error) {
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	key := knowledgeKey(ep)
	l.mu.Lock()
	before := l.known[key]
	l.mu.Unlock()
	refs, after, err := l.pool.ListRefs(ctx, ep, cred, names, before)
	if err == nil && after != before {
		l.mu.Lock()
		l.known[key] = after
		l.mu.Unlock()
	}
	return refs, err
}

// Teach adds what another process learned.
func (l *WireLister) Teach(known map[string]gitwire.Knowledge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.known, known)
}

// Learned returns what is worth telling the next process: the repositories that need something else than the one
// request that is tried first. The keys are digests of URLs.
func (l *WireLister) Learned() map[string]gitwire.Knowledge {
	l.mu.Lock()
	defer l.mu.Unlock()
	worth := map[string]gitwire.Knowledge{}
	for key, k := range l.known {
		if k.Protocol == gitwire.ProtocolOld || k.ObjectFormat != "" && k.ObjectFormat != "sha1" {
			worth[key] = k
		}
	}
	return worth
}

func knowledgeKey(ep *giturl.Endpoint) string {
	sum := sha256.Sum256([]byte(ep.String()))
	return hex.EncodeToString(sum[:16])
}

// listingError says what was being done, and adds go-git's name for the error to its chain.
func listingError(err error) error {
	if known := goGitError(err); known != nil {
		return fmt.Errorf("listing advertised refs: %w", &namedError{err, known})
	}
	return fmt.Errorf("listing advertised refs: %w", err)
}

// namedError prints as err and is also what go-git calls it.
type namedError struct{ err, name error }

func (e *namedError) Error() string   { return e.err.Error() }
func (e *namedError) Unwrap() []error { return []error{e.err, e.name} }

func goGitError(err error) error {
	var status *gitwire.StatusError
	if errors.As(err, &status) {
		switch {
		case status.Code == http.StatusUnauthorized:
			return transport.ErrAuthenticationRequired
		case status.Code == http.StatusForbidden && !status.Throttled:
			return transport.ErrAuthorizationFailed
		case status.Code == http.StatusNotFound:
			return transport.ErrRepositoryNotFound
		}
	}
	var remote *gitwire.RemoteError
	if errors.As(err, &remote) {
		said := strings.ToLower(remote.Text)
		for _, words := range []string{"not found", "does not exist", "does not appear to be a git repository", "no such project", "could not be found"} {
			if strings.Contains(said, words) {
				return transport.ErrRepositoryNotFound
			}
		}
	}
	return nil
}
