package gitcommit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// What a server turned out to be able to do. A Repository starts with the most and steps down when it is refused.
const (
	byID      int32 = iota // protocol v2, any object by its id, filters
	bySnap                 // protocol v2, the tip's whole tree without file contents
	byWhole                // protocol v2, the tip's whole tree with file contents, which are dropped
	byOld                  // protocol v0, the tip's whole tree as lean as the server can
	abilities              // how many there are
)

// manyTrees is from how many wanted trees on one level of the path on everything below them is fetched at once: the
// answer grows, but the levels below take no requests of their own.
const manyTrees = 200

// depth says whether to fetch also what is below, given how many of the wanted trees are missing.
type depth func(missing int) bool

func shallow(int) bool { return false }

// trees returns the entries of trees, from memory, the cache, or the server. at is the commit that holds them:
// a server that does not give out trees by their id is asked for the whole tree of that commit.
func (r *Repository) trees(ctx context.Context, at ObjectID, ids []ObjectID, deep depth) (map[ObjectID][]gitobject.Entry, error) {
	objects, err := r.objects(ctx, at, ids, deep)
	if err != nil {
		return nil, err
	}
	out := make(map[ObjectID][]gitobject.Entry, len(ids))
	for _, id := range ids {
		if objects[id].Type != gitobject.TreeType {
			return nil, fmt.Errorf("object %s is a %s, not a tree", id.Short(), objects[id].Type)
		}
		if out[id], err = gitobject.ParseTree(id.Format(), objects[id].Data); err != nil {
			return nil, fmt.Errorf("object %s: %w", id.Short(), err)
		}
	}
	return out, nil
}

// commit returns a commit. From the server it brings the root tree along.
func (r *Repository) commit(ctx context.Context, id ObjectID) (gitobject.Commit, error) {
	objects, err := r.objects(ctx, id, []ObjectID{id}, shallow)
	if err != nil {
		return gitobject.Commit{}, err
	}
	if objects[id].Type != gitobject.CommitType {
		return gitobject.Commit{}, fmt.Errorf("object %s is a %s, not a commit", id.Short(), objects[id].Type)
	}
	return gitobject.ParseCommit(objects[id].Data)
}

func (r *Repository) objects(ctx context.Context, at ObjectID, ids []ObjectID, deep depth) (map[ObjectID]gitobject.Object, error) {
	out := make(map[ObjectID]gitobject.Object, len(ids))
	missing := r.fromMemory(ids, out)
	missing = r.fromCache(ctx, missing, out)
	if len(missing) == 0 {
		return out, nil
	}
	below := deep(len(missing))
	fetched, err := r.fetch(ctx, missing, func(ability int32) gitwire.FetchRequest { return forObjects(ability, at, missing, below) })
	if err != nil {
		return nil, fmt.Errorf("fetch %d objects of %s: %w", len(missing), r.endpoint.HostLabel(), err)
	}
	r.remember(fetched)
	r.toCache(ctx, fetched)
	for _, id := range missing {
		out[id] = fetched[id]
	}
	return out, nil
}

func (r *Repository) fromMemory(ids []ObjectID, out map[ObjectID]gitobject.Object) (missing []ObjectID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := make(map[ObjectID]bool, len(ids))
	for _, id := range ids {
		if o, found := r.known[id]; found {
			out[id] = o
		} else if !asked[id] {
			asked[id] = true
			missing = append(missing, id)
		}
	}
	return missing
}

