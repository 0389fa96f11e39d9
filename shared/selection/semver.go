package selection

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// semverMark begins the tracking ref of a semver range. No ref name holds a colon.
const semverMark = "semver:"

const tagPrefix = "refs/tags/"

type semverTag struct{ trackRef }

// SemverTag tracks the newest tag within a semver range, peeled to its commit, and every other style as TrackRef
// does. Tags are read as source-controller reads them: strict versions with an optional v; pre-releases count only
// if the range names one. Of tags that differ in build metadata only, the greatest by name wins.
func SemverTag() Strategy { return semverTag{} }

func (s semverTag) TrackingRef(ref *sourcev1.GitRepositoryRef) (string, error) {
	if ref == nil || ref.Name != "" || ref.Tag != "" || ref.SemVer == "" {
		return s.trackRef.TrackingRef(ref)
	}
	if _, err := semver.NewConstraint(ref.SemVer); err != nil {
		return "", fmt.Errorf("%w: %.80q is no range of versions such as >=1.2.0 <2.0.0", ErrUnsupportedRef, ref.SemVer)
	}
	return semverMark + ref.SemVer, nil
}

func (s semverTag) Candidate(advertised map[string]string, trackingRef string) (string, bool) {
	text, ok := strings.CutPrefix(trackingRef, semverMark)
	if !ok {
		return s.trackRef.Candidate(advertised, trackingRef)
	}
	within, err := semver.NewConstraint(text)
	if err != nil {
		return "", false
	}
	var newest *semver.Version
	var tag string
	for ref := range advertised {
		name, ok := strings.CutPrefix(ref, tagPrefix)
		if !ok || strings.HasSuffix(name, "^{}") {
			continue
		}
		version, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
		if err != nil || !within.Check(version) {
			continue
		}
		if newest == nil || version.GreaterThan(newest) || version.Equal(newest) && ref > tag {
			newest, tag = version, ref
		}
	}
	if newest == nil {
		return "", false
	}
	return s.trackRef.Candidate(advertised, tag)
}

func (s semverTag) Narrow(trackingRef string) []string {
	if strings.HasPrefix(trackingRef, semverMark) {
		return []string{tagPrefix}
	}
	return s.trackRef.Narrow(trackingRef)
}
