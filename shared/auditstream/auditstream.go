// Package auditstream decodes the audit events of a POST while they arrive, reduced to what the rules of attribution
// read.
//
// It takes what an API server's audit webhook sends, an audit.k8s.io/v1 EventList, plain or gzipped. Specs, data and
// managedFields are passed over without being kept, so an event costs the memory of its few names, however large it is.
// The result is that of encoding/json into auditv1.EventList followed by kubeaudit.Event; for what these refuse it may be
// more lenient. An event that is malformed or too large costs itself only: decoding goes on behind it.
//
// The package knows neither rules nor routes, and it does not import Kubernetes' types.
package auditstream

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// Errors of a body as a whole.
var (
	ErrBodyTooLarge = errors.New("the body is too large")
	ErrNotEvents    = errors.New("the body must be a JSON EventList of audit.k8s.io/v1")
	ErrEncoding     = errors.New("the content encoding must be gzip or none")
)

// maxEventText bounds the text that is kept of one event: names, and the members of a collection.
const maxEventText = 4 << 20

// Options of decoding.
type Options struct {
	// MaxEventBytes and MaxBodyBytes are limits on the JSON text, unpacked; 0 means none.
	MaxEventBytes, MaxBodyBytes int64
	// ExtraKeys names the user extras to read.
	ExtraKeys attribution.ExtraKeys
	// RouteAnnotation is the annotation that holds an event's route; empty for none.
	RouteAnnotation string
}

// Decoder reads the events of one body after another. It is for one goroutine.
type Decoder struct {
	scanner
	opts  Options
	gzip  *gzip.Reader
	state state
	text  text
	users [2]extras // of the event being read: user, impersonatedUser

	event      *attribution.Event
	start      int64 // offset of the event
	textBefore int   // text kept before it
	bad        bool  // a value of the event has the wrong type
	sawOther   bool  // a body was read while the verb was not deletecollection
}

type state int

const (
	before state = iota // before the list of events
	first               // in the list, before its first event
	within              // in the list, behind an event
	after               // behind the list
)

// NewDecoder returns a Decoder that must be Reset before use.
func NewDecoder() *Decoder { return &Decoder{} }

// Reset begins with a new body. Strings of events read before are no longer valid.
func (d *Decoder) Reset(body io.Reader, contentEncoding string, opts Options) error {
	switch contentEncoding {
	case "", "identity":
	case "gzip":
		if err := d.unpack(body); err != nil {
			return err
		}
		body = d.gzip
	default:
		return ErrEncoding
	}
	d.reset(body, opts.MaxBodyBytes)
	d.opts, d.state = opts, before
	for i := range d.users {
		d.users[i].prepare(&d.opts.ExtraKeys)
	}
	d.Forget()
	return nil
}

func (d *Decoder) unpack(body io.Reader) (err error) {
	if d.gzip == nil {
		d.gzip, err = gzip.NewReader(body)
	} else {
		err = d.gzip.Reset(body)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotEvents, err)
	}
	return nil
}

// Close lets go of the body. The Decoder can be Reset again.
func (d *Decoder) Close() {
	d.src, d.event = nil, nil
	if len(d.buf) > window {
		d.buf = nil
	}
	d.Forget()
}

// Forget gives up the text of the events read so far: their strings are no longer valid.
func (d *Decoder) Forget() { d.text.forget() }

// TextBytes is the size of the text of the events read since Forget.
func (d *Decoder) TextBytes() int { return d.text.size }

// BodyBytes is how much of the body was read, unpacked.
func (d *Decoder) BodyBytes() int64 { return d.passed + int64(d.end) }

// Next reads the next event into e, overwriting it. Its strings are valid until Forget, Reset or Close. The reason is
// not empty for an event that could not be read: malformed or too large; e is then of no use. The error is io.EOF behind
// the last event, or tells what is wrong with the body as a whole.
func (d *Decoder) Next(e *attribution.Event) (attribution.Reason, error) {
	switch d.state {
	case before:
		if err := d.begin(); err != nil {
			return "", err
		}
		if d.state == after {
			return "", io.EOF
		}
	case after:
		return "", io.EOF
	}
	more, ok := d.separator()
	if !ok {
		return d.cut()
	}
	if !more {
		d.state = after
		return "", io.EOF
	}
	return d.item(e)
}

// begin reads up to the first event.
func (d *Decoder) begin() error {
	if !d.take('{') {
		return d.unreadable()
	}
	named := false
	for began := false; ; began = true {
		name, more, ok := d.member(began)
		if !ok {
			return d.unreadable()
		}
		if !more {
			if d.state = after; !named {
				return ErrNotEvents
			}
			return nil
		}
		switch string(name) {
		case "kind", "apiVersion":
			want := "EventList"
			if string(name) == "apiVersion" {
				want = "audit.k8s.io/v1"
			}
			value, isString := d.stringValue()
			if !isString || string(value) != want {
				return d.unreadable()
			}
			named = true
		case "items":
			if d.token() == 'n' && d.literal("null") {
				named = true
				continue
			}
			if !d.take('[') {
				return d.unreadable()
			}
			d.state = first
			return nil
		default:
			if !d.skip() {
				return d.unreadable()
			}
		}
	}
}

// unreadable is the error for a body that does not begin as a list of events does.
func (d *Decoder) unreadable() error {
	if d.err != nil && !errors.Is(d.err, io.EOF) {
		return d.err
	}
	return ErrNotEvents
}

// cut ends the list where its text makes no sense or ends early. What comes behind is counted as one malformed event;
// an error of the source itself is passed on.
func (d *Decoder) cut() (attribution.Reason, error) {
	d.state = after
	if d.err != nil && !errors.Is(d.err, io.EOF) {
		return "", d.err
	}
	return attribution.ReasonEventMalformed, nil
}

// separator passes what stands before the next event and reports whether there is one.
func (d *Decoder) separator() (more, ok bool) {
	c := d.token()
	switch {
	case c == ']':
		d.pos++
		return false, true
	case d.state == first:
		d.state = within
		return c != 0, c != 0
	case c == ',':
		d.pos++
		return true, true
	}
	return false, false
}

// item reads one event.
func (d *Decoder) item(e *attribution.Event) (attribution.Reason, error) {
	*e = attribution.Event{}
	d.event, d.start, d.textBefore = e, d.at(), d.text.size
	d.bad, d.sawOther, d.long = false, false, false
	d.depth = 0
	ok := d.readEvent()
	if !ok && !d.recover() {
		return d.cut()
	}
	size := d.at() - d.start
	switch {
	case d.opts.MaxEventBytes > 0 && size > d.opts.MaxEventBytes, d.long, d.text.size-d.textBefore > maxEventText:
		d.text.size = d.textBefore
		return attribution.ReasonEventTooLarge, nil
	case d.bad || !ok:
		d.text.size = d.textBefore
		return attribution.ReasonEventMalformed, nil
	}
	return "", nil
}

// recover passes what is left of an event that could not be read on.
func (d *Decoder) recover() bool {
	d.keep = -1
	return d.depth > 0 && d.leave(d.depth)
}
