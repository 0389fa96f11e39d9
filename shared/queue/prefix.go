package queue

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultKeyPrefix is the first part of every key when none is configured.
const DefaultKeyPrefix = "gitops-reverser"

const maxKeyPrefixLength = 128

// ValidateKeyPrefix trims space and trailing colons and returns what is left, or an error when that is not
// 1 to 128 characters of letters, digits, '-', '_', '.' and ':'. Glob characters and '%' are refused.
func ValidateKeyPrefix(prefix string) (string, error) {
	trimmed := strings.TrimRight(strings.TrimSpace(prefix), ":")
	switch {
	case trimmed == "":
		return "", fmt.Errorf("key prefix %q is empty: it must be 1 to %d of letters, digits, '-', '_', '.', ':'", prefix, maxKeyPrefixLength)
	case len(trimmed) > maxKeyPrefixLength:
		return "", fmt.Errorf("key prefix has %d characters: at most %d are allowed", len(trimmed), maxKeyPrefixLength)
	}
	for _, r := range trimmed {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("-_.:", r) {
			return "", fmt.Errorf("key prefix %q has the character %q: only letters, digits, '-', '_', '.', ':' are allowed", trimmed, r)
		}
	}
	return trimmed, nil
}

var keyPartEscaper = strings.NewReplacer("%", "%25", ":", "%3A")

// escapeKeyPart keeps a value that comes from outside from adding segments to a key.
func escapeKeyPart(part string) string { return keyPartEscaper.Replace(part) }

// groupResourceKey is <gr>: the resource alone for the core group, else group/resource. The version is in no key.
func groupResourceKey(gr schema.GroupResource) string {
	if gr.Group == "" {
		return gr.Resource
	}
	return gr.Group + "/" + gr.Resource
}
