package refsweep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
)

// defaultNamespace is that of a document that names none.
const defaultNamespace = "default"

// FileTargets reads GitRepository documents from a file, afresh for each sweep.
type FileTargets string

// Targets implements Targets.
func (f FileTargets) Targets(context.Context) ([]gitpoll.Target, []gitpoll.Result, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, nil, fmt.Errorf("read SWEEP_TARGETS_FILE: %w", err)
	}
	defer file.Close()
	list, skip, err := parseTargets(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read SWEEP_TARGETS_FILE: %w", err)
	}
	return list, skip, nil
}

func parseTargets(r io.Reader) (list []gitpoll.Target, skip []gitpoll.Result, err error) {
	documents := kyaml.NewYAMLReader(bufio.NewReader(r))
	seen := map[string]int{}
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, skip, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		repo, err := parseRepository(document)
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		if repo == nil {
			continue
		}
		name := repo.Metadata.Namespace + "/" + repo.Metadata.Name
		if before, ok := seen[name]; ok {
			return nil, nil, fmt.Errorf("document %d: GitRepository %s is already document %d", n, name, before)
		}
		seen[name] = n
		list, skip = add(repo, list, skip)
	}
}

// parseRepository returns nil for a document that holds nothing but comments.
func parseRepository(document []byte) (*repository, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return nil, errors.New("is not YAML")
	}
	var repo repository
	if err := yaml.Unmarshal(document, &repo); err != nil {
		return nil, errors.New("is not a GitRepository")
	}
	switch {
	case head.Kind == "" && repo.Metadata.Name == "" && repo.Spec.URL == "":
		return nil, nil
	case head.Kind != "GitRepository":
		return nil, fmt.Errorf("is a %q, want a GitRepository", head.Kind)
	case repo.Metadata.Name == "":
		return nil, errors.New("has no metadata.name")
	case repo.Spec.URL == "":
		return nil, fmt.Errorf("GitRepository %s has no spec.url", repo.Metadata.Name)
	}
	if repo.Metadata.Namespace == "" {
		repo.Metadata.Namespace = defaultNamespace
	}
	if !isName(repo.Metadata.Namespace, repo.Metadata.Name) {
		return nil, fmt.Errorf("%q in namespace %q is no name that a cluster would take", repo.Metadata.Name, repo.Metadata.Namespace)
	}
	return &repo, nil
}
