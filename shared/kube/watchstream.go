package kube

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// farewell is how long after its timeoutSeconds a watch that the server did not end is cut.
const farewell = 5 * time.Second

// stream is one watch request.
type stream struct {
	events watch.Interface
	ctx    context.Context
	cancel context.CancelFunc
}

func (s *Session) resource() dynamic.ResourceInterface {
	of := s.dynamic.Resource(s.Shard.Resource.GroupVersionResource)
	if s.Shard.Namespace == "" {
		return of
	}
	return of.Namespace(s.Shard.Namespace)
}

func (s *Session) selector() string {
	if s.Shard.Selector == nil {
		return ""
	}
	return s.Shard.Selector.String()
}

// open begins a watch. The server is asked to end it in time for its last bookmark to reach us, and it is cut when
// it does not.
func (s *Session) open(ctx context.Context, options metav1.ListOptions) (*stream, error) {
	limit := s.timing.watch
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	seconds := max(1, int64(limit/time.Second))
	options.TimeoutSeconds = &seconds
	options.LabelSelector = s.selector()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+farewell)
	slow := time.AfterFunc(s.timing.open, cancel)
	events, err := s.resource().Watch(ctx, options)
	if !slow.Stop() && err == nil {
		events.Stop()
		err = errors.New("the API server did not answer a watch in time")
	}
	if err != nil {
		cancel()
		return nil, expiry(err)
	}
	return &stream{events: events, ctx: ctx, cancel: cancel}, nil
}

func (w *stream) stop() {
	w.events.Stop()
	w.cancel()
}

// next waits for an event. It returns nil and true after quiet without one (0 waits without end), nil and false when
// the watch or ctx has ended.
func (w *stream) next(ctx context.Context, quiet time.Duration) (*watch.Event, bool) {
	var silence <-chan time.Time
	if quiet > 0 {
		timer := time.NewTimer(quiet)
		defer timer.Stop()
		silence = timer.C
	}
	select {
	case <-ctx.Done():
		return nil, false
	case <-w.ctx.Done():
		return nil, false
	case <-silence:
		return nil, true
	case event, ok := <-w.events.ResultChan():
		if !ok {
			return nil, false
		}
		return &event, true
	}
}

// ended says how the stream came to its end: nil when its time was over.
func (w *stream) ended() error {
	if w.ctx.Err() != nil {
		return errors.New("a watch outlived its time: the connection may be dead")
	}
	return nil
}

// watchError is the error that an ERROR event carries.
func watchError(object runtime.Object) error {
	return expiry(apierrors.FromObject(object))
}

// expiry recognizes the answers that say that a version is gone.
func expiry(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ErrForgotten
	}
	return err
}
