package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pageSize is how many of our own objects one list request asks for.
const pageSize = 500

// Targets lists the cluster's GitTargets, with defaults. Those that are being deleted are left out: their cursors
// expire by themselves. One that breaks a rule is among the invalid ones and hides no other.
func (c *Client) Targets(ctx context.Context) ([]GitTarget, []InvalidTarget, error) {
	var good []GitTarget
	var bad []InvalidTarget
	err := c.each(ctx, GitTargets, "", func(u *unstructured.Unstructured) {
		if u.GetDeletionTimestamp() != nil {
			return
		}
		var t GitTarget
		if err := fromUnstructured(u, &t); err != nil {
			t = GitTarget{}
			t.Name, t.UID, t.Generation = u.GetName(), u.GetUID(), u.GetGeneration()
			bad = append(bad, InvalidTarget{Target: t, Err: err})
			return
		}
		t.SetDefaults()
		if err := t.Validate(); err != nil {
			bad = append(bad, InvalidTarget{Target: t, Err: err})
			return
		}
		good = append(good, t)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list GitTargets: %w", err)
	}
	return good, bad, nil
}

// PendingCommitRequests lists the requests that are not done, in all namespaces, oldest first as the API server
// orders equal lists: by namespace and name. The caller sorts by time where that matters. Expired are those that are
// done and have stayed for as long as they asked for.
func (c *Client) PendingCommitRequests(ctx context.Context) (pending, expired []CommitRequest, err error) {
	now := c.now()
	var broken error
	err = c.each(ctx, CommitRequests, "", func(u *unstructured.Unstructured) {
		var r CommitRequest
		if err := fromUnstructured(u, &r); err != nil {
			broken = fmt.Errorf("CommitRequest %s/%s: %w", u.GetNamespace(), u.GetName(), err)
			return
		}
		switch {
		case r.DeletionTimestamp != nil:
		case !r.Done():
			pending = append(pending, r)
		case r.Expired(now):
			expired = append(expired, r)
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list CommitRequests: %w", err)
	}
	return pending, expired, broken
}

// DeleteCommitRequest deletes the very request that was read. One that is gone meanwhile is no error, and another one
// under its name is left alone.
func (c *Client) DeleteCommitRequest(ctx context.Context, request *CommitRequest) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &request.UID}}
	err := c.dynamic.Resource(CommitRequests).Namespace(request.Namespace).Delete(ctx, request.Name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete CommitRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	return nil
}

// each calls f with every object of a resource, page by page. A list that a page's token outlived begins anew, once;
// f is only called when all pages are there.
func (c *Client) each(ctx context.Context, gvr schema.GroupVersionResource, namespace string, f func(*unstructured.Unstructured)) error {
	for try := 0; ; try++ {
		items, err := c.pages(ctx, gvr, namespace)
		if apierrors.IsResourceExpired(err) && try == 0 {
			continue
		}
		if err != nil {
			return err
		}
		for i := range items {
			f(&items[i])
		}
		return nil
	}
}

func (c *Client) pages(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.page(ctx, gvr, namespace, options)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return items, nil
		}
	}
}

func (c *Client) page(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, options)
}

// fromUnstructured converts by way of JSON, so the rules are those of the API server's own documents.
func fromUnstructured(u *unstructured.Unstructured, into any) error {
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
