package gitcommit

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// classify tells what the answer to a push means.
func classify(report *gitwire.PushReport, err error, now time.Time) Outcome {
	if err != nil {
		outcome := classifyError(err, now)
		outcome.Words = report.Words
		return outcome
	}
	outcome := Outcome{Words: report.Words, TipHint: tipHint(report.Words)}
	if outcome.Words == "" && !report.Moved() {
		outcome.Words = strings.TrimSpace(reasons(report))
	}
	switch {
	case report.Moved():
		outcome.Class, outcome.TipHint = Landed, ObjectID{}
	case report.Unpack != "ok":
		outcome.Class = classifyUnpack(report)
	default:
		outcome.Class = classifyRefusal(report)
	}
	return outcome
}

func reasons(report *gitwire.PushReport) string {
	if report.Unpack != "ok" {
		return report.Unpack
	}
	return report.Refused
}

// classifyUnpack: the pack was not taken.
func classifyUnpack(report *gitwire.PushReport) Class {
	said := strings.ToLower(report.Unpack + "\n" + report.Words)
	switch {
	case containsAny(said, "no space left", "disk quota", "unable to create temporary", "read-only file system", "out of memory", "cannot allocate"):
		return ServerTrouble
	case containsAny(said, "exceeds maximum allowed size", "pack exceeds", "too large"):
		return TooLarge
	case containsAny(said, "bad tree object", "missing necessary objects", "object of unexpected type", "did not receive expected object", "could not read", "unable to read"):
		return MissingObjects
	}
	return Damaged
}

// classifyRefusal: the pack was taken, and the ref was not moved. git 2.39 says the same of a lost race and of a
// lock that somebody holds; only what it says for people tells them apart.
func classifyRefusal(report *gitwire.PushReport) Class {
	reason, words := strings.ToLower(report.Refused), strings.ToLower(report.Words)
	switch {
	case containsAny(reason, "hook declined", "non-fast-forward", "currently checked out", "deny", "denied", "prohibited", "protected", "not allowed", "refusing", "hidden ref", "funny refname"):
		return Policy
	case containsAny(reason, "missing necessary objects", "bad tree object") || strings.Contains(words, "bad tree object"):
		return MissingObjects
	case containsAny(reason, "incorrect old value", "stale info", "fetch first", "already exists", "expected old"):
		return LostRace
	case strings.Contains(words, "but expected") || strings.Contains(words, "reference already exists"):
		return LostRace
	case strings.Contains(words, ".lock'") && strings.Contains(words, "file exists"):
		return RetrySameTip
	case containsAny(reason, "unpacker error"):
		return Damaged
	}
	return ReResolve
}

var expected = regexp.MustCompile(`is at ([0-9a-f]{40}(?:[0-9a-f]{24})?) but expected`)

// tipHint is the tip that git names when an old id is stale.
func tipHint(words string) ObjectID {
	if found := expected.FindStringSubmatch(words); found != nil {
		id, err := gitobject.ParseID(found[1])
		if err == nil {
			return id
		}
	}
	return ObjectID{}
}

// classifyError: there is no complete report.
func classifyError(err error, now time.Time) Outcome {
	var status *gitwire.StatusError
	if !errors.As(err, &status) {
		var remote *gitwire.RemoteError
		switch {
		case errors.Is(err, gitauth.ErrRefused):
			return Outcome{Class: Auth}
		case errors.Is(err, gitwire.ErrRedirect), errors.Is(err, gitauth.ErrHostKey), errors.Is(err, gitauth.ErrUnknownHost):
			return Outcome{Class: Configuration}
		case errors.As(err, &remote):
			return Outcome{Class: classifyWords(remote.Text)}
		}
		return Outcome{Class: Unknown}
	}
	outcome := Outcome{}
	if status.RetryAt.After(now) {
		outcome.RetryAfter = status.RetryAt.Sub(now)
	}
	switch {
	case status.Throttled:
		outcome.Class = Throttled
	case status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden:
		outcome.Class = Auth
	case status.Code == http.StatusRequestEntityTooLarge:
		outcome.Class = TooLarge
	case status.Code >= 500:
		outcome.Class = Unknown // a gateway may have given up on a server that went on
	default:
		outcome.Class = Configuration
	}
	return outcome
}

// classifyWords: the server broke off with words of its own, as SSH hosts do that refuse before git begins.
func classifyWords(text string) Class {
	text = strings.ToLower(text)
	switch {
	case containsAny(text, "permission denied", "access denied", "not allowed", "read-only", "read only", "deploy key", "forbidden", "authentication", "unauthorized"):
		return Auth
	case containsAny(text, "not found", "does not exist", "does not appear to be a git repository", "no such"):
		return Configuration
	}
	return Unknown
}

func containsAny(text string, words ...string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
