package gitcommit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// Remote says where the repository is and who asks.
type Remote struct {
	URL         string
	Credentials *gitauth.Credentials
}

// Options are what a Repository works with; the zero value is usable.
type Options struct {
	// Pool is whose connections are used; nil makes one of its own.
	Pool *gitwire.Pool
	// Cache and Tips remember between runs; nil remembers only while the Repository lives.
	Cache ObjectCache
	Tips  TipMemory
	// Forgetful is called with each error of Cache and Tips, which cost requests and nothing else; nil ignores them.
	Forgetful func(error)
}

// How long one request may take at most: to read from the server, to push, and to ask Cache or Tips.
const (
	requestTimeout = 30 * time.Second
	pushTimeout    = 60 * time.Second
	cacheTimeout   = 2 * time.Second
)

// Repository is a remote repository. It is safe for concurrent use.
type Repository struct {
	endpoint    *giturl.Endpoint
	credentials *gitauth.Credentials
	name        string // in caches
	options     Options
	pool        *gitwire.Pool

	distrust atomic.Bool // the server lacks something the cache had: read nothing from it
	silent   atomic.Bool // the cache failed: each further wait for it would be one too many
	ability  atomic.Int32

	mu      sync.Mutex
	format  gitobject.Format
	learned gitwire.Knowledge
	known   map[ObjectID]gitobject.Object // commits and trees read or made in this life
}

// Open prepares to work with a repository; it sends nothing.
func Open(remote Remote, options Options) (*Repository, error) {
	endpoint, err := giturl.Parse(remote.URL)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	r := &Repository{endpoint: endpoint, credentials: remote.Credentials, name: endpoint.String(), options: options,
		pool: options.Pool, known: map[ObjectID]gitobject.Object{}}
	if r.pool == nil {
		r.pool = &gitwire.Pool{}
	}
	return r, nil
}

// Tip reads where the branch stands, with one request.
func (r *Repository) Tip(ctx context.Context, branch string) (Tip, error) {
	if err := checkBranch(branch); err != nil {
		return Tip{}, err
	}
	id, err := r.readTip(ctx, branch)
	if err != nil {
		return Tip{}, fmt.Errorf("read refs/heads/%s of %s: %w", branch, r.endpoint.HostLabel(), err)
	}
	r.rememberTip(ctx, branch, id)
	return Tip{Branch: branch, ID: id}, nil
}

// RememberedTip is where the branch was last seen, without asking the server; false when nothing is remembered.
func (r *Repository) RememberedTip(ctx context.Context, branch string) (Tip, bool) {
	if r.options.Tips == nil {
		return Tip{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	text, err := r.options.Tips.RememberedTip(ctx, r.name, branch)
	if err != nil {
		r.forgetful(err)
		return Tip{}, false
	}
	id, err := gitobject.ParseID(text)
	if err != nil || id.IsZero() {
		return Tip{}, false
	}
	r.setFormat(id.Format())
	return Tip{Branch: branch, ID: id, Remembered: true}, true
}

func (r *Repository) rememberTip(ctx context.Context, branch string, id ObjectID) {
	if r.options.Tips == nil || id.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := r.options.Tips.RememberTip(ctx, r.name, branch, id.String()); err != nil {
		r.forgetful(err)
	}
}

// BlobID is the id that a file of this content has. It is right once the repository's format is known: after Tip or RememberedTip.
func (r *Repository) BlobID(content []byte) ObjectID {
	return gitobject.New(r.objectFormat(), gitobject.BlobType, content).ID
}

func (r *Repository) objectFormat() gitobject.Format {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.format
}

func (r *Repository) setFormat(f gitobject.Format) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.format = f
	if f != gitobject.SHA1 {
		r.learned.ObjectFormat = f.String() // saves asking in the wrong format first
	}
}

func (r *Repository) forgetful(err error) {
	if r.options.Forgetful != nil && !errors.Is(err, context.Canceled) {
		r.options.Forgetful(err)
	}
}

// checkBranch refuses what git refuses, before any of it gets into a request.
func checkBranch(branch string) error {
	if branch == "" || gitwire.CheckRefName("refs/heads/"+branch) != nil {
		return fmt.Errorf("branch %q: %w", clip(branch), gitwire.ErrRefName)
	}
	return nil
}

// readTip asks for one ref.
func (r *Repository) readTip(ctx context.Context, branch string) (ObjectID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := "refs/heads/" + branch
	refs, knowledge, err := r.pool.ListRefs(ctx, r.endpoint, r.credentials, []string{ref}, r.knowledge())
	if err != nil {
		return ObjectID{}, err
	}
	format, err := gitobject.FormatNamed(knowledge.ObjectFormat)
	if err != nil {
		return ObjectID{}, err
	}
	var id ObjectID
	if text := refs[ref]; text != "" {
		if id, err = gitobject.ParseID(text); err != nil {
			return ObjectID{}, err
		}
		format = id.Format()
	} else if r.endpoint.IsSSH() {
		if format, err = r.pool.ObjectFormat(ctx, r.endpoint, r.credentials); err != nil {
			return ObjectID{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.format = format
	r.learned = knowledge
	if knowledge.Protocol == gitwire.ProtocolOld {
		r.ability.Store(byOld)
	}
	return id, nil
}

func (r *Repository) knowledge() gitwire.Knowledge {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.learned
}
