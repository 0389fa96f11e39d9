package attribution

import "strings"

// Reason is what became of an audit event: a bounded vocabulary for answers and metrics.
type Reason string

// The reasons. Admit gives the first six or, for an event that passes, none; whoever stores the
// facts adds the rest. Of an event with ReasonNoFact that names an object it is still kept that its
// request happened, which is weaker evidence than a fact.
const (
	ReasonSubresource     Reason = "subresource"
	ReasonStage           Reason = "stage"
	ReasonVerb            Reason = "read_only_or_unknown_verb"
	ReasonFailedRequest   Reason = "failed_request"
	ReasonDryRun          Reason = "dry_run"
	ReasonUnchanged       Reason = "unchanged_resource_version"
	ReasonMissingRoute    Reason = "missing_cluster_annotation"
	ReasonStored          Reason = "stored"
	ReasonNoFact          Reason = "no_fact"
	ReasonEventTooLarge   Reason = "event_too_large"
	ReasonEventMalformed  Reason = "event_malformed"
	reasonAdmitted        Reason = ""
	stageResponseComplete        = "ResponseComplete"
	firstFailureCode             = 300
)

// Reasons lists every reason, for metrics that start at zero.
func Reasons() []Reason {
	return []Reason{
		ReasonSubresource, ReasonStage, ReasonVerb, ReasonFailedRequest, ReasonDryRun, ReasonUnchanged,
		ReasonMissingRoute, ReasonStored, ReasonNoFact, ReasonEventTooLarge, ReasonEventMalformed,
	}
}

// Admit is the ingest gate. It returns the first reason to leave the event out, or "" when the event
// may prove who wrote something. It does not look at the route.
func Admit(e *Event) Reason {
	_, known := mutating(e.Verb)
	switch {
	case e.Object.Subresource != "" && (!known || !ownsVersion(&e.Response)):
		return ReasonSubresource
	case e.Stage != stageResponseComplete:
		return ReasonStage
	case !known:
		return ReasonVerb
	case e.Code >= firstFailureCode:
		return ReasonFailedRequest
	case isDryRun(e):
		return ReasonDryRun
	case e.Request.ResourceVersion != "" && precondition(e.Request.ResourceVersion) == e.Response.ResourceVersion:
		return ReasonUnchanged
	}
	return reasonAdmitted
}

// ownsVersion tells whether the answer to a subresource write is the parent, or carries its uid and
// its new version (Scale): then the write owns that version. Answers to token, eviction and binding
// do not.
func ownsVersion(b *Body) bool { return b.UID != "" && b.ResourceVersion != "" }

// The verbs that change something.
const (
	verbCreate           = "create"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

// mutating normalises a verb and tells whether it is one that changes something.
func mutating(verb string) (string, bool) {
	switch verb {
	case verbCreate, verbUpdate, verbPatch, verbDelete, verbDeleteCollection:
		return verb, true
	}
	for _, v := range []string{verbCreate, verbUpdate, verbPatch, verbDelete, verbDeleteCollection} {
		if strings.EqualFold(v, verb) {
			return v, true
		}
	}
	return verb, false
}

// isDryRun finds dryRun in the request's URI and, for deletes and evictions, in the DeleteOptions of the
// body, where kubectl puts it.
func isDryRun(e *Event) bool {
	if e.Request.DryRun && (e.Object.Subresource == subresourceEviction ||
		strings.EqualFold(e.Verb, verbDelete) || strings.EqualFold(e.Verb, verbDeleteCollection)) {
		return true
	}
	_, query, found := strings.Cut(e.RequestURI, "?")
	return found && queryValue(query, "dryRun") != ""
}
