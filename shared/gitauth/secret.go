package gitauth

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/fluxcd/pkg/git"

	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// FromSecret reads the data of a GitRepository's Secret, which may be nil, for one repository. What each key means,
// and which wins, is source-controller's: its own parser reads them. Errors begin with what was being read:
// "building auth options: ", "parsing SSH identity: ", "parsing known_hosts: ", and the like.
//
//	username, password   basic authentication; the URL's userinfo fills in what is missing
//	bearerToken          beats them
//	identity, known_hosts, password   an SSH key, its trusted host keys, its passphrase
//	ca.crt (or caFile), tls.crt, tls.key   trust and client certificate for HTTPS
//	githubAppID, githubAppInstallationID or githubAppInstallationOwner, githubAppPrivateKey, githubAppBaseURL   a GitHub App
func FromSecret(ep *giturl.Endpoint, data map[string][]byte) (*Credentials, error) {
	if app, ok := data[keyAppID]; ok && !ep.IsSSH() {
		return fromApp(app, data)
	}
	options, err := git.NewAuthOptions(ep.URL(), data)
	if err != nil {
		return nil, fmt.Errorf("building auth options: %w", err)
	}
	var c *Credentials
	switch {
	case ep.IsSSH():
		identity, err := NewSSH(options.Identity, options.Password, options.KnownHosts)
		if err != nil {
			return nil, err
		}
		c = c.WithSSH(identity)
		// Trust counts for an https proxy only; source-controller does not even look at it here.
		if trusting, err := c.WithTLS(caBundle(data), nil, nil); err == nil {
			return trusting, nil
		}
		return c, nil
	case options.Username != "" || options.Password != "":
		c = Basic(options.Username, options.Password)
	case options.BearerToken != "":
		c = Bearer(options.BearerToken)
	}
	return c.WithTLS(options.CAFile, options.ClientCert, options.ClientKey)
}

// caBundle is what NewAuthOptions reads too, but not for SSH.
func caBundle(data map[string][]byte) []byte {
	if ca := data["ca.crt"]; len(ca) > 0 {
		return ca
	}
	return data["caFile"]
}

// errProxy is a proxy Secret that cannot be used. The address is not repeated: it may hold a password.
var errProxy = errors.New("parsing proxy: address must be http, https or socks5, as in http://proxy.example.com:3128")

// WithProxy is c going through the proxy of a proxySecretRef's Secret: address, and perhaps username and password.
func (c *Credentials) WithProxy(data map[string][]byte) (*Credentials, error) {
	u, err := url.Parse(string(data["address"]))
	if err != nil || u.Hostname() == "" {
		return nil, errProxy
	}
	switch u.Scheme {
	case "http", "https", "socks5":
	default:
		return nil, errProxy
	}
	if user, password := string(data["username"]), string(data["password"]); user != "" || password != "" {
		u.User = url.UserPassword(user, password)
	}
	d := c.clone()
	d.proxy = &url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User}
	d.transport = digest(d.transport[:], []byte("proxy"), []byte(d.proxy.String()))
	if d.app != nil {
		d.app = d.app.through(d)
	}
	d.seal()
	return d, nil
}
