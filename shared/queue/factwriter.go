package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// factWriter gathers the commands that file the proofs of one POST and sends them together. It keeps its
// memory from one POST to the next: commands, arguments and the text that they point into.
type factWriter struct {
	index  *AttributionIndex
	proofs []attribution.Proof
	text   []byte // keys, values and stamps of all commands, one behind the other
	puts   []factPut
	cmds   []*filingCmd
	routes []string // to be noted as heard
}

// factPut is one value for one key. Its strings are ranges of text, which may still move.
type factPut struct {
	what       string // see fileFactsSource, and so are the three more
	key, value span
	more       [3]span
}

type span struct{ from, to int }

// What to do with a value, by what it is.
const (
	putVersion      = "v0"
	putGoingVersion = "v1" // of a delete, for a version with a deletionTimestamp
	putLast         = "l0"
	putRemovalSaid  = "l1"
	putRemovalBegun = "l2"
	putRemovalDone  = "l3"
	putRequest      = "q0"
)

const (
	maxKeptText = 1 << 20 // a writer that grew beyond this is not kept
	maxKeptCmds = 256
)

func (a *AttributionIndex) writer() *factWriter {
	w := a.writers.Get().(*factWriter)
	w.index = a
	return w
}

func (a *AttributionIndex) release(w *factWriter) {
	if cap(w.text) > maxKeptText || len(w.cmds) > maxKeptCmds {
		return
	}
	clear(w.proofs)
	w.proofs, w.text, w.puts, w.routes = w.proofs[:0], w.text[:0], w.puts[:0], w.routes[:0]
	a.writers.Put(w)
}

// factSlots are those of gitops-reverser's three keys. What is filed elsewhere only is evidence, not a fact.
const factSlots = attribution.SlotExact | attribution.SlotLast | attribution.SlotVersion

// addEvent passes the event through the gate and adds what it proves. A write of a subresource that does
// not own a version is left out of the facts, but it is remembered that it happened.
func (w *factWriter) addEvent(route string, e *attribution.Event) attribution.Reason {
	reason := attribution.Admit(e)
	if reason != "" && reason != attribution.ReasonSubresource {
		return reason
	}
	if route == "" {
		route = e.Route
	}
	if route == "" {
		return firstReason(reason, attribution.ReasonMissingRoute)
	}
	w.proofs = attribution.Prove(w.proofs[:0], e)
	var filed attribution.Slots
	for i := range w.proofs {
		p := &w.proofs[i]
		filed |= p.Slots
		if reason == attribution.ReasonSubresource {
			p.Slots &= attribution.SlotName
		}
		w.add(route, p)
	}
	if len(w.proofs) == 0 {
		return firstReason(reason, attribution.ReasonNoFact)
	}
	w.hear(route)
	if filed&factSlots == 0 {
		return firstReason(reason, attribution.ReasonNoFact)
	}
	return firstReason(reason, attribution.ReasonStored)
}

func firstReason(a, b attribution.Reason) attribution.Reason {
	if a != "" {
		return a
	}
	return b
}

// add queues the writes of one proof.
func (w *factWriter) add(route string, p *attribution.Proof) {
	f, prefix := &p.Fact, w.index.prefix
	if p.Slots&(attribution.SlotExact|attribution.SlotVersion|attribution.SlotLast|attribution.SlotDeletion) != 0 {
		w.addRecord(route, p)
	}
	if p.Slots&(attribution.SlotName|attribution.SlotScope) == 0 {
		return
	}
	w.puts = append(w.puts, factPut{
		what:  putRequest,
		value: w.keep(func(b []byte) []byte { return attribution.AppendRequest(b, p) }),
		more:  [3]span{w.keep(func(b []byte) []byte { return strconv.AppendInt(b, p.Received.UnixMicro(), 10) })},
		key: w.keep(func(b []byte) []byte {
			if p.Slots&attribution.SlotScope != 0 {
				return appendScopeKey(b, prefix, route, f.GroupResource, f.Namespace)
			}
			return appendNameKey(b, prefix, route, f.GroupResource, p.NameNamespace(), f.Name)
		}),
	})
}

// maxRequests bounds what is kept of one name or collection.
const maxRequests = 128

