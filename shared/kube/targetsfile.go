package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/types"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ParseTargets reads GitTarget documents as kubectl would take them. It is strict: an unknown field, another kind,
// a repeated name or a broken rule is an error that names the document. It sets defaults, and as such targets have
// no UID of their own, they get one from the cluster (the UID of namespace kube-system) and their name.
func ParseTargets(r io.Reader, cluster types.UID) ([]GitTarget, error) {
	docs := kyaml.NewYAMLReader(bufio.NewReader(r))
	names := map[string]int{}
	var out []GitTarget
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		t, err := parseTarget(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if t == nil {
			continue
		}
		if before, seen := names[t.Name]; seen {
			return nil, fmt.Errorf("document %d: GitTarget %s is already document %d", n, t.Name, before)
		}
		names[t.Name] = n
		t.UID = cluster + "-" + types.UID(t.Name)
		out = append(out, *t)
	}
}

// parseTarget returns nil for a document that holds nothing but comments.
func parseTarget(doc []byte) (*GitTarget, error) {
	raw, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return nil, nil
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, errors.New("is not an object")
	}
	if head.APIVersion != Group+"/"+Version || head.Kind != "GitTarget" {
		return nil, fmt.Errorf("is %s %s, want %s/%s GitTarget", head.APIVersion, head.Kind, Group, Version)
	}
	var t GitTarget
	// Field names are case-sensitive here, as they are at the API server.
	strict, err := kjson.UnmarshalStrict(raw, &t)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	t.SetDefaults()
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("GitTarget %s: %w", t.Name, err)
	}
	return &t, nil
}

// FileTargets are the targets of a file, for a cluster without the CustomResourceDefinitions. The file is read anew
// at each call, so a changed file (a mounted ConfigMap) is seen.
type FileTargets struct {
	Path    string
	Cluster types.UID
}

// Targets returns what the file holds now. One broken document is an error of the whole file.
func (f FileTargets) Targets(context.Context) ([]GitTarget, []InvalidTarget, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("open targets file: %w", err)
	}
	defer file.Close()
	targets, err := ParseTargets(file, f.Cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("targets file %s: %w", f.Path, err)
	}
	return targets, nil, nil
}

// InvalidTarget is a GitTarget that cannot be worked on. Its status should say so.
type InvalidTarget struct {
	Target GitTarget
	Err    error
}