func (r *Repository) fromCache(ctx context.Context, ids []ObjectID, out map[ObjectID]gitobject.Object) (missing []ObjectID) {
	if r.options.Cache == nil || r.distrust.Load() || r.silent.Load() || len(ids) == 0 {
		return ids
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	values, err := r.options.Cache.Get(ctx, r.name, names)
	if err != nil {
		r.silent.Store(true)
		r.forgetful(err)
		return ids
	}
	found := map[ObjectID]gitobject.Object{}
	for i, id := range ids {
		value, cached := values[names[i]]
		if !cached {
			missing = append(missing, id)
			continue
		}
		o, err := gitobject.FromLoose(id, value)
		if err != nil {
			r.forgetful(fmt.Errorf("cached %w", err))
			missing = append(missing, id)
			continue
		}
		out[id], found[id] = o, o
	}
	r.remember(found)
	return missing
}

func (r *Repository) toCache(ctx context.Context, objects map[ObjectID]gitobject.Object) {
	if r.options.Cache == nil || r.silent.Load() || len(objects) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	values := make(map[string][]byte, len(objects))
	for id, o := range objects {
		if o.Type == gitobject.CommitType || o.Type == gitobject.TreeType {
			values[id.String()] = o.Loose()
		}
	}
	if err := r.options.Cache.Put(ctx, r.name, values); err != nil {
		r.silent.Store(true)
		r.forgetful(err)
	}
}

func (r *Repository) remember(objects map[ObjectID]gitobject.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.known, objects)
}

// ErrGone is an object that the server does not have: the branch was rewritten since the tip was remembered.
var ErrGone = errors.New("the server does not have the commit")

// fetch gets objects from the server in the leanest way that it can answer. request says what to ask of a server of an
// ability for it; want are the objects that must come.
func (r *Repository) fetch(ctx context.Context, want []ObjectID, request func(ability int32) gitwire.FetchRequest) (map[ObjectID]gitobject.Object, error) {
	for {
		ability := r.ability.Load()
		ask := r.pool.Fetch
		if ability == byOld {
			ask = r.pool.FetchOld
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		objects, err := ask(bounded, r.endpoint, r.credentials, request(ability))
		cancel()
		if err == nil {
			err = complete(objects, want)
		}
		if err == nil || !refusesThis(err) {
			return objects, err
		}
		if ability+1 == abilities {
			if errors.Is(err, gitwire.ErrNotServed) {
				return nil, fmt.Errorf("%w: %w", ErrGone, err)
			}
			return nil, err
		}
		r.stepDown(ability, err)
	}
}

// stepDown remembers that the server could not do something: what a refusal rules out is not tried again.
func (r *Repository) stepDown(from int32, err error) {
	to := from + 1
	switch {
	case errors.Is(err, gitwire.ErrNoVersion2):
		to = byOld
	case errors.Is(err, gitwire.ErrNoFilter):
		to = byWhole
	}
	r.ability.CompareAndSwap(from, to)
}

// forObjects asks for objects that the commit at holds: for its whole tree where the server does not give them out by id.
func forObjects(ability int32, at ObjectID, ids []ObjectID, deep bool) gitwire.FetchRequest {
	request := gitwire.FetchRequest{Format: at.Format(), Want: []ObjectID{at}, Depth: 1}
	switch ability {
	case byID:
		request.Want, request.Filter = ids, gitwire.NoTrees
		if deep {
			request.Filter = gitwire.NoBlobs
		}
		if slices.Contains(ids, at) {
			request.Filter = gitwire.RootOnly
		} else {
			request.Depth = 0
		}
	case bySnap, byOld:
		request.Filter = gitwire.NoBlobs
	}
	return request
}

var errIncomplete = errors.New("the server sent less than was asked for")

func complete(objects map[ObjectID]gitobject.Object, ids []ObjectID) error {
	for _, id := range ids {
		if _, found := objects[id]; !found {
			return fmt.Errorf("object %s: %w", id.Short(), errIncomplete)
		}
	}
	return nil
}

// refusesThis says whether an error may mean that the server cannot do what it was asked, so that something older is
// worth trying. A cut connection means nothing of the kind.
func refusesThis(err error) bool {
	var status *gitwire.StatusError
	if errors.As(err, &status) {
		switch status.Code {
		case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
			return true
		}
		return false
	}
	var remote *gitwire.RemoteError
	return errors.As(err, &remote) || errors.Is(err, gitwire.ErrNotServed) || errors.Is(err, gitwire.ErrNoFilter) ||
		errors.Is(err, gitwire.ErrNoVersion2) || errors.Is(err, gitwire.ErrProtocol) || errors.Is(err, gitwire.ErrRedirect) || errors.Is(err, errIncomplete)
}
