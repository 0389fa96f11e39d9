package auditstream

import (
	"strings"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

var bodyNames = fields("kind", "metadata", "details", "dryRun", "items")

const (
	bodyKind = iota
	bodyMetadata
	bodyDetails
	bodyDryRun
	bodyItems
)

// bodyFaults tells which parts of a body have a value of the wrong type. Without its identity a body is as none; the
// other parts mean something only in objects of certain kinds, and are left out one by one.
type bodyFaults struct{ identity, details, dryRun, items bool }

// readBody reads what a requestObject or responseObject says about identity. One that is no object is as none.
func (d *Decoder) readBody(body *attribution.Body) bool {
	*body = attribution.Body{}
	var bad bodyFaults
	what := d.object(&bad.identity, func(name []byte) bool {
		switch bodyNames.field(name) {
		case bodyKind:
			return d.readString(&body.Kind, &bad.identity)
		case bodyMetadata:
			return d.readMetadata(body, &bad.identity)
		case bodyDetails:
			return d.readDetails(&body.DetailsUID, &bad.details, false)
		case bodyDryRun:
			return d.readDryRun(&body.DryRun, &bad.dryRun)
		case bodyItems:
			return d.readItems(body, &bad.items)
		default:
			return d.skip()
		}
	})
	if bad.identity {
		*body = attribution.Body{}
	}
	if bad.details {
		body.DetailsUID = ""
	}
	if bad.dryRun {
		body.DryRun = false
	}
	if bad.items {
		body.Items = nil
	}
	return what != broken
}

var metadataNames = fields("namespace", "name", "uid", "resourceVersion", "deletionTimestamp")

const (
	metadataNamespace = iota
	metadataName
	metadataUID
	metadataResourceVersion
	metadataDeletionTimestamp
)

func (d *Decoder) readMetadata(body *attribution.Body, bad *bool) bool {
	return d.object(bad, func(name []byte) bool {
		switch metadataNames.field(name) {
		case metadataNamespace:
			return d.readString(&body.Namespace, bad)
		case metadataName:
			return d.readString(&body.Name, bad)
		case metadataUID:
			return d.readString(&body.UID, bad)
		case metadataResourceVersion:
			return d.readString(&body.ResourceVersion, bad)
		case metadataDeletionTimestamp:
			var at string
			ok := d.readString(&at, bad)
			body.Deleting = at != ""
			return ok
		default:
			return d.skip()
		}
	}) != broken
}

// readDryRun reads whether a list of strings has any.
func (d *Decoder) readDryRun(dryRun, bad *bool) bool {
	*dryRun = false
	return d.array(bad, func(bool) bool {
		*dryRun = true
		if c := d.token(); c != '"' && c != 'n' {
			*bad = true
		}
		return d.skip()
	}) != broken
}

// readItems reads the members of a collection, which count for a deletecollection only.
func (d *Decoder) readItems(body *attribution.Body, bad *bool) bool {
	if d.event.Verb != "" && !strings.EqualFold(d.event.Verb, verbDeleteCollection) {
		d.sawOther = true
		return d.skip()
	}
	body.Items = nil
	return d.array(bad, func(bool) bool {
		if d.text.size-d.textBefore > maxEventText {
			return d.skip() // the event is too large to be kept
		}
		var item attribution.Item
		if !d.readItem(&item, bad) {
			return false
		}
		d.text.size += itemSize
		body.Items = append(body.Items, item)
		return true
	}) != broken
}

// itemSize is what a member takes beside its text, in a list that grows by doubling.
const itemSize = 96

var itemNames = fields("metadata")

func (d *Decoder) readItem(item *attribution.Item, bad *bool) bool {
	return d.object(bad, func(name []byte) bool {
		if itemNames.field(name) != 0 {
			return d.skip()
		}
		return d.readItemMetadata(item, bad)
	}) != broken
}

func (d *Decoder) readItemMetadata(item *attribution.Item, bad *bool) bool {
	return d.object(bad, func(name []byte) bool {
		switch metadataNames.field(name) {
		case metadataNamespace:
			return d.readString(&item.Namespace, bad)
		case metadataName:
			return d.readString(&item.Name, bad)
		case metadataUID:
			return d.readString(&item.UID, bad)
		default:
			return d.skip()
		}
	}) != broken
}
