package kube

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const twoTargets = `# what we mirror
---
apiVersion: tidemark.dev/v1alpha1
kind: GitTarget
metadata:
  name: prod
spec:
  repository: {url: https://git.example.com/cfg.git, path: clusters/prod, secretRef: {namespace: tidemark, name: cfg-git}}
  attributionGrace: 45s
  resources: [{group: apps, resource: deployments}, {resource: configmaps, namespaces: [shop], selector: {matchLabels: {app: web}}}]
---
apiVersion: tidemark.dev/v1alpha1
kind: GitTarget
metadata: {name: audit}
spec:
  repository: {url: "ssh://git@git.example.com/audit.git", branch: trunk, secretRef: {namespace: tidemark, name: audit-git}}
  auditRoute: edge
  resources: [{group: rbac.authorization.k8s.io, resource: clusterroles}]
  commit: {grouping: PerChange, hold: 5m, committer: {name: Mirror, email: mirror@example.com}}
  prune: Always
`

func TestParseTargets(t *testing.T) {
	got, bad, err := ParseTargets(strings.NewReader(twoTargets), "6f1c")
	if err != nil || len(bad) != 0 {
		t.Fatal(bad, err)
	}
	if len(got) != 2 {
		t.Fatalf("got %d targets, want 2", len(got))
	}
	prod, audit := got[0], got[1]
	if prod.UID != "6f1c-prod" || audit.UID != "6f1c-audit" {
		t.Errorf("UIDs %s and %s, want 6f1c-prod and 6f1c-audit", prod.UID, audit.UID)
	}
	s := prod.Spec
	if s.AuditRoute != "default" || s.Repository.Branch != "main" || s.Commit.Grouping != PerAuthor || s.Prune != PruneOnEvent || s.Secrets != SecretsSkip || s.Commit.Committer.Name != "Tidemark" {
		t.Errorf("defaults are missing: %+v", s)
	}
	if s.AttributionGrace.Duration != 45*time.Second {
		t.Errorf("grace %s, want 45s", s.AttributionGrace.Duration)
	}
	if sel := metav1.FormatLabelSelector(s.Resources[1].Selector); sel != "app=web" {
		t.Errorf("selector %q, want app=web", sel)
	}
	s = audit.Spec
	if s.AuditRoute != "edge" || s.Repository.Branch != "trunk" || s.Commit.Grouping != PerChange || s.Commit.Hold.Duration != 5*time.Minute || s.Commit.Committer.Email != "mirror@example.com" || s.Prune != PruneAlways {
		t.Errorf("given values are lost: %+v", s)
	}
}

func TestParseTargetsRefuses(t *testing.T) {
	doc := func(change, to string) string { return strings.Replace(twoTargets, change, to, 1) }
	tests := []struct {
		name, in, want string
		good           int // documents beside it, which are taken
	}{
		{"an unknown field", doc("auditRoute:", "auditroute:"), `document 3: unknown field "spec.auditroute"`, 1},
		{"a key given twice", doc("  auditRoute: edge\n", "  auditRoute: edge\n  auditRoute: other\n"), "document 3:", 1},
		{"another kind", doc("kind: GitTarget", "kind: GitRepository"), "document 2: is apiVersion \"tidemark.dev/v1alpha1\", kind \"GitRepository\", want tidemark.dev/v1alpha1 GitTarget", 1},
		{"another version", doc("tidemark.dev/v1alpha1", "tidemark.dev/v1"), `document 2: is apiVersion "tidemark.dev/v1", kind "GitTarget"`, 1},
		{"a name given twice", doc("name: audit", "name: prod"), "document 3: GitTarget prod is already document 2", 1},
		{"a rule broken", doc("45s", "90s"), "document 2: GitTarget prod: spec.attributionGrace (1m30s)", 1},
		{"a duration that is none", doc("45s", "soon"), "document 2:", 1},
		{"a list", "- a\n", "document 1: is not an object", 0},
		{"no YAML", "a: [\n", "document 1:", 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, bad, err := ParseTargets(strings.NewReader(tc.in), "6f1c")
			if err != nil || len(bad) != 1 || !strings.Contains(bad[0].Err.Error(), tc.want) {
				t.Errorf("got %v and %v, want one invalid target with %q", bad, err, tc.want)
			}
			if len(got) != tc.good {
				t.Errorf("%d other documents were taken, want %d", len(got), tc.good)
			}
		})
	}
}

func TestFileTargetsSeeAChangedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.yaml")
	source := FileTargets{Path: file, Cluster: "6f1c"}
	if _, _, err := source.Targets(context.Background()); err == nil {
		t.Error("a missing file is no error")
	}
	for _, want := range []int{2, 1} {
		text := strings.Join(strings.SplitAfter(twoTargets, "---\n")[:want+1], "")
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(text, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := source.Targets(context.Background())
		if err != nil || len(got) != want {
			t.Errorf("got %d targets and %v, want %d", len(got), err, want)
		}
	}
}

func TestFileTargetsWithoutAGoodDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.yaml")
	source := FileTargets{Path: file, Cluster: "6f1c"}
	for text, want := range map[string]string{"": "", "# nothing yet\n": "", "a: [\n": "document 1:", "a: [\n---\n- b\n": "document 2: is not an object"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, bad, err := source.Targets(context.Background())
		if len(got) != 0 || len(bad) != 0 || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v and %v, want an error with %q", text, got, bad, err, want)
		}
	}
}