func (w *factWriter) addRecord(route string, p *attribution.Proof) {
	f, prefix := &p.Fact, w.index.prefix
	p.Skew = w.index.skew
	put := factPut{
		value: w.keep(func(b []byte) []byte { return attribution.AppendRecord(b, p) }),
		more: [3]span{
			w.keep(func(b []byte) []byte { return appendInstant(b, p.Staged) }),
			w.keep(func(b []byte) []byte { return appendInstant(b, p.Received) }),
			w.keep(func(b []byte) []byte { return append(b, f.Author...) }),
		},
	}
	if p.Slots&(attribution.SlotExact|attribution.SlotVersion) != 0 {
		put.what = putVersion
		if p.Deleting && p.Deletion != attribution.DeletionNone {
			put.what = putGoingVersion
		}
		put.key = w.keep(func(b []byte) []byte {
			if p.Slots&attribution.SlotExact != 0 {
				return appendExactKey(b, prefix, route, f.GroupResource, f.UID, f.ResourceVersion)
			}
			return appendVersionKey(b, prefix, route, f.GroupResource, f.ResourceVersion)
		})
		w.puts = append(w.puts, put)
	}
	put.what = putLast
	switch p.Deletion {
	case attribution.DeletionStarted:
		put.what = putRemovalBegun
	case attribution.DeletionFinal:
		put.what = putRemovalDone
		if p.Unverified {
			put.what = putRemovalSaid
		}
	}
	if p.Slots&attribution.SlotLast != 0 {
		put.key = w.keep(func(b []byte) []byte { return appendLastKey(b, prefix, route, f.GroupResource, f.UID) })
		w.puts = append(w.puts, put)
	}
	if p.Slots&attribution.SlotDeletion != 0 {
		put.key = w.keep(func(b []byte) []byte { return appendDeletionKey(b, prefix, route, f.UID) })
		w.puts = append(w.puts, put)
	}
}

func (w *factWriter) keep(appendTo func([]byte) []byte) span {
	from := len(w.text)
	w.text = appendTo(w.text)
	return span{from, len(w.text)}
}

// flush sends everything in one round trip. A server that lost the scripts gets them in a second one.
func (w *factWriter) flush(ctx context.Context) error {
	if len(w.puts) == 0 {
		return nil
	}
	// Every argument is a part of the text, which stays as it is until the next POST: the client has written the
	// commands, or given them up, when it returns.
	text := unsafe.String(unsafe.SliceData(w.text), len(w.text))
	lost, err := w.send(ctx, w.cmds[:w.fill(text)])
	if err == nil && len(lost) > 0 {
		w.index.scripts.loaded.Store(false)
		lost, err = w.send(ctx, lost)
		if err == nil && len(lost) > 0 {
			err = errors.New("the server does not keep scripts")
		}
	}
	if err != nil {
		return fmt.Errorf("store attribution facts: %w", err)
	}
	w.index.scripts.loaded.Store(true)
	w.index.heard.note(w.routes, time.Now())
	return nil
}

// send executes the commands and returns those whose script the server did not have.
func (w *factWriter) send(ctx context.Context, cmds []*filingCmd) (lost []*filingCmd, err error) {
	pipe := w.index.client.Pipeline()
	if err := w.index.scripts.prepare(ctx, w.index.client, pipe); err != nil {
		return nil, err
	}
	for _, c := range cmds {
		c.cmd.SetErr(nil)
		_ = pipe.Process(ctx, c.cmd) // a pipeline only queues
	}
	w.noteRoutes(ctx, pipe)
	_, execErr := pipe.Exec(ctx)
	for _, c := range cmds {
		switch err := c.cmd.Err(); {
		case isNoScript(err):
			lost = append(lost, c)
		case err != nil:
			return nil, err
		default:
			w.index.alreadyClaimed.Add(uint64(c.claimsLost()))
		}
	}
	if execErr != nil && len(lost) == 0 {
		return nil, execErr
	}
	return lost, nil
}

// appendInstant renders an instant with all its digits, so that texts compare as instants do.
func appendInstant(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, "2006-01-02T15:04:05.000000000Z")
	}
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, t.Nanosecond(), 9), 'Z')
}

// appendDigits appends the last width digits of n.
func appendDigits(b []byte, n, width int) []byte {
	from := len(b)
	b = append(b, "000000000"[:width]...)
	for i := len(b) - 1; i >= from; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
