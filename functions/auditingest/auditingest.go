// Package auditingest takes the audit events of API servers and keeps what they prove: who wrote which version.
//
// It is the backend of an audit webhook, and of a CloudWatch Logs subscription where the control plane has no webhook.
// Events are decoded as they arrive and never held whole, so memory follows neither the size of a post nor that of an
// event. Each event is stored or left out for one of a bounded set of reasons, and the answer counts them. The API server
// sends a post again for any error and then drops it whole, so only a store that fails is answered 503: whatever is wrong
// with one event costs that event. Storing is idempotent, so a post that comes again changes nothing.
package auditingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/auditstream"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

const (
	// maxBatch is how many events are stored in one round trip: every post of an API server with its default settings
	// (400) at once, and a much larger one in parts, so that memory stays bounded.
	maxBatch = 2000
	// maxBatchBytes bounds the text of the events that wait for the round trip.
	maxBatchBytes = 2 << 20
	// retryAfter is what a caller is asked to wait when the store fails or too many posts come at once.
	retryAfter = 5 * time.Second
)

// Store files what events prove. It answers with the reason for each event, in order; with an error nothing is known to
// be stored and the same events come again. The route of an event is route or, when that is empty, the event's own. It
// must end when the context does, and must not keep the events or their text.
type Store interface {
	RecordEvents(ctx context.Context, route string, events []attribution.Event) ([]attribution.Reason, error)
	// RoutesHeard says when facts last arrived on each route, to the minute; a route without any is left out.
	RoutesHeard(ctx context.Context, routes []string) (map[string]time.Time, error)
}

// function is the http.Handler.
type function struct {
	cfg    Config
	store  Store
	tel    *telemetry.Telemetry
	now    func() time.Time
	access *access
	turns  *turns
	seen   *measures
	decode auditstream.Options

	deniedAt atomic.Int64 // when it was last logged
}

// New is the function over a store. It fails when cfg has no usable tokens.
func New(cfg Config, store Store, tel *telemetry.Telemetry) (http.Handler, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.StoreTimeout)
	defer cancel()
	access, err := newAccess(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	return &function{
		cfg: cfg, store: store, tel: tel, now: time.Now, access: access,
		turns: newTurns(cfg.Concurrency, cfg.Queue, cfg.QueueWait),
		seen:  newMeasures(tel),
		decode: auditstream.Options{
			MaxEventBytes: cfg.MaxEventBytes, MaxBodyBytes: cfg.MaxBodyBytes,
			ExtraKeys: cfg.extraKeys(), RouteAnnotation: cfg.RouteAnnotationKey,
		},
	}, nil
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := parsePath(r.URL, f.cfg.RouteAnnotationKey != "")
	switch {
	case errors.Is(err, errNotFound):
		f.refuse(w, http.StatusNotFound, err)
		return
	case err != nil:
		f.refuse(w, http.StatusBadRequest, err)
		return
	}
	if want := to.method(); r.Method != want {
		w.Header().Set("Allow", want)
		f.refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("use %s", want))
		return
	}
	if !host.Trusted(r.Context()) {
		if status := f.access.check(r, to.route); status != 0 {
			f.denied(w, r, status, to.route)
			return
		}
	}
	if to.selfTest {
		f.selfTest(w, r, to.route)
		return
	}
	f.post(w, r, to.route)
}

// method is the one that the target takes.
func (t target) method() string {
	if t.selfTest {
		return http.MethodGet
	}
	return http.MethodPost
}

// post stores the events of one request.
func (f *function) post(w http.ResponseWriter, r *http.Request, route string) {
	if r.ContentLength > f.cfg.MaxBodyBytes {
		f.tooLarge(w, route, r.ContentLength)
		return
	}
	if !f.turns.take(r.Context()) {
		f.unavailable(w, causeBusy, errors.New("too many posts at once"))
		return
	}
	defer f.turns.done()
	// Not every host's connection takes a deadline; the context ends the others.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.cfg.ReadTimeout))
	b := newBatch(f, route)
	defer b.release()
	err := b.storeAll(r)
	f.seen.counted(&b.counts)
	f.seen.bytes.Observe(float64(b.decoder.BodyBytes()))
	var failed *storeError
	switch {
	case err == nil:
		answer(w, &b.counts)
	case errors.As(err, &failed):
		f.tel.Log.Error("facts not stored, the sender will try again", "route", route, "error", failed.err)
		f.unavailable(w, causeStore, errors.New("the store does not take the facts now"))
	case errors.Is(err, auditstream.ErrBodyTooLarge):
		f.tooLarge(w, route, b.decoder.BodyBytes())
	default:
		status := http.StatusBadRequest
		if errors.Is(err, auditstream.ErrEncoding) {
			status = http.StatusUnsupportedMediaType
		}
		f.tel.Log.Warn("post refused", "route", route, "error", err)
		f.refuse(w, status, err)
	}
}

func (f *function) tooLarge(w http.ResponseWriter, route string, size int64) {
	f.seen.oversized.Observe(float64(size))
	f.tel.Log.Warn("post refused", "route", route, "bytes", size, "error", auditstream.ErrBodyTooLarge)
	f.refuse(w, http.StatusRequestEntityTooLarge, auditstream.ErrBodyTooLarge)
}

// unavailable asks the caller to come again.
func (f *function) unavailable(w http.ResponseWriter, cause string, err error) {
	f.seen.unavailable.WithLabelValues(cause).Inc()
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// denied refuses a request that may not use the route, and logs that once a minute: an API server that is not let in
// says so in its own log only.
func (f *function) denied(w http.ResponseWriter, r *http.Request, status int, route string) {
	err := errors.New("the Bearer token does not open this route")
	switch {
	case status == http.StatusServiceUnavailable:
		err = errors.New("the tokens cannot be read now")
	case r.Header.Get("Authorization") == "":
		err = errors.New("no Bearer token was sent; an API server sends its token over https only")
	}
	if now, last := f.now().UnixNano(), f.deniedAt.Load(); now-last >= int64(time.Minute) && f.deniedAt.CompareAndSwap(last, now) {
		f.tel.Log.Warn("requests are not let in, of which one is told a minute", "route", route, "status", status, "error", err)
	}
	f.refuse(w, status, err)
}

func (f *function) refuse(w http.ResponseWriter, status int, err error) {
	f.seen.refused.WithLabelValues(strconv.Itoa(status)).Inc()
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, err.Error(), status)
}

// answer says what became of the events.
func answer(w http.ResponseWriter, c *counts) {
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(c.appendJSON(make([]byte, 0, 256))) // the caller has gone: nobody to tell
}

var jsonType = []string{"application/json"}
