package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

// BearerToken is the token of the request's Authorization header, "" without one. The scheme may be in any case (RFC 9110,
// section 11.1).
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// Bears reports whether the request's Bearer token is want; for an empty want none is. How long it takes tells nothing.
func Bears(r *http.Request, want string) bool {
	a, b := sha256.Sum256([]byte(BearerToken(r))), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && want != ""
}

// MayRead says whether the caller may see what the token guards: it shows the token, or the platform vouches for it, or no
// token is configured. With an error it may not.
func MayRead(r *http.Request, token settings.Secret) (bool, error) {
	if Trusted(r.Context()) || !token.Configured() {
		return true, nil
	}
	want, err := token.Get(r.Context())
	if err != nil {
		return false, fmt.Errorf("read the token to compare with: %w", err)
	}
	return Bears(r, want), nil
}
