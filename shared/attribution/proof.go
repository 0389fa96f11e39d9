package attribution

import (
	"strings"
	"time"
)

// Slots tells under which keys a proof is filed.
type Slots uint8

// The slots of the keyspace.
const (
	SlotExact    Slots = 1 << iota // uid and the written version
	SlotLast                       // uid: the latest write, or the deletion
	SlotVersion                    // the written version alone, when the event does not show the uid
	SlotDeletion                   // uid, whatever the resource: the deletion, for those it draws along
	SlotName                       // namespace and name: a Request
	SlotScope                      // the collection: a Request
)

// Deletion is what a delete did to its object.
type Deletion string

// A delete answered with a Status removed the object. One answered with the object only started the
// removal (finalizers, grace period); so did, for all we know, a collection delete for each member.
const (
	DeletionNone    Deletion = ""
	DeletionStarted Deletion = "started"
	DeletionFinal   Deletion = "final"
)

// Proof is what one audit event proves about one object.
type Proof struct {
	Slots    Slots
	Fact     Fact
	Received time.Time
	Staged   time.Time
	// Skew is what the clocks of the sender may differ by. Prove does not know it.
	Skew     time.Duration
	Deletion Deletion
	// Deleting tells that the written version carries a deletionTimestamp.
	Deleting bool
	// Unverified marks a delete whose event has no bodies: it may have been a dry run.
	Unverified bool
	// Created tells that the request made the object, Proven that it cannot have left the object as it was.
	Created, Proven bool

	// What a Request says beyond the fact.
	Manager, Replaces            string
	LabelSelector, FieldSelector string
}

const serviceAccountPrefix = "system:serviceaccount:"

// Prove appends what the event proves to dst. An event that names no resource, no object or nobody
// proves nothing, nor does a dry run; beyond that Prove does not ask whether Admit let the event in.
func Prove(dst []Proof, e *Event) []Proof {
	user := &e.User
	if e.Impersonated.Username != "" {
		user = &e.Impersonated
	}
	if e.Object.Resource == "" || user.Username == "" || isDryRun(e) {
		return dst
	}
	verb, known := mutating(e.Verb)
	if !known {
		verb = e.Verb
	}
	p := Proof{
		Fact: Fact{
			GroupResource:    GroupResource(e.Object.Group, e.Object.Resource),
			Author:           user.Username,
			DisplayName:      user.DisplayName,
			Email:            user.Email,
			Verb:             e.Verb,
			Subresource:      e.Object.Subresource,
			AuditID:          e.AuditID,
			IsServiceAccount: strings.HasPrefix(user.Username, serviceAccountPrefix),
		},
		Received: e.Received,
		Staged:   e.Staged,
	}
	if user == &e.Impersonated {
		p.Fact.ImpersonatedBy = e.User.Username
	}
	if !e.Staged.IsZero() {
		p.Fact.StageTimestamp = e.Staged.UTC().Format(time.RFC3339Nano)
	}
	if p.Received.IsZero() || p.Received.After(p.Staged) {
		p.Received = p.Staged
	}
	if verb == verbDeleteCollection {
		return proveCollection(dst, e, &p)
	}
	return proveObject(dst, e, verb, &p)
}

// proveCollection proves the deletion of each listed item or, where the answer is no list because none was
// recorded, what the request asked for.
func proveCollection(dst []Proof, e *Event, p *Proof) []Proof {
	p.Fact.Verb = verbDeleteCollection
	p.Fact.Subresource = ""
	if len(e.Response.Items) == 0 && !strings.HasSuffix(e.Response.Kind, "List") {
		if !e.succeeded() {
			return dst
		}
		p.Slots = SlotScope
		p.Fact.Namespace = e.Object.Namespace
		p.Unverified = !e.Request.Present() && !e.Response.Present()
		if _, query, found := strings.Cut(e.RequestURI, "?"); found {
			p.LabelSelector, p.FieldSelector = queryValue(query, "labelSelector"), queryValue(query, "fieldSelector")
		}
		return append(dst, *p)
	}
	p.Slots, p.Deletion = SlotLast|SlotDeletion, DeletionStarted
	for i := range e.Response.Items {
		item := &e.Response.Items[i]
		if item.Name == "" || item.UID == "" {
			continue
		}
		p.Fact.Namespace, p.Fact.Name, p.Fact.UID = item.Namespace, item.Name, item.UID
		dst = append(dst, *p)
	}
	return dst
}

