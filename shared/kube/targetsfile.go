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
// a repeated name or a broken rule makes a document an invalid target, whose error names the document, and hides no
// other document. It sets defaults, and as such targets have no UID of their own, they get one from the cluster (the
// UID of namespace kube-system) and their name.
func ParseTargets(r io.Reader, cluster types.UID) ([]GitTarget, []InvalidTarget, error) {
	docs := kyaml.NewYAMLReader(bufio.NewReader(r))
	names := map[string]int{}
	var good []GitTarget
	var bad []InvalidTarget
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return good, bad, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read document %d: %w", n, err)
		}
		t, err := parseTarget(doc)
		switch {
		case err == nil && t == nil:
		case err == nil && names[t.Name] != 0:
			bad = append(bad, InvalidTarget{Target: *t, Err: fmt.Errorf("document %d: GitTarget %s is already document %d", n, t.Name, names[t.Name])})
		case err == nil:
			names[t.Name] = n
			t.UID = cluster + "-" + types.UID(t.Name)
			good = append(good, *t)
		default:
			invalid := InvalidTarget{Err: fmt.Errorf("document %d: %w", n, err)}
			if t != nil {
				invalid.Target.Name = t.Name
			}
			bad = append(bad, invalid)
		}
	}
}

// parseTarget returns nil for a document that holds nothing but comments. With an error the target has its name at most.
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
		return nil, fmt.Errorf("is apiVersion %q, kind %q, want %s/%s GitTarget", head.APIVersion, head.Kind, Group, Version)
	}
	var t GitTarget
	// Field names are case-sensitive here, as they are at the API server.
	strict, err := kjson.UnmarshalStrict(raw, &t)
	if err := errors.Join(append(strict, err)...); err != nil {
		return &t, err
	}
	t.SetDefaults()
	if err := t.Validate(); err != nil {
		return &t, fmt.Errorf("GitTarget %s: %w", t.Name, err)
	}
	return &t, nil
}

// FileTargets are the targets of a file, for a cluster without the CustomResourceDefinitions. The file is read anew
// at each call, so a changed file (a mounted ConfigMap) is seen.
type FileTargets struct {
	Path    string
	Cluster types.UID
}

// Targets returns what the file holds now. A file without one good document, where there are documents, is an error.
func (f FileTargets) Targets(context.Context) ([]GitTarget, []InvalidTarget, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("open targets file: %w", err)
	}
	defer file.Close()
	good, bad, err := ParseTargets(file, f.Cluster)
	if err == nil && len(good) == 0 {
		for _, b := range bad {
			err = errors.Join(err, b.Err)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("targets file %s: %w", f.Path, err)
	}
	return good, bad, nil
}

// InvalidTarget is a GitTarget that cannot be worked on. Its status should say so.
type InvalidTarget struct {
	Target GitTarget
	Err    error
}
