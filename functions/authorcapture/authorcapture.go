// Package authorcapture remembers who created a command object, such as a CommitRequest.
//
// It is a validating admission webhook, the only place that sees the creator and the object's final uid together. It
// stores uid → author for the first review of an object and always allows, within its own deadline, whatever the store
// does: capturing an author is never worth failing a request for. A missed capture makes the author unknown, not wrong.
//
// It captures the CREATE of the configured kinds only, and no dry run. The time of the request is that of our own clock.
// The record is not proof by itself: on clusters that cannot send a token anybody who reaches the endpoint can forge a
// review, so readers distrust records that come late and prefer the audit log.
package authorcapture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Path is where reviews are posted.
const Path = "/validate-operator-types"

const (
	// maxReviewBytes holds an object and its old version at the size limit of etcd, twice.
	maxReviewBytes = 8 << 20
	// maxCaptures bounds the captures that wait for the store at one time.
	maxCaptures = 256
)

// Store keeps the first author of a command object. An author that comes second changes nothing and is no error. It
// must end when the context does.
type Store interface {
	RecordCommandAuthor(ctx context.Context, uid types.UID, author queue.CommandAuthor) error
}

// Outcome is what became of a review: a bounded vocabulary for metrics and the audit annotation.
type Outcome string

// The outcomes.
const (
	Captured    Outcome = "captured"
	NotACommand Outcome = "not_a_command"
	NotACreate  Outcome = "not_a_create"
	DryRun      Outcome = "dry_run"
	NoUID       Outcome = "no_uid"
	NoUsername  Outcome = "no_username"
	StoreFailed Outcome = "store_failed"
	TimedOut    Outcome = "timed_out"
	Busy        Outcome = "busy"
)

var outcomes = []Outcome{Captured, NotACommand, NotACreate, DryRun, NoUID, NoUsername, StoreFailed, TimedOut, Busy}

// function is the http.Handler.
type function struct {
	cfg     Config
	store   Store
	tel     *telemetry.Telemetry
	now     func() time.Time
	slots   chan struct{}
	reviews map[Outcome]telemetry.Counter
	refused *telemetry.CounterVec
}

// New is the function over a store.
func New(cfg Config, store Store, tel *telemetry.Telemetry) http.Handler {
	f := &function{
		cfg: cfg, store: store, tel: tel, now: time.Now, slots: make(chan struct{}, maxCaptures),
		reviews: make(map[Outcome]telemetry.Counter, len(outcomes)),
		refused: tel.Counter("refused_total", "Requests that were no review we may answer, by status code.", "code"),
	}
	reviews := tel.Counter("reviews_total", "Admission reviews, by what became of them.", "outcome")
	for _, o := range outcomes {
		f.reviews[o] = reviews.WithLabelValues(string(o))
	}
	return f
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadline := f.now().Add(f.cfg.Timeout)
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	if status, err := f.refuse(ctx, r); err != nil {
		f.fail(w, status, err)
		return
	}
	// Where the connection allows it, a body that trickles in cannot outlast the deadline either.
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
	review, status, err := readReview(w, r)
	if err != nil {
		f.fail(w, status, err)
		return
	}
	outcome := f.capture(ctx, review.Request)
	f.reviews[outcome].Inc()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review.allowed(outcome)) // the caller has gone: nobody to tell
}

func (f *function) fail(w http.ResponseWriter, status int, err error) {
	f.refused.WithLabelValues(fmt.Sprint(status)).Inc()
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, err.Error(), status)
}

// refuse says why a request must not even be read.
func (f *function) refuse(ctx context.Context, r *http.Request) (int, error) {
	if r.URL.Path != Path {
		return http.StatusNotFound, fmt.Errorf("reviews are posted to %s", Path)
	}
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, errors.New("reviews are posted")
	}
	if !f.cfg.Token.Configured() {
		return 0, nil
	}
	want, err := f.cfg.Token.Get(ctx)
	if err != nil || want == "" {
		return http.StatusServiceUnavailable, errors.New("the token to compare with cannot be read")
	}
	if !host.Bears(r, want) {
		return http.StatusUnauthorized, errors.New("a Bearer token is needed")
	}
	return 0, nil
}

// capture stores the author of a command object, if the review is of one.
func (f *function) capture(ctx context.Context, r *request) Outcome {
	switch {
	case r.SubResource != "" || !slices.Contains(f.cfg.Kinds, r.Resource.Resource+"."+r.Resource.Group):
		return NotACommand
	case r.Operation != "CREATE":
		return NotACreate
	case r.DryRun != nil && *r.DryRun:
		return DryRun
	}
	uid := r.objectUID()
	if uid == "" {
		return NoUID
	}
	author := queue.CommandAuthor{
		Author:      r.UserInfo.Username,
		DisplayName: r.UserInfo.extra(f.cfg.DisplayNameExtras),
		Email:       r.UserInfo.extra(f.cfg.EmailExtras),
		RequestedAt: f.now().UTC().Format(time.RFC3339Nano),
	}
	if author.Author == "" {
		return NoUsername
	}
	return f.record(ctx, uid, author)
}

// record calls the store and stops waiting for it when the deadline comes, even if the store does not.
func (f *function) record(ctx context.Context, uid types.UID, author queue.CommandAuthor) Outcome {
	select {
	case f.slots <- struct{}{}:
	default:
		return Busy
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-f.slots }()
		done <- f.store.RecordCommandAuthor(ctx, uid, author)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return Captured
	}
	outcome := StoreFailed
	if ctx.Err() != nil {
		outcome = TimedOut
	}
	f.tel.Log.Error("author not captured", "uid", uid, "error", err)
	return outcome
}

// readReview reads an AdmissionReview of version v1.
func readReview(w http.ResponseWriter, r *http.Request) (*review, int, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("a review may have %d bytes", maxReviewBytes)
		}
		return nil, http.StatusBadRequest, errors.New("the body ended early")
	}
	var in review
	if json.Unmarshal(body, &in) != nil || !in.isV1() || in.Request == nil || in.Request.UID == "" {
		return nil, http.StatusBadRequest, fmt.Errorf("the body must be an %s of %s with a request", reviewKind, reviewVersion)
	}
	return &in, 0, nil
}
