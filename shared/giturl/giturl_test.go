package giturl_test

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

func TestURLForms(t *testing.T) {
	var c struct {
		Table []struct {
			URL, Host, Request, Error string
			SSH                       *struct {
				User, Host string
				Port       int
				Path       string
			}
		}
	}
	gittest.Case(t, "14-url-forms", &c)
	kinds := map[string]error{"scheme": giturl.ErrScheme, "host": giturl.ErrHost}
	for _, row := range c.Table {
		t.Run(row.URL, func(t *testing.T) {
			ep, err := giturl.Parse(row.URL)
			if row.Error != "" {
				if err == nil {
					t.Fatalf("Parse(%q) = %v, want an error", row.URL, ep)
				}
				if want := kinds[row.Error]; want != nil && !errors.Is(err, want) {
					t.Fatalf("Parse(%q): %v, want %v", row.URL, err, want)
				}
				return
			}
			if err != nil {
				t.Fatalf("Parse(%q): %v", row.URL, err)
			}
			if row.Host != "" && ep.HostLabel() != row.Host {
				t.Errorf("HostLabel() = %q, want %q", ep.HostLabel(), row.Host)
			}
			if row.Request != "" {
				u, err := url.Parse(ep.ServiceURL("info/refs", "service=git-upload-pack"))
				if err != nil {
					t.Fatal(err)
				}
				if got := u.RequestURI(); got != row.Request {
					t.Errorf("request %q, want %q", got, row.Request)
				}
			}
			if row.SSH != nil {
				got := fmt.Sprint(ep.User(), ep.Host(), ep.Port(), ep.Path())
				want := fmt.Sprint(row.SSH.User, row.SSH.Host, strconv.Itoa(row.SSH.Port), row.SSH.Path)
				if got != want {
					t.Errorf("ssh user, host, port, path: %s, want %s", got, want)
				}
			}
		})
	}
}

func TestNothingSecretIsPrinted(t *testing.T) {
	var c struct{ Forbidden, URLs []string }
	gittest.Case(t, "05-no-secret-in-errors", &c)
	c.URLs = append(c.URLs, "alice:s3cr3t-pw@host:path", "s3cr3t-pw", "[s3cr3t-pw", "ssh://h/\x7fs3cr3t-pw")
	for _, raw := range c.URLs {
		ep, err := giturl.Parse(raw)
		printed := fmt.Sprintf("%v %s %+v %#v %v", ep, ep, ep, ep, err)
		if ep == nil {
			printed = err.Error()
		} else {
			printed += fmt.Sprintf("%+v %#v", struct{ E *giturl.Endpoint }{ep}, *ep)
		}
		for _, secret := range c.Forbidden {
			if strings.Contains(printed, secret) {
				t.Errorf("Parse(%q) prints %q: %s", raw, secret, printed)
			}
		}
	}
}

func TestURLForms_Odd(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"the query stays in the request", "https://h/r.git?x=1", "https://h/r.git/info/refs?x=1&service=s"},
		{"several trailing slashes are one repository", "https://h/r.git///", "https://h/r.git/info/refs?service=s"},
		{"userinfo is no part of a request", "https://u:p@h/r", "https://h/r/info/refs?service=s"},
		{"an IPv6 address keeps its brackets", "http://[::1]:80/r", "http://[::1]:80/r/info/refs?service=s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := giturl.Parse(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := ep.ServiceURL("info/refs", "service=s"); got != tt.want {
				t.Errorf("ServiceURL of %q = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestSameOrigin(t *testing.T) {
	ep, err := giturl.Parse("https://git.example.com/org/r")
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]bool{
		"https://git.example.com/x":      true,
		"https://GIT.example.com:443/x":  true,
		"https://git.example.com:8443/x": false,
		"http://git.example.com/x":       false,
		"https://other.example.com/x":    false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := ep.SameOrigin(u); got != want {
			t.Errorf("SameOrigin(%q) = %v, want %v", raw, got, want)
		}
	}
}

func TestSCPPathsOfOtherHomesDiffer(t *testing.T) {
	printed := map[string]string{}
	for _, raw := range []string{"git@h:org/r.git", "git@h:/org/r.git", "git@h:./org/r.git", "alice@h:org/r.git", "bob@h:org/r.git"} {
		ep, err := giturl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := printed[ep.String()]; dup {
			t.Errorf("%q and %q both print as %q", raw, other, ep)
		}
		printed[ep.String()] = raw
	}
}
