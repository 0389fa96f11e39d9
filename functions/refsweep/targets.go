package refsweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

// Targets is where the sources to sweep come from.
type Targets interface {
	// Targets returns the sources as they are now: those to list, and those that cannot be, with the reason. The
	// error is for the case that nothing can be said about the set.
	Targets(ctx context.Context) (list []gitpoll.Target, skip []gitpoll.Result, err error)
}

// errProvider is a source whose credentials come from a cloud's workload identity.
var errProvider = errors.New("provider's workload identity is not supported: give a secretRef")

// strategy tracks tags within a semver range too.
var strategy = selection.SemverTag()

// repository is what is read of a GitRepository.
type repository struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		URL            string                     `json:"url"`
		SecretRef      *meta.LocalObjectReference `json:"secretRef"`
		ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef"`
		Provider       string                     `json:"provider"`
		Reference      *sourcev1.GitRepositoryRef `json:"ref"`
		Suspend        bool                       `json:"suspend"`
	} `json:"spec"`
}

// target is what to list, or why not.
func (r *repository) target() (gitpoll.Target, error) {
	t := gitpoll.Target{
		Source:         types.NamespacedName{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name},
		URL:            r.Spec.URL,
		SecretRef:      r.secret(r.Spec.SecretRef),
		ProxySecretRef: r.secret(r.Spec.ProxySecretRef),
	}
	var err error
	if t.TrackingRef, err = strategy.TrackingRef(r.Spec.Reference); err != nil {
		return t, gitpoll.AsConfiguration(err)
	}
	switch {
	case r.Spec.Suspend:
		return t, gitpoll.ErrSuspended
	case t.SecretRef == nil && r.Spec.Provider != "" && r.Spec.Provider != sourcev1.GitProviderGeneric:
		return t, gitpoll.AsConfiguration(errProvider)
	}
	return t, nil
}

func (r *repository) secret(ref *meta.LocalObjectReference) *types.NamespacedName {
	if ref == nil || ref.Name == "" {
		return nil
	}
	return &types.NamespacedName{Namespace: r.Metadata.Namespace, Name: ref.Name}
}

// add sorts a repository into the targets to list and those to skip.
func add(r *repository, list []gitpoll.Target, skip []gitpoll.Result) ([]gitpoll.Target, []gitpoll.Result) {
	t, err := r.target()
	if err != nil {
		return list, append(skip, gitpoll.Result{Target: t, Err: err, At: time.Now()})
	}
	return append(list, t), skip
}

// DirSecrets reads Secrets from a folder: <namespace>/<name>/<key>, or <name>/<key> as one Secret is mounted.
type DirSecrets string

// SecretData implements gitpoll.SecretReader.
func (d DirSecrets) SecretData(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	if d == "" {
		return nil, errors.New("SWEEP_SECRETS_DIR is not set")
	}
	if !isName(name.Namespace, name.Name) {
		return nil, errors.New("not the name of a Secret")
	}
	folder := filepath.Join(string(d), name.Namespace, name.Name)
	files, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		folder = filepath.Join(string(d), name.Name)
		files, err = os.ReadDir(folder)
	}
	if err != nil {
		return nil, reason(err)
	}
	data := map[string][]byte{}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "..") {
			continue // what a mounted Secret is made of
		}
		value, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", f.Name(), reason(err))
		}
		data[f.Name()] = value
	}
	return data, nil
}

// isName says whether a cluster would take a namespace and a name.
func isName(namespace, name string) bool {
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// managedSecrets reads Secrets where no cluster has them.
type managedSecrets kube.ReadSecret

// SecretData implements gitpoll.SecretReader.
func (m managedSecrets) SecretData(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	return m(ctx, kube.SecretReference{Namespace: name.Namespace, Name: name.Name})
}

// reason leaves the path out of an error.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
