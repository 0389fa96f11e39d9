// Package giturl parses the URLs that people give for git repositories: https, http, ssh:// and the scp-like
// form git@host:path. There is one parser, so that grouping, metrics, requests and stored state agree.
//
// An Endpoint prints without userinfo and query, and no error of this package repeats any part of its input.
package giturl

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// The schemes that are spoken. git:// and file:// are refused: the first is neither private nor authentic, the
// second would read the disk of whoever runs the function.
const (
	HTTPS = "https"
	HTTP  = "http"
	SSH   = "ssh"
)

// DefaultSSHUser is who one is on an SSH host when the URL names nobody.
const DefaultSSHUser = "git"

// The ways in which a URL can be unusable.
var (
	ErrScheme = errors.New("unsupported scheme: use https, http, ssh or the form user@host:path")
	ErrHost   = errors.New("missing or malformed host")
	ErrPath   = errors.New("missing or malformed path")
	ErrSyntax = errors.New("not a URL")
)

// Endpoint is a parsed repository URL. It is immutable.
type Endpoint struct {
	scheme string
	user   *url.Userinfo
	host   string // lower case, no brackets
	port   string // as written, empty when absent
	path   string // http(s): escaped, no trailing slash; ssh: as the remote command receives it
	query  string // http(s) only
}

