package watchcommit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/manifest"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

// replay is what a shard's initial objects come to, marked by their blobs: a file that is in git already costs its
// path and its id, and no blob is ever fetched.
type replay struct {
	shard   *shard
	files   map[string]gitcommit.Entry // those that git has, or will have when the steps before the replay are done
	objects map[string]*mark           // by path
	before  map[string]bool            // paths that steps before the replay change: git's present content says nothing there
	bytes   int
	partial bool // not all objects are there yet
}

// mark is one object of a replay.
type mark struct {
	uid, rv, ns, name string
	blob              gitcommit.ObjectID
	content           []byte // nil when git has it
	dying             bool
	trace             string
}

// startReplay begins, or begins anew.
func (d *drain) startReplay(ctx context.Context, s *shard) error {
	tip, err := d.branch.repo.Tip(ctx, d.branch.name)
	if err != nil {
		return d.failed(ctx, err)
	}
	files, err := d.branch.repo.Files(ctx, tip, s.folder())
	if err != nil {
		return d.failed(ctx, err)
	}
	if s.replay != nil {
		s.bytes -= s.replay.bytes
	}
	d.measures.replays.Inc()
	s.replay = &replay{shard: s, files: files, objects: map[string]*mark{}, before: map[string]bool{}}
	for _, c := range s.pending {
		s.replay.follow(c)
	}
	return nil
}

// follow takes into account what a step before the replay does to the files.
func (r *replay) follow(c *change) {
	if c.replay == nil {
		r.before[c.path] = true
		return
	}
	r.files, r.before = map[string]gitcommit.Entry{}, map[string]bool{}
	for path, m := range c.replay.objects {
		if !m.dying {
			r.files[path] = gitcommit.Entry{ID: m.blob}
		}
	}
}

// writeAhead pushes what a replay has found so far, when that is more than should be kept in memory. The cursor does not
// move and nothing is removed: the replay is not complete, and if it never is, it begins anew. Nothing is written when
// another drain has moved the cursor: what it wrote may be newer.
func (d *drain) writeAhead(ctx context.Context, s *shard) error {
	all := 0
	for _, other := range d.shards() {
		if other.replay != nil {
			all += other.replay.bytes
		}
	}
	if all < d.replayBytes || s.replay.bytes == 0 || len(s.pending) > 0 { // what was read back has to go first
		return nil
	}
	if !s.target.keyless { // what cannot be signed is not written, and has to be found again
		if err := d.pushPart(ctx, s); err != nil {
			return err
		}
	}
	for _, m := range s.replay.objects {
		m.content = nil
	}
	s.bytes -= s.replay.bytes
	s.replay.bytes = 0
	return nil
}

// pushPart pushes what a replay has found so far.
func (d *drain) pushPart(ctx context.Context, s *shard) error {
	part := *s.replay
	part.partial = true
	_, outcome, err := d.branch.repo.Land(ctx, d.branch.name, func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		tip, err := d.settle(ctx, tip)
		if err != nil {
			return nil, err
		}
		p := &push{portions: []*portion{{shard: s, steps: []*change{{shard: s, replay: &part}}}}}
		if err := d.leaveOut(ctx, p); err != nil {
			return nil, err
		}
		tree, err := d.readTree(ctx, tip, p)
		if err != nil {
			return nil, err
		}
		commits, err := d.compose(tree, p)
		if err != nil {
			return nil, err
		}
		return d.build(ctx, tip, commits, p)
	})
	d.measures.pushes.WithLabelValues(string(outcome.Class)).Inc()
	if err != nil {
		return d.failed(ctx, err)
	}
	return nil
}

// folder holds every file of the shard, and may hold others.
func (s *shard) folder() string {
	root := s.target.spec.Spec.Repository.Path
	if s.kube.Resource.Namespaced && s.key.Namespace == "" {
		return root // in a folder of each namespace
	}
	file := s.path(s.key.Namespace, "x")
	return file[:strings.LastIndex(file, "/")]
}

// owns says whether a file is one of the shard's.
func (s *shard) owns(path string) (manifest.Place, bool) {
	place, ok := manifest.Parse(s.target.spec.Spec.Repository.Path, path)
	if !ok || place.GroupResource != s.key.GVR.GroupResource() {
		return place, false
	}
	return place, s.key.Namespace == "" && (place.Namespace != "") == s.kube.Resource.Namespaced || s.key.Namespace != "" && place.Namespace == s.key.Namespace
}

func (r *replay) add(object *unstructured.Unstructured) {
	m := &mark{
		uid: string(object.GetUID()), rv: object.GetResourceVersion(), ns: object.GetNamespace(), name: object.GetName(),
		dying: object.GetDeletionTimestamp() != nil,
	}
	m.trace = r.shard.observer.Initial(object.Object).Trace().String()
	path := r.shard.path(m.ns, m.name)
	if !m.dying {
		content, err := manifest.Render(object.Object)
		if err != nil {
			return // of a kind that is never written
		}
		m.blob = r.shard.target.branch.repo.BlobID(content)
		if r.files[path].ID != m.blob || r.before[path] {
			m.content = content
			r.bytes += len(content)
			r.shard.bytes += len(content)
		}
	}
	r.objects[path] = m
}

// endReplay puts the complete replay behind what was read back.
func (s *shard) endReplay(rv string) *change {
	step := &change{shard: s, rv: rv, replay: s.replay, settled: true}
	s.append(step)
	s.replay = nil
	return step
}

func (m *mark) known(t *target) queue.Object {
	blob := m.blob.String()
	if m.dying {
		if blob = queue.ObjectRemoved; !t.sweeps() {
			blob = "?" // its file stays until the watch delivers the end
		}
	}
	return queue.Object{RV: m.rv, Blob: blob, Trace: m.trace}
}

// sweeps says whether a replay removes files.
func (t *target) sweeps() bool { return t.spec.Spec.Prune == kube.PruneAlways }

// errContentGone says that git has lost a file since the replay began, whose content was not kept.
var errContentGone = errors.New("the branch lost files under a replay")

// changes are what the replay does to the tree: what differs is written, and what has no object is removed if the
// target says so.
func (r *replay) changes(rv string, tree *tree) ([]history.Change, error) {
	t := r.shard.target
	var out []history.Change
	one := func(verb history.Verb, path string, place manifest.Place, rv string, content []byte) {
		out = append(out, history.Change{
			Verb: verb, GroupResource: r.shard.key.GVR.GroupResource(), Namespace: place.Namespace, Name: place.Name,
			ResourceVersion: rv, Path: path, Content: content, Replayed: true,
		})
	}
	for path, m := range r.objects {
		entry, exists := tree.at(path)
		place := manifest.Place{Namespace: m.ns, Name: m.name}
		switch {
		case m.dying && exists && t.sweeps() && !r.partial:
			one(history.Delete, path, place, m.rv, nil)
		case m.dying || entry == m.blob, m.content == nil && r.partial:
		case m.content == nil:
			return nil, errContentGone
		case exists:
			one(history.Update, path, place, m.rv, m.content)
		default:
			one(history.Create, path, place, m.rv, m.content)
		}
	}
	if t.sweeps() && !r.partial {
		for path := range tree.files {
			place, ours := r.shard.owns(path)
			if _, wanted := r.objects[path]; ours && !wanted {
				if _, exists := tree.at(path); exists {
					one(history.Delete, path, place, rv, nil)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b history.Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
