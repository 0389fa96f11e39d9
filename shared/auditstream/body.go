package auditstream

import "github.com/tidemark-dev/tidemark/shared/attribution"

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
	switch d.open('{') {
	case broken:
		return false
	case null, another:
		return true
	}
	var bad bodyFaults
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok {
			return false
		}
		if !more {
			break
		}
		switch bodyNames.field(name) {
		case bodyKind:
			ok = d.readString(&body.Kind, &bad.identity)
		case bodyMetadata:
			ok = d.readMetadata(body, &bad.identity)
		case bodyDetails:
			ok = d.readDetails(&body.DetailsUID, &bad.details, false)
		case bodyDryRun:
			ok = d.readDryRun(&body.DryRun, &bad.dryRun)
		case bodyItems:
			ok = d.readItems(body, &bad.items)
		default:
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
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
	return true
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
	switch d.open('{') {
	case broken:
		return false
	case another:
		*bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok || !more {
			return ok
		}
		switch metadataNames.field(name) {
		case metadataNamespace:
			ok = d.readString(&body.Namespace, bad)
		case metadataName:
			ok = d.readString(&body.Name, bad)
		case metadataUID:
			ok = d.readString(&body.UID, bad)
		case metadataResourceVersion:
			ok = d.readString(&body.ResourceVersion, bad)
		case metadataDeletionTimestamp:
			var at string
			ok = d.readString(&at, bad)
			body.Deleting = at != ""
		default:
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
}

// readDryRun reads whether a list of strings has any.
func (d *Decoder) readDryRun(dryRun, bad *bool) bool {
	*dryRun = false
	switch d.open('[') {
	case broken:
		return false
	case another:
		*bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		more, ok := d.element(began)
		if !ok || !more {
			return ok
		}
		*dryRun = true
		switch d.token() {
		case '"', 'n':
		default:
			*bad = true
		}
		if !d.skip() {
			return false
		}
	}
}

// readItems reads the members of a collection, which count for a deletecollection only.
func (d *Decoder) readItems(body *attribution.Body, bad *bool) bool {
	if d.event.Verb != verbDeleteCollection && d.event.Verb != "" {
		d.sawOther = true
		return d.skip()
	}
	body.Items = nil
	switch d.open('[') {
	case broken:
		return false
	case another:
		*bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		more, ok := d.element(began)
		if !ok || !more {
			return ok
		}
		if d.text.size-d.textBefore > maxEventText {
			if !d.skip() { // the event is too large to be kept
				return false
			}
			continue
		}
		var item attribution.Item
		if !d.readItem(&item, bad) {
			return false
		}
		d.text.size += itemSize
		body.Items = append(body.Items, item)
	}
}

// itemSize is what a member takes beside its text, in a list that grows by doubling.
const itemSize = 96

var itemNames = fields("metadata")

func (d *Decoder) readItem(item *attribution.Item, bad *bool) bool {
	switch d.open('{') {
	case broken:
		return false
	case another:
		*bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok || !more {
			return ok
		}
		if itemNames.field(name) == 0 {
			ok = d.readItemMetadata(item, bad)
		} else {
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
}

func (d *Decoder) readItemMetadata(item *attribution.Item, bad *bool) bool {
	switch d.open('{') {
	case broken:
		return false
	case another:
		*bad = true
		return true
	case null:
		return true
	}
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok || !more {
			return ok
		}
		switch metadataNames.field(name) {
		case metadataNamespace:
			ok = d.readString(&item.Namespace, bad)
		case metadataName:
			ok = d.readString(&item.Name, bad)
		case metadataUID:
			ok = d.readString(&item.UID, bad)
		default:
			ok = d.skip()
		}
		if !ok {
			return false
		}
	}
}
