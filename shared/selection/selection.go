// Package selection decides which ref of a repository a Flux GitRepository tracks, and which advertised commit is
// the candidate. It is pure: no I/O, no clock.
package selection

import (
	"errors"

	"github.com/fluxcd/pkg/git"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// ErrUnsupportedRef is a style of ref that a strategy cannot track.
var ErrUnsupportedRef = errors.New("unsupported ref style for candidate selection")

// Strategy answers which ref to track and which commit is its candidate.
type Strategy interface {
	// TrackingRef maps the ref of a GitRepository to what is tracked. The error is ErrUnsupportedRef for a style
	// that the strategy does not track.
	TrackingRef(ref *sourcev1.GitRepositoryRef) (string, error)
	// Candidate picks the commit among advertised refs: full name to hex id, with "name^{}" holding what an
	// annotated tag peels to. ok is false if the tracked ref is not among them.
	Candidate(advertised map[string]string, trackingRef string) (sha string, ok bool)
}

// Narrower is a Strategy that knows which refs Candidate looks at, so that a server need not list the others. Refs of
// a Strategy without it are listed in full.
type Narrower interface {
	// Narrow returns full ref names, or beginnings of them that end with a slash.
	Narrow(trackingRef string) []string
}

// defaultRef is tracked when nothing else is said. A GitRepository pinned to a commit only is tracked there too: a
// pin is not something that moves.
const defaultRef = "refs/heads/" + git.DefaultBranch

type trackRef struct{}

// TrackRef tracks one ref by its exact name. The order of precedence is the one in which source-controller checks
// out, commits aside: name, tag, semver (which is ErrUnsupportedRef), branch, and refs/heads/master.
func TrackRef() Strategy { return trackRef{} }

func (trackRef) TrackingRef(ref *sourcev1.GitRepositoryRef) (string, error) {
	switch {
	case ref == nil:
		return defaultRef, nil
	case ref.Name != "":
		return ref.Name, nil
	case ref.Tag != "":
		return "refs/tags/" + ref.Tag, nil
	case ref.SemVer != "":
		return "", ErrUnsupportedRef
	case ref.Branch != "":
		return "refs/heads/" + ref.Branch, nil
	}
	return defaultRef, nil
}

func (trackRef) Candidate(advertised map[string]string, trackingRef string) (string, bool) {
	if sha, ok := advertised[trackingRef+"^{}"]; ok {
		return sha, true
	}
	sha, ok := advertised[trackingRef]
	return sha, ok
}

func (trackRef) Narrow(trackingRef string) []string { return []string{trackingRef} }
