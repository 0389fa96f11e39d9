package watchcommit

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/manifest"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

// change is one step of a shard that the cursor has not passed: a change that the watch delivered, or, when replay is
// set, everything that a replay found.
type change struct {
	shard   *shard
	rv      string
	replay  *replay
	event   watch.EventType
	uid     string
	object  *unstructured.Unstructured // nil once it is rendered, and for a removal that was read back
	ns      string
	name    string
	path    string
	content []byte
	blob    gitcommit.ObjectID
	// dying says that the object is being deleted or gone: its file goes.
	dying bool

	seenAt   time.Time
	sighting *attribution.Sighting
	// nothing says that the file cannot differ from what is in git: the content is what was passed before.
	nothing bool
	// settled says that the author is known, or that the grace is over.
	settled    bool
	resolution attribution.Resolution
	askAfter   time.Time // the author is not looked for before
	request    *request
	// known is the object after this change, and expected the blob that git should hold before it.
	known    queue.Object
	expected string
}

// isLater compares versions of one API server.
func isLater(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// newChange reads a live event. It renders the object, so that what waits for its author is the file and not the
// object.
func newChange(s *shard, event watch.EventType, object *unstructured.Unstructured) (*change, error) {
	c := &change{
		shard: s, event: event, rv: object.GetResourceVersion(), uid: string(object.GetUID()),
		ns: object.GetNamespace(), name: object.GetName(), object: object,
	}
	c.path = s.path(c.ns, c.name)
	c.dying = event == watch.Deleted || object.GetDeletionTimestamp() != nil
	if c.dying {
		return c, nil
	}
	var err error
	if c.content, err = manifest.Render(object.Object); err != nil {
		c.nothing = true
		return c, err
	}
	c.blob = s.target.branch.repo.BlobID(c.content)
	return c, nil
}

// after decides, from what was known of the object before this change, whether it can be nothing, and returns what is
// known after it. It must be called in the order of the shard.
func (c *change) after(before queue.Object) queue.Object {
	var previous *attribution.Trace
	if trace, ok := attribution.ParseTrace(before.Trace); ok {
		previous = &trace
	}
	if c.object != nil {
		c.sighting = c.shard.observer.SeeAfter(previous, string(c.event), c.object.Object)
		c.object = nil
	} else {
		c.sighting = &attribution.Sighting{Type: string(c.event), Namespace: c.ns, Name: c.name, UID: c.uid, ResourceVersion: c.rv, Previous: previous}
	}
	now := queue.Object{RV: c.rv, Blob: c.blob.String(), Trace: c.sighting.Trace().String()}
	if c.dying {
		now.Blob = queue.ObjectRemoved
		c.nothing = c.nothing || before.Blob == queue.ObjectRemoved || c.shard.target.keeps()
	} else {
		c.nothing = c.nothing || before.Blob == now.Blob
		c.expected = before.Blob
	}
	if c.event == watch.Deleted {
		now.Blob = "" // the uid never comes back, except when a selector let go of it
	}
	return now
}

// query asks who made the change.
func (c *change) query() queue.AuthorQuery {
	return queue.AuthorQuery{
		AuditRoute: c.shard.target.spec.Spec.AuditRoute, GVR: c.shard.key.GVR, UID: types.UID(c.uid), RV: c.rv,
		ExactCapable: c.event != watch.Deleted, Sighting: c.sighting,
	}
}

// certain says that no event that is still on its way can change the answer.
func certain(r attribution.Resolution) bool {
	return r.Result != attribution.Absent && r.Result != "" && !r.Provisional
}

// history is the change as the commit shows it.
func (c *change) history(verb history.Verb) history.Change {
	h := history.Change{
		Verb: verb, GroupResource: c.shard.key.GVR.GroupResource(), Namespace: c.ns, Name: c.name, ResourceVersion: c.rv,
		Path: c.path, Content: c.content,
	}
	h.Credit(c.resolution)
	if h.Time.IsZero() {
		h.Time = c.seenAt
	}
	if h.Actor != nil {
		h.ByCommitter = c.shard.target.ignores(h.Actor.Username)
	}
	if c.request != nil {
		h.Request = &c.request.words
	}
	return h
}

// shard is one watch of a target in one drain.
type shard struct {
	target  *target
	kube    kube.Shard
	key     queue.Shard
	cursor  string // up to where git has it, as this drain knows; empty: nowhere
	seen    string // up to where the watch has come
	since   string // the version of a replay that was noted and is repeated
	session *kube.Session
	caught  bool
	failed  error
	// pending are the steps after the cursor, in order. They follow each other without a gap.
	pending []*change
	// replay is the one under way; it joins pending when it is complete.
	replay *replay
	// objects are the newest versions that were seen in this drain, by uid.
	objects map[string]queue.Object
	// observer follows the shard's events for the sake of their authors.
	observer *attribution.Observer
	bytes    int // of contents in pending
}

// path is the file of an object.
func (s *shard) path(namespace, name string) string {
	return manifest.Path(s.target.spec.Spec.Repository.Path, s.key.GVR.GroupResource(), namespace, name)
}

func (s *shard) append(c *change) {
	s.pending = append(s.pending, c)
	s.bytes += len(c.content)
	s.seen = c.rv
}

// pass drops the first n steps, and those behind them that the cursor covers too.
func (s *shard) pass(n int, cursor string) {
	replays := slices.ContainsFunc(s.pending[n:], func(c *change) bool { return c.replay != nil })
	for !replays && n < len(s.pending) && !isLater(s.pending[n].rv, cursor) {
		n++
	}
	for _, c := range s.pending[:n] {
		s.bytes -= c.size()
	}
	s.pending = slices.Clone(s.pending[n:])
	s.cursor = cursor
	if isLater(cursor, s.seen) {
		s.seen = cursor
	}
}

func (c *change) size() int {
	if c.replay != nil {
		return c.replay.bytes
	}
	return len(c.content)
}
