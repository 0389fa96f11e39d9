package watchcommit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// branch is one branch of one repository, with every target that writes to it.
type branch struct {
	id      string // in keys
	name    string
	host    string // for people
	targets []*target
	repo    *gitcommit.Repository
	account *target // whose credentials repo uses
}

// target is a GitTarget in one drain.
type target struct {
	spec    kube.GitTarget
	branch  *branch
	grace   time.Duration
	hold    time.Duration
	owner   string // what the owner file holds
	shards  []*shard
	missing []*kube.NotServed
	problem *kube.Problem
	blocked bool // another target owns the folder
	// refused says that the git server refuses the target's credentials.
	refused *kube.Problem
	signer  gitcommit.Signer
	keyless bool // its commits are to be signed and the key cannot be read: they wait
	last    *kube.LastCommit
	facts   bool // an author was found in this drain
	nobody  bool // a change went without an author in this drain
}

func (t *target) keeps() bool { return t.spec.Spec.Prune == kube.PruneNever }

func (t *target) ignores(username string) bool {
	return slices.Contains(t.spec.Spec.IgnoreActors, username)
}

func (t *target) policy() history.Policy {
	c := t.spec.Spec.Commit
	return history.Policy{
		Grouping: history.Grouping(c.Grouping), CommitterName: c.Committer.Name, CommitterEmail: c.Committer.Email, Message: c.Message,
	}
}

// ownerFile marks a folder as written by one target.
const ownerFile = ".tidemark"

func (t *target) file(name string) string {
	if t.spec.Spec.Repository.Path == "" {
		return name
	}
	return t.spec.Spec.Repository.Path + "/" + name
}

// ownerText is the owner file's content. It outlives the GitTarget object: one that is made again goes on.
func ownerText(cluster, name string) string {
	return "# Tidemark writes this folder. Who owns it:\ncluster: " + cluster + "\ntarget: " + name + "\n"
}

// purpose is what a shard's cursor was made for. When it is another, the files have to be written anew.
func (t *target) purpose(sh kube.Shard) string {
	selector := ""
	if sh.Selector != nil {
		selector = sh.Selector.String()
	}
	sum := sha256.Sum256([]byte(t.branch.id + "\x00" + t.spec.Spec.Repository.Path + "\x00" + sh.Resource.Version + "\x00" + selector))
	return hex.EncodeToString(sum[:12])
}

func (f *Function) newTarget(spec kube.GitTarget, cluster string) *target {
	t := &target{spec: spec, grace: f.cfg.Grace, owner: ownerText(cluster, spec.Name)}
	if g := spec.Spec.AttributionGrace; g != nil {
		t.grace = g.Duration
	}
	if h := spec.Spec.Commit.Hold; h != nil {
		t.hold = h.Duration
	}
	return t
}

// branches puts targets that write to one branch together. The order of targets is that of their names, so that two
// drains make the same of the same.
func branches(targets []*target) []*branch {
	sort.Slice(targets, func(i, j int) bool { return targets[i].spec.Name < targets[j].spec.Name })
	var out []*branch
	byID := map[string]*branch{}
	for _, t := range targets {
		repository := t.spec.Spec.Repository
		endpoint, err := giturl.Parse(repository.URL)
		if err != nil {
			t.problem = &kube.Problem{Reason: kube.ReasonInvalidSpec, Message: fmt.Sprintf("spec.repository.url: %v", err)}
			continue
		}
		id := queue.BranchID(endpoint.String(), repository.Branch)
		b := byID[id]
		if b == nil {
			b = &branch{id: id, name: repository.Branch, host: endpoint.HostLabel()}
			byID[id] = b
			out = append(out, b)
		}
		t.branch = b
		b.targets = append(b.targets, t)
	}
	return out
}

// signers reads the keys that commits are signed with. What cannot be signed as its target wants it is not committed.
func (f *Function) signers(ctx context.Context, b *branch) {
	for _, t := range b.targets {
		ref := t.spec.Spec.Commit.SigningKeyRef
		if t.signer, t.keyless = nil, false; ref == nil {
			continue
		}
		data, err := f.cluster.SecretData(ctx, *ref)
		if err != nil {
			err = ofCluster(err)
		} else {
			var signer *gitcommit.SSHSigner
			if signer, err = gitcommit.SignerFromSecret(data); err == nil {
				t.signer = signer
				continue
			}
			err = fmt.Errorf("%w: Secret %s/%s: %w", kube.ErrSecretNotReadable, ref.Namespace, ref.Name, err)
		}
		t.problem, t.keyless = problemOf(ctx, err), true
	}
}

// watches makes the shards of the targets and forgets those that left.
func (f *Function) watches(ctx context.Context, b *branch) error {
	var wanted []schema.GroupResource
	for _, t := range b.targets {
		for _, rule := range t.spec.Watched() {
			wanted = append(wanted, rule.GroupResource())
		}
	}
	served, missing, err := f.cluster.Resolve(ctx, wanted)
	if err != nil {
		return ofCluster(err)
	}
	var all []*shard
	var keys []queue.Shard
	family := attribution.NewFamily()
	for _, t := range b.targets {
		var shards []kube.Shard
		shards, t.missing = t.spec.Shards(served, missing)
		purposes := map[queue.Shard]string{}
		for _, sh := range shards {
			key := queue.Shard{TargetUID: string(t.spec.UID), GVR: sh.Resource.GroupVersionResource, Namespace: sh.Namespace}
			purposes[key] = t.purpose(sh)
			t.shards = append(t.shards, &shard{
				target: t, kube: sh, key: key, objects: map[string]queue.Object{},
				observer: observerOf(sh, family),
			})
			keys = append(keys, key)
		}
		all = append(all, t.shards...)
		var absent []schema.GroupResource
		for _, n := range t.missing {
			absent = append(absent, n.Resource)
		}
		if n, err := f.store.SettleShards(ctx, string(t.spec.UID), purposes, absent...); err != nil {
			return ofStore(err)
		} else if n > 0 {
			f.log.Info("shards left or changed their purpose: they replay when they are back", "target", t.spec.Name, "shards", n)
		}
	}
	cursors, err := f.store.WatchCursors(ctx, keys)
	if err != nil {
		return ofStore(err)
	}
	for i, s := range all {
		s.cursor, s.seen = cursors[i], cursors[i]
	}
	return nil
}

func observerOf(sh kube.Shard, family *attribution.Family) *attribution.Observer {
	o := attribution.NewObserver(attribution.GroupResource(sh.Resource.Group, sh.Resource.Resource), family)
	o.Narrowed = sh.Selector != nil && !sh.Selector.Empty()
	return o
}
