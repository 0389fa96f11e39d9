// Package manifest turns a Kubernetes object into the file that stands for it in git: where it lies (Path) and
// what is in it (Render). Both are pure: the same object gives the same path and the same bytes, on every run.
//
// Render works by a deny-list. It leaves out what the API server or a built-in controller writes by itself, one
// rule at a time, each with its reason (prune.go); everything else stays, also fields this package has never
// heard of. So a StorageClass, a PriorityClass or a custom resource without a spec loses nothing.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// ErrSecret is what Render answers for a core Secret: its values are never written in plain text.
var ErrSecret = errors.New("a Secret is not written in plain text")

// Render gives the YAML of an object as it is kept in git: apiVersion, kind, metadata, then the other fields in
// byte order, without what the server owns. obj holds what decoding JSON gives (map[string]any, []any, string,
// bool, nil, and int64, float64 or json.Number) and is not changed. Integers are written digit by digit, and a
// string that some YAML reader would take for another type is quoted.
//
// An error means that obj is no object (apiVersion, kind or metadata.name missing), holds a Go value that JSON
// has no word for, or is a Secret (ErrSecret).
func Render(obj map[string]any) ([]byte, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	metadata, _ := obj["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if apiVersion == "" || kind == "" || name == "" {
		return nil, fmt.Errorf("render object: apiVersion (%q), kind (%q) and metadata.name (%q) are all needed", apiVersion, kind, name)
	}
	if apiVersion == "v1" && kind == "Secret" {
		return nil, fmt.Errorf("render %s: %w", name, ErrSecret)
	}

	kept := clone(obj).(map[string]any)
	prune(group(apiVersion)+"/"+kind, kept)

	root, err := mapping(kept, "apiVersion", "kind", "metadata")
	if err != nil {
		return nil, fmt.Errorf("render %s %s: %w", kind, name, err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("render %s %s: %w", kind, name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("render %s %s: %w", kind, name, err)
	}
	return out.Bytes(), nil
}

// group is the API group of an apiVersion; the core group is "".
func group(apiVersion string) string {
	g, _, named := strings.Cut(apiVersion, "/")
	if !named {
		return ""
	}
	return g
}

// clone copies the maps and lists of a decoded object, so that pruning leaves the caller's alone.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[k] = clone(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = clone(x)
		}
		return l
	default:
		return v
	}
}
