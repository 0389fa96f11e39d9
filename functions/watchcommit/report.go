package watchcommit

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/kube"
)

// problemOf says what a person can do about an error. It is nil for those that are ours: the store's, and that of a drain
// whose time, which is ctx's, is up. A server that does not answer in time while the drain has more is in trouble.
func problemOf(ctx context.Context, err error) *kube.Problem {
	var push *gitcommit.PushError
	var status *gitwire.StatusError
	var api apierrors.APIStatus
	var store *storeError
	var cluster *clusterError
	reason := ""
	switch {
	case errors.As(err, &store), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && timeIsUp(ctx):
		return nil
	case errors.Is(err, kube.ErrSecretNotReadable):
		reason = kube.ReasonSecretNotReadable
	case errors.Is(err, gitauth.ErrRefused):
		reason = kube.ReasonCredentialsRefused
	case errors.As(err, &push):
		switch push.Outcome.Class {
		case gitcommit.Policy:
			return &kube.Problem{Reason: kube.ReasonBranchProtected, Message: "the server refuses the push: " + push.Outcome.Words}
		case gitcommit.Auth:
			reason = kube.ReasonCredentialsRefused
		case gitcommit.Throttled:
			reason = kube.ReasonThrottled
		default:
			reason = kube.ReasonRepositoryUnreachable
		}
	case errors.As(err, &status):
		switch {
		case status.Throttled:
			reason = kube.ReasonThrottled
		case status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden:
			reason = kube.ReasonCredentialsRefused
		default:
			reason = kube.ReasonRepositoryUnreachable
		}
	case errors.As(err, &api), errors.As(err, &cluster):
		reason = kube.ReasonClusterUnreachable
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			reason = kube.ReasonResourceForbidden
		}
	default:
		reason = kube.ReasonRepositoryUnreachable
	}
	return &kube.Problem{Reason: reason, Message: err.Error()}
}

// storeError is an error of Redis, or of what is kept there. It says nothing about a target.
type storeError struct{ error }

func (e *storeError) Error() string { return "the store: " + e.error.Error() }

func (e *storeError) Unwrap() error { return e.error }

// clusterError is an error of the API server, or of the way to it.
type clusterError struct{ error }

func (e *clusterError) Unwrap() error { return e.error }

// ofCluster marks an error as the API server's.
func ofCluster(err error) error { return &clusterError{err} }

// ofStore marks an error as the store's.
func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{err}
}

// reportAll writes the targets' status after a round.
func (d *drain) reportAll(ctx context.Context) {
	d.unresolved.add(d.nameless)
	d.nameless = nil
	d.countLate(ctx)
	for _, t := range d.branch.targets {
		d.report(ctx, t)
	}
}

// report writes one target's status, where targets have one. Not being able to is no failure of the drain.
func (f *Function) report(ctx context.Context, t *target) {
	if t.problem != nil {
		f.log.Warn("a target is not ready", "target", t.spec.Name, "reason", t.problem.Reason, "error", t.problem.Message)
	}
	if f.cfg.TargetsFile != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancel()
	report := f.standing(t)
	if t.facts && !t.nobody {
		f.unresolved.inTime(t.spec.Name)
	}
	switch {
	case f.unresolved.late(t.spec.Name, f.now()) > 0:
		report.Attribution, report.Late = kube.ReasonFactsLate, f.unresolved.late(t.spec.Name, f.now())
	case t.facts:
		report.Attribution = kube.ReasonFactsArrive
	case t.nobody:
		report.Attribution = f.silence(ctx, t)
	}
	f.write(ctx, t, report)
}

// reportNews writes the status of targets that have become ready, or have ceased to be, since it was written last: who
// has just made or corrected one does not wait for the end of the window. All shards are caught up with.
func (d *drain) reportNews(ctx context.Context) {
	if d.cfg.TargetsFile != "" {
		return
	}
	for _, t := range d.branch.targets {
		if report := d.standing(t); kube.ReadyChanges(&t.spec, report) {
			d.write(ctx, t, report)
		}
	}
}

// standing is how far a target has come and what keeps it.
func (f *Function) standing(t *target) kube.Report {
	report := kube.Report{Problem: t.problem, NotServed: t.missing, LastCommit: t.last}
	now := metav1.NewTime(f.now())
	for _, s := range t.shards {
		gvr := s.key.GVR
		status := kube.ShardStatus{Group: gvr.Group, Resource: gvr.Resource, Namespace: s.key.Namespace, Cursor: s.cursor}
		if s.caught {
			status.CursorTime = &now
		}
		for _, c := range s.pending {
			if c.nothing || c.replay != nil {
				continue
			}
			if status.Waiting++; status.Lag == nil && !c.seenAt.IsZero() {
				status.Lag = &metav1.Duration{Duration: f.now().Sub(c.seenAt)}
			}
		}
		report.Shards = append(report.Shards, status)
	}
	return report
}

// write does so even when the request is over.
func (f *Function) write(ctx context.Context, t *target, report kube.Report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancel()
	if err := f.cluster.ReportTarget(ctx, &t.spec, report); err != nil {
		f.log.Warn("a target's status cannot be written", "target", t.spec.Name, "error", err)
	}
}

// tellDrift says which files somebody else had changed in git, now that newer changes of the cluster have replaced them.
func (d *drain) tellDrift(ctx context.Context, p *push, built *gitcommit.Built) {
	if built == nil || built.Empty() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancel()
	for t, paths := range p.drift {
		d.measures.drift.Add(float64(len(paths)))
		d.log.Warn("files had been changed in git by somebody else: newer changes of the cluster have replaced them",
			"target", t.spec.Name, "files", len(paths), "first", paths[0], "before", built.Old.String())
		if d.cfg.TargetsFile != "" {
			continue
		}
		if err := d.cluster.TellReplaced(ctx, &t.spec, built.Old.String(), paths); err != nil {
			d.log.Warn("replaced files cannot be told", "target", t.spec.Name, "error", err)
		}
	}
}

// silence says why a change went without an author: no fact has ever come on the route, or this one has not.
func (f *Function) silence(ctx context.Context, t *target) string {
	route := t.spec.Spec.AuditRoute
	heard, err := f.store.RoutesHeard(ctx, []string{route})
	if err != nil {
		return ""
	}
	if _, ever := heard[route]; ever {
		return kube.ReasonFactsLate
	}
	return kube.ReasonNoFacts
}