// Parse reads a repository URL. Errors are one of ErrScheme, ErrHost, ErrPath and ErrSyntax.
func Parse(raw string) (*Endpoint, error) {
	if strings.ContainsFunc(raw, isControl) {
		return nil, ErrSyntax
	}
	if !strings.Contains(raw, "://") {
		return parseSCP(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes its input, passwords included.
		return nil, ErrSyntax
	}
	e := &Endpoint{scheme: u.Scheme, user: u.User, host: strings.ToLower(u.Hostname()), port: u.Port()}
	switch e.scheme {
	case HTTPS, HTTP:
		e.path = strings.TrimRight(u.EscapedPath(), "/")
		e.query = u.RawQuery
	case SSH:
		e.path = u.Path
		if strings.HasPrefix(e.path, "/~") {
			e.path = e.path[1:]
		}
	default:
		return nil, ErrScheme
	}
	return e.checked()
}

// parseSCP reads [user@]host:path, where the host may be a bracketed IPv6 address.
func parseSCP(raw string) (*Endpoint, error) {
	rest, user := raw, DefaultSSHUser
	colon := strings.IndexByte(raw, ':')
	if slash := strings.IndexByte(raw, '/'); colon < 0 || slash >= 0 && slash < colon {
		return nil, ErrScheme // a local path
	}
	switch at := strings.IndexByte(raw, '@'); {
	case at < 0:
	case at < colon:
		user, rest = raw[:at], raw[at+1:]
	case !strings.HasPrefix(raw, "["):
		return nil, ErrSyntax // user:password@host has no scp-like form
	}
	e := &Endpoint{scheme: SSH, user: url.User(user)}
	var ok bool
	if strings.HasPrefix(rest, "[") {
		e.host, e.path, ok = strings.Cut(rest[1:], "]:")
	} else {
		e.host, e.path, ok = strings.Cut(rest, ":")
	}
	if !ok {
		return nil, ErrHost
	}
	e.host = strings.ToLower(e.host)
	return e.checked()
}

func (e *Endpoint) checked() (*Endpoint, error) {
	// A host that starts with a dash would be an option to a program that takes it as an argument.
	if e.host == "" || strings.HasPrefix(e.host, "-") || strings.ContainsAny(e.host, " '\"\\/@") {
		return nil, ErrHost
	}
	if e.scheme != SSH {
		return e, nil
	}
	// A path of ssh:// was unescaped, which may have brought forth what Parse has refused.
	if strings.Trim(e.path, "/") == "" || strings.HasPrefix(e.path, "-") || strings.ContainsFunc(e.path, isControl) {
		return nil, ErrPath
	}
	if e.user == nil || e.user.Username() == "" {
		e.user = url.User(DefaultSSHUser)
	}
	return e, nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// Scheme is https, http or ssh.
func (e *Endpoint) Scheme() string { return e.scheme }

// IsSSH reports whether the repository is reached over SSH.
func (e *Endpoint) IsSSH() bool { return e.scheme == SSH }

// Host is the host without port and brackets, in lower case.
func (e *Endpoint) Host() string { return e.host }

// HostLabel groups repositories and labels metrics: the host, with the port if the URL has one.
func (e *Endpoint) HostLabel() string {
	host := e.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.port != "" {
		host += ":" + e.port
	}
	return host
}

// Port is the port to connect to, the scheme's own when the URL gives none.
func (e *Endpoint) Port() string {
	switch {
	case e.port != "":
		return e.port
	case e.scheme == HTTPS:
		return "443"
	case e.scheme == HTTP:
		return "80"
	default:
		return "22"
	}
}

// Address is host:port to dial, the scheme's own port when the URL gives none.
func (e *Endpoint) Address() string { return net.JoinHostPort(e.host, e.Port()) }

// User is the user of an SSH URL, or of the userinfo of an HTTP one; it may be empty there.
func (e *Endpoint) User() string { return e.user.Username() }

// Path is the path as the server sees it: escaped for http(s), as the remote command receives it for SSH.
func (e *Endpoint) Path() string { return e.path }

// ServiceURL is the address of one of the repository's service files, such as git-upload-pack, or info/refs with a
// query. Its user is left out: credentials travel in a header.
func (e *Endpoint) ServiceURL(file, query string) string {
	var b strings.Builder
	b.Grow(len(e.scheme) + len(e.host) + len(e.port) + len(e.path) + len(e.query) + len(file) + len(query) + 16)
	b.WriteString(e.scheme)
	b.WriteString("://")
	b.WriteString(e.HostLabel())
	b.WriteString(e.path)
	b.WriteByte('/')
	b.WriteString(file)
	sep := byte('?')
	for _, q := range []string{e.query, query} {
		if q != "" {
			b.WriteByte(sep)
			b.WriteString(q)
			sep = '&'
		}
	}
	return b.String()
}

// WithPath is the same server and credentials with another repository path (escaped), as a redirect names it.
func (e *Endpoint) WithPath(escaped string) *Endpoint {
	moved := *e
	moved.path = strings.TrimRight(escaped, "/")
	return &moved
}

// SameOrigin reports whether u is on the same scheme, host and port, so that credentials may go there.
func (e *Endpoint) SameOrigin(u *url.URL) bool {
	other := &Endpoint{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Hostname()), port: u.Port()}
	return other.scheme == e.scheme && other.host == e.host && other.Port() == e.Port()
}

// URL is the whole URL, userinfo included. Use it to read credentials; never print it.
func (e *Endpoint) URL() url.URL {
	u := url.URL{Scheme: e.scheme, User: e.user, Host: e.HostLabel(), RawQuery: e.query}
	if e.IsSSH() {
		u.Path = "/" + strings.TrimPrefix(e.path, "/")
		return u
	}
	// path was made by EscapedPath, so it unescapes.
	u.Path, _ = url.PathUnescape(e.path)
	u.RawPath = e.path
	return u
}

// String is the URL without userinfo and query: what may be printed and stored. An scp-like path that is relative
// to the user's home stays distinct from the absolute one, and from that in another user's home.
func (e Endpoint) String() string {
	path := e.path
	switch {
	case !e.IsSSH() || strings.HasPrefix(path, "/"):
	case e.User() == DefaultSSHUser:
		path = "/./" + path
	default:
		path = "/~" + e.User() + "/" + path
	}
	return e.scheme + "://" + e.HostLabel() + path
}

// GoString keeps %#v from printing userinfo. Like String it has a value receiver: a copy must not print it either.
func (e Endpoint) GoString() string { return e.String() }
