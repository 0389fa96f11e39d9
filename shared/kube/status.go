package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// statusRefresh is how old a status may get when nothing in it but times has changed.
	statusRefresh = time.Minute
	// maxMessage bounds the words of others (a git server's hook) that go into a condition.
	maxMessage = 1000
	// maxNamed is how many files an Event names.
	maxNamed = 5
	// eventNamespace is where Events of cluster-scoped objects live.
	eventNamespace = metav1.NamespaceDefault
)

// Problem is what keeps a target from being Ready, for a person to act on.
type Problem struct {
	// Reason is one of the reasons of Ready.
	Reason string
	// Message is a sentence; it must hold nothing secret. Long ones are cut.
	Message string
}

// Report is what one drain found out about a target.
type Report struct {
	// Problem is nil when everything that can be mirrored is.
	Problem *Problem
	// NotServed are the rules without a watch. They count as a problem when there is no graver one.
	NotServed []*NotServed
	// Attribution is a reason of Attributed; empty leaves the condition as it is.
	Attribution string
	// Late is by how much facts missed the grace lately; 0 when that is not known.
	Late time.Duration
	// LastCommit is nil when this drain pushed nothing; the one in the status stays.
	LastCommit *LastCommit
	Shards     []ShardStatus
}

// ReportTarget writes the target's status, and an Event when there is something that a person has to do, or when that
// is over. The target is as it was read: nothing is sent when it already says the same. The same trouble makes one
// Event an hour, however many drains and copies see it. A target that is gone meanwhile is no error.
func (c *Client) ReportTarget(ctx context.Context, target *GitTarget, report Report) error {
	now := c.now()
	before := target.Status
	status := nextStatus(target, report, now)
	if !needsWrite(before, status, now) {
		return nil
	}
	if err := c.patchStatus(ctx, GitTargets, "", target.Name, target.UID, status); err != nil {
		return fmt.Errorf("write the status of GitTarget %s: %w", target.Name, err)
	}
	target.Status = status
	return c.tell(ctx, target, before.Conditions, status.Conditions, now)
}

// ReadyChanges says whether the report would make the target's Ready condition another one, or the first one of what it
// asks for now.
func ReadyChanges(target *GitTarget, report Report) bool {
	ready := meta.FindStatusCondition(target.Status.Conditions, ConditionReady)
	if ready == nil || ready.ObservedGeneration != target.Generation {
		return true
	}
	if problem := gravest(report); problem != nil {
		return ready.Reason != problem.Reason
	}
	return ready.Status != metav1.ConditionTrue
}

// tell makes the Events: a warning for each condition that waits for a person, and a note when one no longer does.
func (c *Client) tell(ctx context.Context, target *GitTarget, before, after []metav1.Condition, now time.Time) error {
	var failed error
	for _, kind := range []string{ConditionReady, ConditionAttributed} {
		is, was := meta.FindStatusCondition(after, kind), meta.FindStatusCondition(before, kind)
		switch {
		case is == nil || passes[is.Reason]:
		case is.Status == metav1.ConditionFalse:
			failed = errors.Join(failed, c.emit(ctx, target, "Warning", is.Reason, is.Message, now))
		case was != nil && was.Status == metav1.ConditionFalse && !passes[was.Reason]:
			failed = errors.Join(failed, c.emit(ctx, target, "Normal", is.Reason, is.Message, now))
		}
	}
	return failed
}

// TellReplaced makes an Event about files that somebody else had changed in git, as commit has them, and that the target
// has replaced. The same again makes no second one.
func (c *Client) TellReplaced(ctx context.Context, target *GitTarget, commit string, paths []string) error {
	more := ""
	if len(paths) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(paths)-maxNamed)
	}
	note := fmt.Sprintf("newer changes of the cluster have replaced what somebody else had changed in git. Commit %s still has it: %s%s", commit, strings.Join(paths[:min(len(paths), maxNamed)], ", "), more)
	return c.emit(ctx, target, "Warning", ReasonForeignChangesReplaced, cut(note), c.now())
}

// passes are the reasons that go away without anybody doing something.
var passes = map[string]bool{ReasonThrottled: true, ReasonClusterUnreachable: true, ReasonFactsLate: true}

