package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// SignalKind is what a Signal says.
type SignalKind int

const (
	// InitialStart begins a replay, or begins it anew: what came since the last one does not count.
	InitialStart SignalKind = iota + 1
	// Initial is an object that is there at the beginning.
	Initial
	// InitialEnd completes a replay: nothing is missing, and RV is where the watch goes on.
	InitialEnd
	// Change is one change, in the order in which the API server made them.
	Change
	// Bookmark says that nothing else happened up to RV.
	Bookmark
	// CaughtUp comes once: what had happened before the session began has been delivered.
	CaughtUp
	// Expired ends the session: the API server cannot go on from From, Since or where the watch had come, only a new
	// replay can. Err is ErrForgotten or ErrAhead.
	Expired
	// Failed ends the session: Err says why. What came before it stays true.
	Failed
)

// Signal is one thing that a session says about its shard.
type Signal struct {
	Session *Session
	Kind    SignalKind
	Type    watch.EventType            // of a Change: Added, Modified or Deleted
	Object  *unstructured.Unstructured // of a Change and an Initial
	RV      string                     // of a Change, an InitialEnd and a Bookmark
	Err     error                      // of Expired and Failed
}

// Session follows one shard: from a resourceVersion, or from a replay when there is none.
type Session struct {
	Shard Shard
	// From is where the cursor stands; empty begins with a replay.
	From string
	// Since is the version of an earlier replay, which is delivered once more as it was; empty begins with what is there
	// now. What happened since follows as changes.
	Since string
	// Tag is the caller's.
	Tag any

	dynamic dynamic.Interface
	timing  timing
	last    string // the newest version that was delivered
	caught  bool
}

// timing holds the waits of a session, so that tests need not sit through them.
type timing struct {
	open     time.Duration // until the API server answers a watch
	initial  time.Duration // of silence within the initial events, before a LIST is asked instead
	silence  time.Duration // that counts as caught up
	watch    time.Duration // the longest single watch
	backoff  time.Duration // first wait after a failure; doubles
	retries  int           // failures in a row without an event between them
	pageSize int64
}

var defaultTiming = timing{
	open: 15 * time.Second, initial: 10 * time.Second, silence: time.Second, watch: 5 * time.Minute,
	backoff: 200 * time.Millisecond, retries: 6, pageSize: 500,
}

// NewSession prepares to follow a shard; it sends nothing.
func (c *Client) NewSession(shard Shard, from string, tag any) *Session {
	return &Session{Shard: shard, From: from, Tag: tag, dynamic: c.dynamic, timing: defaultTiming}
}

// Why a session is Expired.
var (
	ErrForgotten = errors.New("the API server no longer has the version")
	ErrAhead     = errors.New("the API server has not come to the version: its etcd was restored, or it is another one")
)

var errNoInitials = errors.New("the API server does not stream initial events")

// Run delivers signals to out until ctx ends (which is no failure and says nothing) or the session has ended with
// Expired or Failed. It waits while out is full, so what is in memory is bounded by the receiver.
func (s *Session) Run(ctx context.Context, out chan<- Signal) {
	err := s.run(ctx, out)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ErrForgotten), errors.Is(err, ErrAhead):
		s.send(ctx, out, Signal{Kind: Expired, Err: err})
	default:
		s.send(ctx, out, Signal{Kind: Failed, Err: err})
	}
}

