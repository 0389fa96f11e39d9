package refsweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/kube"
)

var gitRepositories = sourcev1.GroupVersion.WithResource("gitrepositories")

const (
	// pageSize is how many GitRepository objects one request lists; a page is all that is held of them.
	pageSize = 500
	// listTimeout bounds the listing of all of them, patchTimeout one annotation.
	listTimeout  = 30 * time.Second
	patchTimeout = 10 * time.Second
)

// errShape is an object that is not what its kind says.
var errShape = errors.New("not a GitRepository of v1")

// Flux finds GitRepository objects and their Secrets in a cluster.
type Flux struct {
	client              *kube.Client
	namespace, selector string
}

// NewFlux finds the objects of a namespace (empty: of all) that a label selector picks.
func NewFlux(client *kube.Client, namespace, selector string) *Flux {
	return &Flux{client: client, namespace: namespace, selector: selector}
}

// Targets implements Targets.
func (f *Flux) Targets(ctx context.Context) ([]gitpoll.Target, []gitpoll.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, skip, err := f.pages(ctx)
	if apierrors.IsResourceExpired(err) {
		list, skip, err = f.pages(ctx) // a page came too late for the list it belonged to
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list GitRepositories: %w", err)
	}
	return list, skip, nil
}

func (f *Flux) pages(ctx context.Context) (list []gitpoll.Target, skip []gitpoll.Result, err error) {
	options := metav1.ListOptions{LabelSelector: f.selector, Limit: pageSize}
	for {
		page, err := f.client.Dynamic().Resource(gitRepositories).Namespace(f.namespace).List(ctx, options)
		if err != nil {
			return nil, nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if item.GetDeletionTimestamp() != nil {
				continue
			}
			var repo repository
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &repo); err != nil {
				source := types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}
				skip = append(skip, gitpoll.Result{Target: gitpoll.Target{Source: source}, Err: gitpoll.AsConfiguration(errShape), At: time.Now()})
				continue
			}
			list, skip = add(&repo, list, skip)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return list, skip, nil
		}
	}
}

// SecretData implements gitpoll.SecretReader.
func (f *Flux) SecretData(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	return f.client.SecretData(ctx, kube.SecretReference{Namespace: name.Namespace, Name: name.Name})
}

// RequestReconcile asks source-controller to look at a GitRepository now.
func (f *Flux) RequestReconcile(ctx context.Context, source types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		meta.ReconcileRequestAnnotation: time.Now().UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return err
	}
	_, err = f.client.Dynamic().Resource(gitRepositories).Namespace(source.Namespace).
		Patch(ctx, source.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "tidemark-refsweep"})
	if err != nil {
		return fmt.Errorf("annotate GitRepository %s: %w", source, err)
	}
	return nil
}