func nextStatus(target *GitTarget, report Report, now time.Time) GitTargetStatus {
	status := GitTargetStatus{
		ObservedGeneration: target.Generation,
		Conditions:         append([]metav1.Condition(nil), target.Status.Conditions...),
		LastCommit:         target.Status.LastCommit,
		Shards:             report.Shards,
	}
	if report.LastCommit != nil {
		status.LastCommit = report.LastCommit
	}
	set := func(kind string, state metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: reason, Message: cut(message),
			ObservedGeneration: target.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	switch problem := gravest(report); {
	case problem != nil:
		set(ConditionReady, metav1.ConditionFalse, problem.Reason, problem.Message)
	default:
		set(ConditionReady, metav1.ConditionTrue, ReasonMirroring, fmt.Sprintf("mirrors %d of its resources to branch %s", len(target.Watched()), target.Spec.Repository.Branch))
	}
	switch report.Attribution {
	case "":
	case ReasonFactsArrive:
		set(ConditionAttributed, metav1.ConditionTrue, ReasonFactsArrive, fmt.Sprintf("facts arrive on audit route %s", target.Spec.AuditRoute))
	case ReasonNoFacts:
		set(ConditionAttributed, metav1.ConditionFalse, ReasonNoFacts,
			fmt.Sprintf("no audit fact has ever arrived on route %s, so no change has an author: check the API server's audit webhook and its token", target.Spec.AuditRoute))
	default:
		late := ""
		if report.Late > 0 {
			late = fmt.Sprintf(" The latest fact missed the grace by %s.", report.Late.Round(time.Second))
		}
		set(ConditionAttributed, metav1.ConditionFalse, report.Attribution, fmt.Sprintf("a change went without an author although facts arrive on route %s: "+
			"the API server's --audit-webhook-batch-max-wait must be well below the grace (spec.attributionGrace, else ATTRIBUTION_GRACE), and its audit policy must leave out no writer.%s", target.Spec.AuditRoute, late))
	}
	if target.SkipsSecrets() {
		set(ConditionSecretsSkipped, metav1.ConditionTrue, "NeverPlaintext", "Secrets are not watched and not written: a repository is no place for them")
	} else {
		meta.RemoveStatusCondition(&status.Conditions, ConditionSecretsSkipped)
	}
	return status
}

// gravest is what keeps the target from being ready. A resource that may not be watched and one that is not served are
// told together, as both are mended in the cluster.
func gravest(report Report) *Problem {
	p := report.Problem
	if len(report.NotServed) == 0 || p != nil && p.Reason != ReasonResourceForbidden {
		return p
	}
	all := make([]string, len(report.NotServed))
	for i, n := range report.NotServed {
		all[i] = n.Error()
	}
	if p != nil {
		return &Problem{Reason: p.Reason, Message: p.Message + "; " + strings.Join(all, "; ")}
	}
	return &Problem{Reason: ReasonResourceNotServed, Message: strings.Join(all, "; ") + ". Everything else is mirrored"}
}

// needsWrite leaves out a write that would only make times newer, when they are new enough.
func needsWrite(before, after GitTargetStatus, now time.Time) bool {
	if !sameWords(before, after) {
		return true
	}
	for _, s := range before.Shards {
		if s.CursorTime == nil || now.Sub(s.CursorTime.Time) >= statusRefresh {
			return len(after.Shards) > 0
		}
	}
	return false
}

func sameWords(a, b GitTargetStatus) bool {
	return string(withoutTimes(a)) == string(withoutTimes(b))
}

func withoutTimes(s GitTargetStatus) []byte {
	shards := append([]ShardStatus(nil), s.Shards...)
	for i := range shards {
		shards[i].CursorTime, shards[i].Lag = nil, nil
	}
	s.Shards = shards
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain data
	}
	return raw
}

// CommitOutcome is what became of a CommitRequest. The reason is one of those of Committed.
type CommitOutcome struct {
	Reason  string
	Message string
	SHA     string
	Author  string
}

// ReportCommitRequest writes the request's status; a request that is gone meanwhile is no error.
func (c *Client) ReportCommitRequest(ctx context.Context, request *CommitRequest, outcome CommitOutcome) error {
	state := metav1.ConditionFalse
	switch outcome.Reason {
	case ReasonPushed:
		state = metav1.ConditionTrue
	case ReasonWaiting:
		state = metav1.ConditionUnknown
	}
	status := CommitRequestStatus{Conditions: append([]metav1.Condition(nil), request.Status.Conditions...), SHA: outcome.SHA, Author: outcome.Author}
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionCommitted, Status: state, Reason: outcome.Reason, Message: cut(outcome.Message),
		ObservedGeneration: request.Generation, LastTransitionTime: metav1.NewTime(c.now().Truncate(time.Second)),
	})
	if !changed && status.SHA == request.Status.SHA && status.Author == request.Status.Author {
		return nil
	}
	if err := c.patchStatus(ctx, CommitRequests, request.Namespace, request.Name, request.UID, status); err != nil {
		return fmt.Errorf("write the status of CommitRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	return nil
}

// patchStatus replaces the status of the very object that was read: another one under its name is left alone.
func (c *Client) patchStatus(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID, status any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	_, err = c.dynamic.Resource(gvr).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || isFailedTest(err) {
		return nil
	}
	return err
}

// isFailedTest recognizes the answer to a JSON patch whose test does not hold: 422 without a field of the object.
func isFailedTest(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

// emit tells people. The name is made of what is told, so a second telling within the Event's life changes nothing.
func (c *Client) emit(ctx context.Context, target *GitTarget, kind, reason, note string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sum := sha256.Sum256([]byte(string(target.UID) + "\x00" + reason + "\x00" + note))
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion":          "events.k8s.io/v1",
		"kind":                "Event",
		"metadata":            map[string]any{"namespace": eventNamespace, "name": target.Name + "." + hex.EncodeToString(sum[:8])},
		"eventTime":           now.UTC().Format(metav1.RFC3339Micro),
		"reportingController": Group + "/" + c.component,
		"reportingInstance":   c.component,
		"action":              "Mirror",
		"reason":              reason,
		"note":                note,
		"type":                kind,
		"regarding": map[string]any{
			"apiVersion": Group + "/" + Version, "kind": "GitTarget", "name": target.Name, "uid": string(target.UID),
		},
	}}
	_, err := c.dynamic.Resource(eventsResource).Namespace(eventNamespace).Create(ctx, event, metav1.CreateOptions{FieldManager: c.component})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("tell about GitTarget %s in an Event: %w", target.Name, err)
	}
	return nil
}

func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
