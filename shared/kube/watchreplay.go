package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// replay delivers every object of the shard. It returns the watch that goes on from there, or nil when a list had to
// be asked. Whatever was delivered counts only when InitialEnd follows.
func (s *Session) replay(ctx context.Context, out chan<- Signal) (*stream, error) {
	tries := attempts{of: s}
	for {
		stream, err := s.streamInitial(ctx, out)
		if errors.Is(err, errNoInitials) {
			return nil, s.listInitial(ctx, out)
		}
		if err == nil {
			return stream, nil
		}
		if err := tries.wait(ctx, err); err != nil {
			return nil, err
		}
	}
}

// replaySince delivers every object of the shard as it was at Since, and returns the newest version. ErrForgotten says
// that the API server cannot tell any more, or never could.
func (s *Session) replaySince(ctx context.Context, out chan<- Signal) (head string, err error) {
	if head, err = s.reach(ctx, s.Since); err != nil {
		return "", err
	}
	if err = s.listInitial(ctx, out); unsupported(err) {
		err = ErrForgotten
	}
	return head, err
}

// unsupported recognizes how servers refuse a way of reading that they do not have.
func unsupported(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// streamInitial asks for a watch that begins with all objects. errNoInitials says that this server does not do that.
func (s *Session) streamInitial(ctx context.Context, out chan<- Signal) (_ *stream, err error) {
	yes := true
	on, err := s.open(ctx, metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if unsupported(err) {
		return nil, errNoInitials
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			on.stop()
		}
	}()
	if !s.send(ctx, out, Signal{Kind: InitialStart}) {
		return nil, ctx.Err()
	}
	for {
		event, ok := on.next(ctx, s.timing.initial)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !ok:
			return nil, errors.Join(errors.New("the API server ended a watch within its initial events"), on.ended())
		case event == nil:
			return nil, errNoInitials
		}
		signal, err := liveSignal(event)
		switch {
		case err != nil:
			return nil, err
		case signal.Kind == Bookmark && event.Object.(*unstructured.Unstructured).GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			signal.Kind, s.last = InitialEnd, signal.RV
			if !s.send(ctx, out, signal) {
				return nil, ctx.Err()
			}
			return on, nil
		case signal.Kind == Bookmark:
			continue // of a server that is not through yet
		case signal.Type != watch.Added:
			return nil, errNoInitials // live already: it took no notice of what we asked for
		}
		signal.Kind = Initial
		if !s.send(ctx, out, signal) {
			return nil, ctx.Err()
		}
	}
}

// listInitial asks for all objects page by page. When a page's token has expired the list begins anew, unless it is one of
// the past.
func (s *Session) listInitial(ctx context.Context, out chan<- Signal) error {
	tries := attempts{of: s}
	for {
		err := s.listPages(ctx, out)
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrForgotten) && s.Since == "" {
			err = errors.New("the API server forgot a list between two of its pages")
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
	}
}

func (s *Session) listPages(ctx context.Context, out chan<- Signal) error {
	if !s.send(ctx, out, Signal{Kind: InitialStart}) {
		return ctx.Err()
	}
	options := metav1.ListOptions{Limit: s.timing.pageSize, LabelSelector: s.selector()}
	if s.Since != "" {
		options.ResourceVersion, options.ResourceVersionMatch = s.Since, metav1.ResourceVersionMatchExact
	}
	for {
		page, err := list(ctx, s.resource(), options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if !s.send(ctx, out, Signal{Kind: Initial, Object: &page.Items[i], RV: page.Items[i].GetResourceVersion()}) {
				return ctx.Err()
			}
		}
		if options.Continue = page.GetContinue(); options.Continue != "" {
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // the token holds them
			continue
		}
		if s.last = page.GetResourceVersion(); s.last == "" {
			return errors.New("the API server sent a list without a resourceVersion")
		}
		if !s.send(ctx, out, Signal{Kind: InitialEnd, RV: s.last}) {
			return ctx.Err()
		}
		return nil
	}
}

// list is one LIST request.
func list(ctx context.Context, of dynamic.ResourceInterface, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := of.List(ctx, options)
	if err != nil {
		return nil, expiry(err)
	}
	return page, nil
}

// head is the newest version at this moment, from the smallest LIST.
func (s *Session) head(ctx context.Context) (string, error) {
	tries := attempts{of: s}
	for {
		page, err := list(ctx, s.resource(), metav1.ListOptions{Limit: 1, LabelSelector: s.selector()})
		if err == nil {
			return page.GetResourceVersion(), nil
		}
		if err := tries.wait(ctx, err); err != nil {
			return "", err
		}
	}
}

// ReadBack returns an object as it was at a version that its watch delivered, from etcd's history (about five
// minutes), also where the watch cache has forgotten it. It returns nil when the object was not there, and
// ErrForgotten when the version is gone.
func (s *Session) ReadBack(ctx context.Context, namespace, name, rv string) (*unstructured.Unstructured, error) {
	options := metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	var of dynamic.ResourceInterface = s.dynamic.Resource(s.Shard.Resource.GroupVersionResource)
	if namespace != "" {
		of = s.dynamic.Resource(s.Shard.Resource.GroupVersionResource).Namespace(namespace)
	}
	tries := attempts{of: s}
	for {
		page, err := list(ctx, of, options)
		if err == nil {
			for i := range page.Items {
				if page.Items[i].GetName() == name {
					return &page.Items[i], nil
				}
			}
			return nil, nil
		}
		if err := tries.wait(ctx, err); err != nil {
			return nil, fmt.Errorf("read %s %s/%s back at %s: %w", s.Shard.Resource.GroupResource(), namespace, name, rv, err)
		}
	}
}
