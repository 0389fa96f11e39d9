package selection_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

func TestTrackingRef(t *testing.T) {
	type ref = sourcev1.GitRepositoryRef
	tests := []struct {
		name          string
		ref           *ref
		want, semver  string
		trackRefFails bool
	}{
		{name: "no ref is master", want: "refs/heads/master", semver: "refs/heads/master"},
		{name: "an empty ref is master", ref: &ref{}, want: "refs/heads/master", semver: "refs/heads/master"},
		{name: "a commit alone is master", ref: &ref{Commit: "abc"}, want: "refs/heads/master", semver: "refs/heads/master"},
		{name: "a branch", ref: &ref{Branch: "main"}, want: "refs/heads/main", semver: "refs/heads/main"},
		{name: "a commit does not hide the branch", ref: &ref{Branch: "main", Commit: "abc"}, want: "refs/heads/main", semver: "refs/heads/main"},
		{name: "a tag beats a branch", ref: &ref{Tag: "v1", Branch: "main"}, want: "refs/tags/v1", semver: "refs/tags/v1"},
		{name: "a tag beats a range", ref: &ref{Tag: "v1", SemVer: "1.x"}, want: "refs/tags/v1", semver: "refs/tags/v1"},
		{name: "a range beats a branch", ref: &ref{SemVer: ">=1.0.0 <2", Branch: "main"}, trackRefFails: true, semver: "semver:>=1.0.0 <2"},
		{name: "a name is taken verbatim and beats all", ref: &ref{Name: "refs/pull/4/head", Tag: "v1", SemVer: "1.x", Branch: "b"}, want: "refs/pull/4/head", semver: "refs/pull/4/head"},
		{name: "even a name that is no full ref", ref: &ref{Name: "main"}, want: "main", semver: "main"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := selection.TrackRef().TrackingRef(tt.ref)
			if got != tt.want || errors.Is(err, selection.ErrUnsupportedRef) != tt.trackRefFails || err != nil && !tt.trackRefFails {
				t.Errorf("TrackRef: %q, %v, want %q", got, err, tt.want)
			}
			if got, err := selection.SemverTag().TrackingRef(tt.ref); got != tt.semver || err != nil {
				t.Errorf("SemverTag: %q, %v, want %q", got, err, tt.semver)
			}
		})
	}
	if _, err := selection.SemverTag().TrackingRef(&ref{SemVer: "not a range"}); !errors.Is(err, selection.ErrUnsupportedRef) || !strings.Contains(err.Error(), "not a range") {
		t.Errorf("SemverTag of a malformed range: %v, want ErrUnsupportedRef that names it", err)
	}
}

func TestCandidateOfAnnotatedTags(t *testing.T) {
	var c struct {
		Expect      []struct{ Ref, SHA string }
		MapContains map[string]string `json:"map_contains"`
	}
	gittest.Case(t, "06-annotated-tags", &c)
	advertised := map[string]string{"refs/tags/light": "cccccccccccccccccccccccccccccccccccccccc", "refs/tags/v1.1": "d", "refs/tags/v10": "e"}
	for ref, id := range c.MapContains {
		advertised[ref] = id
	}
	for _, e := range c.Expect {
		sha, ok := selection.TrackRef().Candidate(advertised, e.Ref)
		if sha != e.SHA || ok != (e.SHA != "") {
			t.Errorf("Candidate(%q) = %q, %v, want %q", e.Ref, sha, ok, e.SHA)
		}
	}
}

func TestCandidateWithinARange(t *testing.T) {
	advertised := map[string]string{
		"refs/heads/main":        "main",
		"refs/heads/v9.0.0":      "a branch",
		"refs/tags/v1.2.3":       "1.2.3",
		"refs/tags/v1.10.0":      "tag object",
		"refs/tags/v1.10.0^{}":   "1.10.0",
		"refs/tags/1.9.0":        "1.9.0",
		"refs/tags/v2.0.0-rc.1":  "2.0.0-rc.1",
		"refs/tags/v3":           "not strict",
		"refs/tags/chart/v7.0.0": "another name",
		"refs/tags/0.1.0+a":      "0.1.0+a",
		"refs/tags/0.1.0+b":      "0.1.0+b",
	}
	tests := []struct {
		name, tracking, want string
		missing              bool
	}{
		{name: "the newest by number, peeled", tracking: "semver:1.x", want: "1.10.0"},
		{name: "without the v", tracking: "semver:~1.9", want: "1.9.0"},
		{name: "pre-releases are left out", tracking: "semver:>=1.0.0", want: "1.10.0"},
		{name: "unless the range names one", tracking: "semver:>=2.0.0-0", want: "2.0.0-rc.1"},
		{name: "no tag in the range", tracking: "semver:>=9", missing: true},
		{name: "equal versions are settled by name", tracking: "semver:0.1.0", want: "0.1.0+b"},
		{name: "a malformed range matches nothing", tracking: "semver:x y z", missing: true},
		{name: "other refs as ever", tracking: "refs/heads/main", want: "main"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sha, ok := selection.SemverTag().Candidate(advertised, tt.tracking)
			if sha != tt.want || ok == tt.missing {
				t.Errorf("Candidate(%q) = %q, %v, want %q", tt.tracking, sha, ok, tt.want)
			}
		})
	}
}

func TestNarrow(t *testing.T) {
	tests := []struct {
		strategy selection.Strategy
		tracking string
		want     []string
	}{
		{selection.TrackRef(), "refs/heads/main", []string{"refs/heads/main"}},
		{selection.SemverTag(), "refs/heads/main", []string{"refs/heads/main"}},
		{selection.SemverTag(), "semver:1.x", []string{"refs/tags/"}},
	}
	for _, tt := range tests {
		if got := tt.strategy.(selection.Narrower).Narrow(tt.tracking); !slices.Equal(got, tt.want) {
			t.Errorf("Narrow(%q) = %q, want %q", tt.tracking, got, tt.want)
		}
	}
}
