package auditingest

import (
	"errors"
	"net/url"
	"strings"
)

// Path is where audit events are posted: Path/<route>, or Path alone when an annotation names each event's route.
const Path = "/audit-webhook"

// selfTest after a route asks whether facts arrive on it.
const selfTest = "self-test"

const maxRouteLength = 253

var (
	errNotFound  = errors.New("audit events are posted to " + Path + "/<route>")
	errNoRoute   = errors.New("the path must name a route: " + Path + "/<route>; the bare path needs AUDIT_ROUTE_ANNOTATION_KEY")
	errManyParts = errors.New("the path must have exactly one segment after " + Path + "/")
	errBadRoute  = errors.New("the route must be 1 to 253 printable characters without a slash")
)

// target is what a path asks for.
type target struct {
	route    string // empty: each event's annotation names it
	selfTest bool
}

// parsePath reads the path of a request as it was sent, so that an escaped slash is no separator.
func parsePath(u *url.URL, annotated bool) (target, error) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Path)
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return target{}, errNotFound
	case rest == "" && annotated:
		return target{}, nil
	case rest == "" || rest == "/":
		return target{}, errNoRoute
	}
	segment, more, found := strings.Cut(rest[1:], "/")
	if found && more != selfTest {
		return target{}, errManyParts
	}
	route, err := url.PathUnescape(segment)
	if err != nil || !validRoute(route) {
		return target{}, errBadRoute
	}
	return target{route: route, selfTest: found}, nil
}

func validRoute(route string) bool {
	if route == "" || len(route) > maxRouteLength || route == anyRoute {
		return false
	}
	return !strings.ContainsFunc(route, func(r rune) bool { return r == '/' || r < ' ' || r == 0x7f || r == '\uFFFD' })
}
