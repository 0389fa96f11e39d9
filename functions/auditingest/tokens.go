package auditingest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

// anyRoute in place of a route opens every route.
const anyRoute = "*"

// access decides who may post to which route.
type access struct {
	anonymous bool
	secret    settings.Secret

	mu     sync.Mutex
	text   string // what grants was read from
	grants []grant
}

// grant is one route=token pair. Tokens are kept and compared as digests, so that neither their bytes nor their lengths
// show in how long a comparison takes.
type grant struct {
	route  string
	digest [sha256.Size]byte
}

// newAccess reads the tokens once, so that a mistake in them stops the start and not the first post.
func newAccess(ctx context.Context, cfg *Config) (*access, error) {
	a := &access{anonymous: cfg.AllowAnonymous, secret: cfg.Tokens}
	if a.anonymous {
		return a, nil
	}
	_, err := a.current(ctx)
	return a, err
}

// current is what the tokens grant now; they may be rotated while the process runs.
func (a *access) current(ctx context.Context) ([]grant, error) {
	text, err := a.secret.Get(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.grants != nil && text == a.text {
		return a.grants, nil
	}
	grants, err := parseTokens(text)
	if err != nil {
		return a.grants, err
	}
	a.text, a.grants = text, grants
	return grants, nil
}

// parseTokens reads route=token pairs. Its errors count the pairs and never show one.
func parseTokens(text string) ([]grant, error) {
	var grants []grant
	for i, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		route, token, found := strings.Cut(pair, "=")
		if route, token = strings.TrimSpace(route), strings.TrimSpace(token); !found || route == "" || token == "" {
			return nil, fmt.Errorf("AUDIT_TOKENS: pair %d must be route=token", i+1)
		}
		if route != anyRoute && !validRoute(route) {
			return nil, fmt.Errorf("AUDIT_TOKENS: pair %d: %w", i+1, errBadRoute)
		}
		grants = append(grants, grant{route: route, digest: sha256.Sum256([]byte(token))})
	}
	if len(grants) == 0 {
		return nil, settings.Missing("AUDIT_TOKENS", "it holds no route=token pair")
	}
	return grants, nil
}

// check answers 0 when the request may use the route, else 401 for no or an unknown token and 403 for one of another
// route. Every token is compared, so time tells nothing.
func (a *access) check(r *http.Request, route string) int {
	if a.anonymous {
		return 0
	}
	grants, err := a.current(r.Context())
	if err != nil && grants == nil {
		return http.StatusServiceUnavailable
	}
	digest := sha256.Sum256([]byte(host.BearerToken(r))) // no grant has an empty token
	known, opens := 0, 0
	for i := range grants {
		same := subtle.ConstantTimeCompare(digest[:], grants[i].digest[:])
		known |= same
		if grants[i].route == anyRoute || (route != "" && grants[i].route == route) {
			opens |= same
		}
	}
	switch {
	case known == 0:
		return http.StatusUnauthorized
	case opens == 0:
		return http.StatusForbidden
	}
	return 0
}
