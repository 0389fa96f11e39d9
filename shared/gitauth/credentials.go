// Package gitauth turns the data of a Secret into what a connection to a git server needs: who one is, whom to
// trust, and through which proxy. It accepts what Flux's source-controller accepts, parsed by the same function.
//
// Credentials stay in memory, and no error of this package repeats a value of the Secret or the URL.
package gitauth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// ErrRefused is a server that does not take the credentials: an SSH server that lets none of the keys in, or the API of a
// GitHub App that does not know the app or its installation. Over HTTP the git server itself says so with a status.
var ErrRefused = errors.New("credentials refused")

// Credentials say how to reach one server. The nil *Credentials is anonymous access with the system's trust.
// They are immutable and safe for concurrent use.
type Credentials struct {
	authorization string      // the whole header of basic and bearer authentication
	app           *githubApp  // mints tokens instead
	tls           *tls.Config // nil: the system's roots, no client certificate
	proxy         *url.URL    // nil: as the environment says
	ssh           *SSH
	transport     [sha256.Size]byte // digest of TLS and proxy
	identity      [sha256.Size]byte // digest of everything
}

// Basic is a user name and a password or token.
func Basic(username, password string) *Credentials {
	c := &Credentials{authorization: basic(username, password)}
	c.seal()
	return c
}

// Bearer is a token sent as it is.
func Bearer(token string) *Credentials {
	c := &Credentials{authorization: "Bearer " + token}
	c.seal()
	return c
}

// WithTLS is c that also trusts the PEM bundle caBundle and shows the PEM client certificate. Empty means none.
func (c *Credentials) WithTLS(caBundle, certificate, key []byte) (*Credentials, error) {
	if len(caBundle) == 0 && len(certificate) == 0 && len(key) == 0 {
		return c, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(caBundle) > 0 {
		// Like source-controller's HTTP client: the bundle adds to the system's roots.
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(caBundle) {
			return nil, fmt.Errorf("parsing CA bundle: no certificate in it")
		}
		config.RootCAs = roots
	}
	if len(certificate) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("parsing client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	d := c.clone()
	d.tls = config
	d.transport = digest(d.transport[:], []byte("tls"), caBundle, certificate, key)
	d.seal()
	return d, nil
}

func (c *Credentials) clone() *Credentials {
	if c == nil {
		return &Credentials{}
	}
	d := *c
	return &d
}

func basic(username, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
}

// seal computes the digest of everything.
func (c *Credentials) seal() {
	parts := [][]byte{c.transport[:], []byte(c.authorization)}
	if c.ssh != nil {
		parts = append(parts, c.ssh.digest[:])
	}
	if c.app != nil {
		parts = append(parts, c.app.digest[:])
	}
	c.identity = digest(parts...)
}

// Authorize sets the Authorization header of a request. Only a token that has to be minted can fail.
func (c *Credentials) Authorize(ctx context.Context, header http.Header) error {
	if c == nil {
		return nil
	}
	value := c.authorization
	if c.app != nil {
		token, err := c.app.token(ctx)
		if err != nil {
			return err
		}
		value = basic(appUser, token)
	}
	if value != "" {
		header["Authorization"] = []string{value}
	}
	return nil
}

// TLS is the client configuration for HTTPS, nil for the defaults. Do not change it.
func (c *Credentials) TLS() *tls.Config {
	if c == nil {
		return nil
	}
	return c.tls
}

// Proxy is the proxy to go through: http, https or socks5, with its own userinfo. Nil means as the environment says.
func (c *Credentials) Proxy() *url.URL {
	if c == nil {
		return nil
	}
	return c.proxy
}

// SSH is the identity for SSH, nil if there is none.
func (c *Credentials) SSH() *SSH {
	if c == nil {
		return nil
	}
	return c.ssh
}

// TransportKey is equal for credentials that may share connections of one http.Transport: the same trust, client
// certificate and proxy. Keep it in memory only.
func (c *Credentials) TransportKey() [sha256.Size]byte {
	if c == nil {
		return [sha256.Size]byte{}
	}
	return c.transport
}

// Digest is equal for equal credentials, so that targets can share a listing. Keep it in memory only.
func (c *Credentials) Digest() [sha256.Size]byte {
	if c == nil {
		return [sha256.Size]byte{}
	}
	return c.identity
}

// String keeps secrets out of every format verb.
func (c *Credentials) String() string { return "[credentials]" }

// GoString keeps secrets out of %#v.
func (c *Credentials) GoString() string { return "[credentials]" }

// digest hashes length-prefixed parts, so that moving a byte from one to the next changes it.
func digest(parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
