package auditstream

import (
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

var eventNames = fields("level", "auditID", "stage", "requestURI", "verb", "user", "impersonatedUser", "userAgent", "objectRef",
	"responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp", "annotations")

const (
	eventLevel = iota
	eventAuditID
	eventStage
	eventRequestURI
	eventVerb
	eventUser
	eventImpersonatedUser
	eventUserAgent
	eventObjectRef
	eventResponseStatus
	eventRequestObject
	eventResponseObject
	eventReceived
	eventStaged
	eventAnnotations
)

// readEvent reads an event into d.event. It is not ok when the text makes no sense; d.depth brackets are then open.
// A value of the wrong type only marks the event bad.
func (d *Decoder) readEvent() bool {
	d.users[0].forget()
	d.users[1].forget()
	switch d.object(&d.bad, d.readMember) {
	case broken:
		return false
	case null:
		d.bad = true
	}
	e := d.event
	e.User.DisplayName, e.User.Email = d.users[0].chosen()
	e.Impersonated.DisplayName, e.Impersonated.Email = d.users[1].chosen()
	if !strings.EqualFold(e.Verb, verbDeleteCollection) {
		e.Request.Items, e.Response.Items = nil, nil
	} else if d.sawOther {
		d.bad = true // two verbs: the members were passed over
	}
	return true
}

const verbDeleteCollection = "deletecollection"

func (d *Decoder) readMember(name []byte) bool {
	e := d.event
	switch eventNames.field(name) {
	case eventLevel:
		return d.readString(&e.Level, &d.bad)
	case eventAuditID:
		return d.readString(&e.AuditID, &d.bad)
	case eventStage:
		return d.readString(&e.Stage, &d.bad)
	case eventRequestURI:
		return d.readString(&e.RequestURI, &d.bad)
	case eventVerb:
		return d.readString(&e.Verb, &d.bad)
	case eventUserAgent:
		return d.readString(&e.UserAgent, &d.bad)
	case eventUser:
		return d.readUser(&e.User, &d.users[0], false)
	case eventImpersonatedUser:
		return d.readUser(&e.Impersonated, &d.users[1], true)
	case eventObjectRef:
		return d.readObjectRef()
	case eventResponseStatus:
		return d.readStatus()
	case eventRequestObject:
		return d.readBody(&e.Request)
	case eventResponseObject:
		return d.readBody(&e.Response)
	case eventReceived:
		return d.readInstant(&e.Received)
	case eventStaged:
		return d.readInstant(&e.Staged)
	case eventAnnotations:
		if d.opts.RouteAnnotation == "" {
			return d.skip()
		}
		return d.readAnnotations()
	default:
		return d.skip()
	}
}

// readString reads a string into dst; null leaves it, another type sets bad.
func (d *Decoder) readString(dst *string, bad *bool) bool {
	switch d.token() {
	case '"':
		d.pos++
		value, ok := d.stringRest()
		if !ok {
			return d.improper()
		}
		*dst = d.text.add(value)
		return true
	case 'n':
		return d.literal("null")
	default:
		*bad = true
		return d.skip()
	}
}

// improper deals with a string that could not be read: too long, or with a bad escape. It is passed, unless the text ends.
func (d *Decoder) improper() bool {
	if d.pos == d.end && d.err != nil {
		return false
	}
	d.bad = true
	return true
}

func (d *Decoder) readInstant(dst *time.Time) bool {
	switch d.token() {
	case '"':
		d.pos++
		value, ok := d.stringRest()
		if !ok {
			return d.improper()
		}
		t, ok := instant(value)
		if !ok {
			d.bad = true
		}
		*dst = t
		return true
	case 'n':
		*dst = time.Time{}
		return d.literal("null")
	default:
		d.bad = true
		return d.skip()
	}
}

var userNames = fields("username", "extra")

const (
	userUsername = iota
	userExtra
)

// readUser reads a user. Null forgets it where the reference has a pointer.
func (d *Decoder) readUser(user *attribution.User, extras *extras, pointer bool) bool {
	what := d.object(&d.bad, func(name []byte) bool {
		switch userNames.field(name) {
		case userUsername:
			return d.readString(&user.Username, &d.bad)
		case userExtra:
			return d.readExtras(extras)
		default:
			return d.skip()
		}
	})
	if what == null && pointer {
		*user = attribution.User{}
		extras.forget()
	}
	return what != broken
}

var refNames = fields("resource", "namespace", "name", "uid", "apiGroup", "resourceVersion", "subresource")

const (
	refResource = iota
	refNamespace
	refName
	refUID
	refAPIGroup
	refResourceVersion
	refSubresource
)

func (d *Decoder) readObjectRef() bool {
	ref := &d.event.Object
	what := d.object(&d.bad, func(name []byte) bool {
		switch refNames.field(name) {
		case refResource:
			return d.readString(&ref.Resource, &d.bad)
		case refNamespace:
			return d.readString(&ref.Namespace, &d.bad)
		case refName:
			return d.readString(&ref.Name, &d.bad)
		case refUID:
			return d.readString(&ref.UID, &d.bad)
		case refAPIGroup:
			return d.readString(&ref.Group, &d.bad)
		case refResourceVersion:
			return d.readString(&ref.ResourceVersion, &d.bad)
		case refSubresource:
			return d.readString(&ref.Subresource, &d.bad)
		default:
			return d.skip()
		}
	})
	if what == null {
		*ref = attribution.ObjectRef{}
	}
	return what != broken
}

var statusNames = fields("code", "details")

const (
	statusCode = iota
	statusDetails
)

func (d *Decoder) readStatus() bool {
	e := d.event
	what := d.object(&d.bad, func(name []byte) bool {
		switch statusNames.field(name) {
		case statusCode:
			return d.readCode()
		case statusDetails:
			return d.readDetails(&e.StatusUID, &d.bad, true)
		default:
			return d.skip()
		}
	})
	if what == null {
		e.Code, e.StatusUID = 0, ""
	}
	return what != broken
}

func (d *Decoder) readCode() bool {
	switch c := d.token(); {
	case c == 'n':
		return d.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		code, ok := d.integer()
		if !ok {
			d.bad = true
		}
		d.event.Code = code
		return d.pos < d.end || d.err == nil
	default:
		d.bad = true
		return d.skip()
	}
}

var detailsNames = fields("uid")

// readDetails reads the uid of a Status' details. Null forgets it where the reference has a pointer.
func (d *Decoder) readDetails(uid *string, bad *bool, pointer bool) bool {
	what := d.object(bad, func(name []byte) bool {
		if detailsNames.field(name) != 0 {
			return d.skip()
		}
		return d.readString(uid, bad)
	})
	if what == null && pointer {
		*uid = ""
	}
	return what != broken
}

func (d *Decoder) readAnnotations() bool {
	what := d.object(&d.bad, func(name []byte) bool {
		if string(name) != d.opts.RouteAnnotation {
			return d.skip()
		}
		d.event.Route = ""
		return d.readString(&d.event.Route, &d.bad)
	})
	if what == null {
		d.event.Route = ""
	}
	return what != broken
}