func (s *Session) run(ctx context.Context, out chan<- Signal) error {
	var head string
	var first *stream
	var err error
	switch {
	case s.From != "":
		s.last = s.From
		head, err = s.reach(ctx, s.From)
	case s.Since != "":
		head, err = s.replaySince(ctx, out)
	default:
		if first, err = s.replay(ctx, out); err == nil && !s.caughtUp(ctx, out) {
			err = ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	tries := attempts{of: s}
	for {
		before, began := s.last, time.Now()
		err := s.watch(ctx, out, first, head)
		first = nil
		if err == nil && s.last == before && time.Since(began) < s.timing.silence {
			err = errors.New("the API server ends each watch at once")
		}
		if err == nil || s.last != before {
			tries.failures = 0
		}
		if err == nil {
			continue
		}
		// A shard that has to be tried again must not keep the others: what is known so far can be worked on.
		if tries.failures > 0 && !s.caughtUp(ctx, out) {
			return ctx.Err()
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// Reach returns ErrAhead when the API server has not come to a version that it once told.
func (s *Session) Reach(ctx context.Context, rv string) error {
	_, err := s.reach(ctx, rv)
	return err
}

// reach checks a version against the newest one, which it returns.
func (s *Session) reach(ctx context.Context, rv string) (head string, err error) {
	if head, err = s.head(ctx); err != nil {
		return "", err
	}
	if order, err := resourceversion.CompareResourceVersion(rv, head); err != nil || order > 0 {
		return "", ErrAhead
	}
	return head, nil
}

// attempts counts failures in a row.
type attempts struct {
	of       *Session
	failures int
}

// wait sleeps before the next attempt, longer after each failure, or as long as the server asks for. It returns the
// error when trying again cannot help or was tried often enough.
func (a *attempts) wait(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	asked, again := retryable(failed)
	if a.failures++; !again || a.failures > a.of.timing.retries {
		return failed
	}
	timer := time.NewTimer(max(asked, jitter(a.of.timing.backoff<<(a.failures-1))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retryable says whether trying again can help, and how long the server asks us to wait.
func retryable(err error) (time.Duration, bool) {
	if errors.Is(err, ErrForgotten) || errors.Is(err, errNoInitials) {
		return 0, false
	}
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		return time.Duration(seconds) * time.Second, true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0, true // the network's
	}
	code := status.Status().Code
	return 0, code == 429 || code >= 500
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// watch follows the shard with one request, until the server ends it. on is a watch that is open already.
func (s *Session) watch(ctx context.Context, out chan<- Signal, on *stream, head string) error {
	if on == nil {
		var err error
		if on, err = s.open(ctx, metav1.ListOptions{ResourceVersion: s.last, AllowWatchBookmarks: true}); err != nil {
			return err
		}
	}
	defer on.stop()
	for {
		event, ok := on.next(ctx, s.quiet())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !ok:
			return on.ended()
		case event == nil: // silence
			if !s.caughtUp(ctx, out) {
				return ctx.Err()
			}
			continue
		}
		signal, err := liveSignal(event)
		if err != nil {
			return err
		}
		if !s.send(ctx, out, signal) {
			return ctx.Err()
		}
		s.last = signal.RV
		if order, err := resourceversion.CompareResourceVersion(s.last, head); err == nil && order >= 0 && !s.caughtUp(ctx, out) {
			return ctx.Err()
		}
	}
}

// quiet is how long to wait for an event before saying that nothing comes; 0 once that is known.
func (s *Session) quiet() time.Duration {
	if s.caught {
		return 0
	}
	return s.timing.silence
}

func (s *Session) caughtUp(ctx context.Context, out chan<- Signal) bool {
	if s.caught {
		return true
	}
	s.caught = true
	return s.send(ctx, out, Signal{Kind: CaughtUp})
}

func (s *Session) send(ctx context.Context, out chan<- Signal, signal Signal) bool {
	signal.Session = s
	select {
	case <-ctx.Done():
		return false
	case out <- signal:
		return true
	}
}

// liveSignal reads an event of a watch.
func liveSignal(event *watch.Event) (Signal, error) {
	if event.Type == watch.Error {
		return Signal{}, watchError(event.Object)
	}
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || object.GetResourceVersion() == "" {
		return Signal{}, errors.New("the API server sent a watch event that is no object")
	}
	rv := object.GetResourceVersion()
	switch event.Type {
	case watch.Bookmark:
		return Signal{Kind: Bookmark, RV: rv}, nil
	case watch.Added, watch.Modified, watch.Deleted:
		return Signal{Kind: Change, Type: event.Type, Object: object, RV: rv}, nil
	default:
		return Signal{}, errors.New("the API server sent a watch event of an unknown type")
	}
}
