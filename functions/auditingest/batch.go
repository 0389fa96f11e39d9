package auditingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
)

// storeError marks an error of the store, as opposed to one of the body.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// batch decodes a post and stores its events. It is used again for other posts, so that a post of ordinary size needs no
// memory of its own.
type batch struct {
	f       *function
	route   string
	decoder *auditstream.Decoder
	events  []attribution.Event
	used    int // how many of events this post has used
	counts  counts
}

var batches = sync.Pool{New: func() any { return &batch{decoder: auditstream.NewDecoder()} }}

func newBatch(f *function, route string) *batch {
	b := batches.Get().(*batch)
	b.f, b.route, b.counts = f, route, counts{}
	return b
}

func (b *batch) release() {
	clear(b.events[:b.used])
	b.f, b.events, b.used = nil, b.events[:0], 0
	b.decoder.Close()
	batches.Put(b)
}

// storeAll decodes the body and stores its events, in one round trip unless there are very many.
func (b *batch) storeAll(r *http.Request) error {
	if err := b.decoder.Reset(r.Body, r.Header.Get("Content-Encoding"), b.f.decode); err != nil {
		return err
	}
	for {
		if len(b.events) == cap(b.events) {
			b.events = append(b.events, attribution.Event{})[:len(b.events)]
		}
		b.events = b.events[:len(b.events)+1]
		b.used = max(b.used, len(b.events))
		reason, err := b.decoder.Next(&b.events[len(b.events)-1])
		if reason != "" || err != nil {
			b.events = b.events[:len(b.events)-1]
		}
		switch {
		case errors.Is(err, io.EOF):
			return b.store(r.Context())
		case err != nil:
			// What came whole is worth keeping; the sender repeats the rest or cannot mend it.
			return errors.Join(b.store(r.Context()), err)
		case reason != "":
			b.counts.add(reason)
		}
		if len(b.events) == maxBatch || b.decoder.TextBytes() >= maxBatchBytes {
			if err := b.store(r.Context()); err != nil {
				return err
			}
		}
	}
}

// store files the events gathered so far.
func (b *batch) store(ctx context.Context) error {
	if len(b.events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.f.cfg.StoreTimeout)
	defer cancel()
	done := b.f.seen.storing()
	reasons, err := b.f.store.RecordEvents(ctx, b.route, b.events)
	done()
	if err == nil && len(reasons) != len(b.events) {
		err = fmt.Errorf("the store answered for %d of %d events", len(reasons), len(b.events))
	}
	if err != nil {
		return &storeError{err}
	}
	for _, reason := range reasons {
		b.counts.add(reason)
	}
	b.events = b.events[:0]
	b.decoder.Forget()
	return nil
}
