package who

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
)

// targets are those that mirror the object.
func (f *function) targets(ctx context.Context, q Question) ([]kube.GitTarget, error) {
	var all []kube.GitTarget
	var err error
	if f.cfg.TargetsFile != "" {
		// The cluster's id goes into what targets own, which is not asked for here.
		all, _, err = kube.FileTargets{Path: f.cfg.TargetsFile, Cluster: "any"}.Targets(ctx)
	} else {
		all, _, err = f.deps.Cluster.Targets(ctx)
	}
	if err != nil {
		return nil, err
	}
	resource := q.resource()
	return slices.DeleteFunc(all, func(t kube.GitTarget) bool {
		return !slices.ContainsFunc(t.Watched(), func(r kube.ResourceRule) bool {
			return r.GroupResource() == resource && (len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, q.Namespace))
		})
	}), nil
}

// history reads the commits of a target's branch. Other targets may write to the same branch: what they changed is
// told apart by the folder's owner, not by the commits, so an object that two targets mirror is told twice.
func (f *function) history(ctx context.Context, t kube.GitTarget, q Question, limit int) ([]Change, error) {
	repository, err := f.open(ctx, t)
	if err != nil {
		return nil, err
	}
	tip, err := repository.Tip(ctx, t.Spec.Repository.Branch)
	if err != nil {
		return nil, err
	}
	resource := q.resource()
	var out []Change
	err = repository.Walk(ctx, tip, f.cfg.Commits, func(id gitcommit.ObjectID, c gitobject.Commit) bool {
		message, ok := history.ParseMessage(c.Message)
		if !ok {
			return true
		}
		for _, r := range slices.Backward(message.Changes) {
			if r.Group != resource.Group || r.Resource != resource.Resource || r.Namespace != q.Namespace || r.Name != q.Name {
				continue
			}
			change := Change{
				Target: t.Name, Commit: id.String(), Time: c.Author.When, Verb: string(r.Verb), ResourceVersion: r.ResourceVersion,
				Class: r.By, Tier: r.Tier, AuditID: r.AuditID, Why: r.Why,
			}
			if r.By != history.ByReplay && r.By != history.ByAbsent {
				change.Author, change.ImpersonatedBy = message.Actor, message.ImpersonatedBy
			}
			out = append(out, change)
		}
		return len(out) < limit
	})
	return out, err
}

func (f *function) open(ctx context.Context, t kube.GitTarget) (*gitcommit.Repository, error) {
	endpoint, err := giturl.Parse(t.Spec.Repository.URL)
	if err != nil {
		return nil, err
	}
	var credentials *gitauth.Credentials
	if ref := t.Spec.Repository.SecretRef; ref != nil {
		data, err := f.deps.Cluster.SecretData(ctx, *ref)
		if err != nil {
			return nil, err
		}
		if credentials, err = gitauth.FromSecret(endpoint, data); err != nil {
			return nil, fmt.Errorf("secret %s/%s: %w", ref.Namespace, ref.Name, err)
		}
	}
	return gitcommit.Open(gitcommit.Remote{URL: t.Spec.Repository.URL, Credentials: credentials}, gitcommit.Options{Pool: f.deps.Pool})
}

// live reads the object's version and looks its author up on every route. It answers nil for an object that is not
// there, or that nobody serves.
func (f *function) live(ctx context.Context, q Question, routes []string) (*Live, error) {
	if len(routes) == 0 {
		return nil, nil
	}
	resource := q.resource()
	served, missing, err := f.deps.Cluster.Resolve(ctx, []schema.GroupResource{resource})
	if err != nil || missing[resource] != nil {
		return nil, err
	}
	// A list of one, as who may list what is mirrored, like watchcommit, and not get it.
	list, err := f.deps.Cluster.Dynamic().Resource(served[resource].GroupVersionResource).Namespace(q.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, q.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	object := &list.Items[0]
	seen := attribution.Observe(attribution.Modified, object.Object, nil)
	var queries []queue.AuthorQuery
	for _, route := range routes {
		queries = append(queries, queue.AuthorQuery{
			AuditRoute: route, GVR: served[resource].GroupVersionResource, UID: object.GetUID(), RV: object.GetResourceVersion(), ExactCapable: true, Sighting: &seen,
		})
	}
	answers, err := f.deps.Authors.LookupAuthors(ctx, queries)
	if err != nil {
		return nil, err
	}
	best := answers[0]
	for _, a := range answers {
		if a.Result != attribution.Absent {
			best = a
		}
	}
	return &Live{
		ResourceVersion: object.GetResourceVersion(), Author: best.Fact.Author, ImpersonatedBy: best.Fact.ImpersonatedBy,
		Class: string(best.Result), Tier: string(best.Fact.Tier), AuditID: best.Fact.AuditID, Why: string(best.Why),
	}, nil
}
