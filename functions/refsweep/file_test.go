package refsweep

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
)

func TestTargetsFiles(t *testing.T) {
	tests := []struct{ name, text, err string }{
		{name: "nothing", text: ""},
		{name: "comments", text: "# none yet\n---\n# here neither\n"},
		{name: "another kind", text: "kind: Bucket\nmetadata: {name: a}\n", err: `document 1: is a "Bucket", want a GitRepository`},
		{name: "no name", text: "kind: GitRepository\nspec: {url: x}\n", err: "document 1: has no metadata.name"},
		{name: "no URL", text: "kind: GitRepository\nmetadata: {name: a}\n", err: "document 1: GitRepository a has no spec.url"},
		{name: "twice", text: document("a", "https://h/a", "") + "\n---\n" + document("a", "https://h/b", ""), err: "document 2: GitRepository flux/a is already document 1"},
		{name: "a name of two lines", text: document(`"a\nb"`, "https://h/a", ""), err: `document 1: "a\nb" in namespace "flux" is no name that a cluster would take`},
		{name: "no YAML", text: "a: b: https://alice:s3cr3t@h", err: "document 1: is not YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, skip, err := parseTargets(strings.NewReader(tt.text))
			if got := errorText(err); got != tt.err || len(list)+len(skip) > 0 {
				t.Errorf("%v, %v, error %q, want %q", list, skip, got, tt.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSecretsOfAFolder(t *testing.T) {
	w := newWorld(t)
	w.secret("creds", "username", "alice")
	w.secret("creds", "..data", "ignored")
	secrets := w.deps.Secrets
	name := gitpoll.Target{}.Source
	name.Namespace, name.Name = "flux", "creds"
	data, err := secrets.SecretData(t.Context(), name)
	if err != nil || len(data) != 1 || string(data["username"]) != "alice" {
		t.Errorf("data %v, %v", data, err)
	}
	name.Name = "missing"
	if _, err := secrets.SecretData(t.Context(), name); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), w.dir) {
		t.Errorf("a missing Secret: %v", err)
	}
	name.Name = "../creds"
	if _, err := secrets.SecretData(t.Context(), name); err == nil {
		t.Error("a name that climbs out of the folder was read")
	}
}
