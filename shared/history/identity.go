package history

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
)

// UnresolvedName is the author of a change that nobody could be named for. No display name may be the same.
const UnresolvedName = "(unresolved)"

const (
	unresolvedEmail = "unresolved@noreply.invalid"
	// noreply is the domain of the addresses that are made from usernames.
	noreply            = "noreply.cluster.local"
	serviceAccountMark = " (service account)"
	maxName            = 100 // characters
)

// Committer is the policy's committer at a time, cleaned like any other name.
func Committer(policy Policy, now time.Time) gitcommit.Signature {
	sig := gitcommit.Signature{Name: plainName(policy.CommitterName), Email: policy.CommitterEmail, When: now.UTC()}
	if !mailbox.MatchString(sig.Email) {
		sig.Email = "tidemark@noreply.invalid"
	}
	return sig
}

// identity is the name and the e-mail address of an actor in an author line: from the identity's extras where they
// are harmless, else from the username. Different usernames never get one address.
func identity(a Actor) (name, email string) {
	name = displayName(a.DisplayName)
	if name == "" {
		name = plainName(a.Username)
	}
	email = strings.TrimSpace(a.Email)
	if !foreignMailbox(email) {
		email = usernameEmail(a.Username)
	}
	return name, email
}

var serviceAccount = regexp.MustCompile(`^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$`)

// plainName is a username as a name: a service account reads `namespace/name (service account)`, characters that
// could end a line, start an address or turn the text around are replaced, and a long name is cut.
func plainName(username string) string {
	if m := serviceAccount.FindStringSubmatch(username); m != nil {
		username = m[1] + "/" + m[2] + serviceAccountMark
	}
	return clean(username, maxName)
}

// displayName is a given display name, or "" when it should not stand in an author line: one that hides
// characters, holds angle brackets, is too long, says nothing, or poses as one of Tidemark's own names.
func displayName(s string) string {
	s = strings.TrimSpace(s)
	folded := strings.ToLower(s)
	if s == "" || clean(s, maxName) != s || folded == UnresolvedName || strings.HasSuffix(folded, serviceAccountMark) {
		return ""
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	return s
}

// clean is s on one line of at most max characters, with what does not print, or changes how the rest prints,
// replaced.
func clean(s string, max int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n++; n > max {
			b.WriteRune('…')
			break
		}
		if !harmless(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	if n == 0 {
		return string(utf8.RuneError)
	}
	return b.String()
}

// harmless tells characters that take room and keep their place: no control or format characters (among them the
// right-to-left marks and zero-width ones), no separators of lines, nothing private or unassigned, and not the
// brackets around an address.
func harmless(r rune) bool {
	return r != '<' && r != '>' && r != utf8.RuneError && (r == ' ' || unicode.IsPrint(r))
}

var (
	mailbox = regexp.MustCompile("^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*$")
	local   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
	label   = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
)

// foreignMailbox tells an e-mail address that is not of the kind that is made from usernames.
func foreignMailbox(s string) bool {
	if len(s) > 254 || !mailbox.MatchString(s) {
		return false
	}
	_, domain, _ := strings.Cut(strings.ToLower(s), "@")
	return domain != noreply && !strings.HasSuffix(domain, "."+noreply) && domain != "invalid" && !strings.HasSuffix(domain, ".invalid")
}

// usernameEmail makes an address of a username: the username itself if it is one, `dave` at noreply.cluster.local,
// `system:serviceaccount:shop:deployer` as deployer at shop.serviceaccount.system.noreply.cluster.local, and
// anything else by its readable part and a digest.
func usernameEmail(username string) string {
	if foreignMailbox(username) {
		return username
	}
	parts := strings.Split(username, ":")
	last := len(parts) - 1
	domain, plain := noreply, local.MatchString(parts[last]) && last < 8
	for _, part := range parts[:last] {
		plain = plain && label.MatchString(part)
		domain = part + "." + domain
	}
	if plain {
		return parts[last] + "@" + domain
	}
	sum := sha256.Sum256([]byte(username))
	readable := strings.Trim(unreadable.ReplaceAllString(username, "-"), "-.")
	if len(readable) > 40 {
		readable = readable[:40]
	}
	// The = keeps it apart from a username of this spelling, which can not hold one here.
	return readable + "=" + hex.EncodeToString(sum[:8]) + "@" + noreply
}

var unreadable = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