func proveObject(dst []Proof, e *Event, verb string, p *Proof) []Proof {
	f := &p.Fact
	f.Namespace, f.Name, f.UID = e.identity(verb)
	if f.Name == "" {
		return dst
	}
	answer := &e.Response
	if answer.Kind != kindStatus {
		f.ResourceVersion = answer.ResourceVersion
		p.Deleting = answer.Deleting
	}
	if verb == verbDelete {
		p.Deletion = DeletionFinal
		if answer.UID != "" && answer.Kind != kindStatus {
			p.Deletion = DeletionStarted
		}
		p.Unverified = !e.Request.Present() && !answer.Present()
	} else {
		p.Manager = manager(e)
		p.Created = e.Code == codeCreated && e.Object.Subresource == ""
		p.Proven = p.Created || replacedKnown(e)
	}
	switch {
	case e.Object.Subresource != "" && e.Object.Subresource != subresourceScale && (f.UID == "" || f.ResourceVersion == ""):
	case f.UID != "" && f.ResourceVersion != "":
		p.Slots = SlotExact | SlotLast
	case f.UID != "":
		p.Slots = SlotLast
	case f.ResourceVersion != "":
		p.Slots = SlotVersion
	}
	if p.Deletion != DeletionNone && f.UID != "" {
		p.Slots |= SlotDeletion
	}
	if e.succeeded() && byName(e, verb, p) {
		p.Slots |= SlotName
		p.Replaces = precondition(e.Object.ResourceVersion)
	}
	if p.Slots == 0 {
		return dst
	}
	return append(dst, *p)
}

const (
	kindStatus  = "Status"
	codeCreated = 201
)

// byName tells whether the event is also filed as a Request under the object's name: it does not show
// which version it wrote or, for a delete, which object it removed, or whether it did. Namespaces and CRDs are filed always,
// as their deletion draws objects along that know them by name only.
func byName(e *Event, verb string, p *Proof) bool {
	f := &p.Fact
	if e.Object.Subresource == "" && (f.GroupResource == resourceNamespaces || f.GroupResource == resourceCRDs) {
		return p.Created || verb == verbDelete || f.ResourceVersion == ""
	}
	if withoutWrite[e.Object.Subresource] || f.ResourceVersion != "" {
		return false
	}
	return verb != verbDelete || f.UID == "" || p.Unverified
}

const (
	resourceNamespaces = "namespaces"
	resourceCRDs       = "apiextensions.k8s.io/customresourcedefinitions"
)

// succeeded tells whether the event is the last of a request that did something. Events that were built
// without a stage or a code pass.
func (e *Event) succeeded() bool {
	_, known := mutating(e.Verb)
	return known && e.Code < firstFailureCode && (e.Stage == "" || e.Stage == stageResponseComplete)
}

// replacedKnown tells whether the request named the version that it replaced and was answered with another.
func replacedKnown(e *Event) bool {
	replaced := precondition(firstOf(e.Request.ResourceVersion, e.Object.ResourceVersion))
	return replaced != "" && e.Response.ResourceVersion != "" && replaced != e.Response.ResourceVersion
}

// precondition is the version that a request's body names, as the API server takes it: as a number, of which 0 is none.
func precondition(version string) string { return strings.TrimLeft(version, "0") }

// identity is objectRef's, its gaps filled from the bodies: for a delete the request speaks before
// the answer, for everything else the answer first, because only it knows a generated name. A plain
// delete's uid is in the details of its Status.
func (e *Event) identity(verb string) (namespace, name, uid string) {
	first, second := &e.Response, &e.Request
	if verb == verbDelete {
		first, second = second, first
	}
	o := &e.Object
	namespace = firstOf(o.Namespace, first.Namespace, second.Namespace)
	name = firstOf(o.Name, first.Name, second.Name)
	uid = firstOf(o.UID, first.UID, second.UID)
	if verb == verbDelete {
		uid = firstOf(uid, e.Response.DetailsUID, e.StatusUID)
	}
	return namespace, name, uid
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// NameNamespace is the namespace under which a Request is filed by name. The API server calls a Namespace its
// own namespace in audit events; an object does not.
func (p *Proof) NameNamespace() string {
	if p.Fact.GroupResource == resourceNamespaces {
		return ""
	}
	return p.Fact.Namespace
}
