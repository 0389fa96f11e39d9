package gitwire

import (
	"crypto/sha256"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

const (
	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 90 * time.Second
	// handshakeTimeout bounds dialling and shaking hands where the context allows more.
	handshakeTimeout = 30 * time.Second
	// maxIdlePerHost keeps as many connections as a sweep may use on one host at a time.
	maxIdlePerHost = 64
	// DefaultMaxResponse is the limit of an answer when a request sets none.
	DefaultMaxResponse = 64 << 20
	// maxDrain is what is still read of an answer nobody wants, so that its connection can be used again.
	maxDrain = 256 << 10

	userAgent = "git/tidemark"
)

// Pool owns connections to git servers. The zero value is ready for use, and a Pool is safe for concurrent use.
type Pool struct {
	mu         sync.Mutex
	transports map[[sha256.Size]byte]*http.Transport
	ssh        map[sshKey]*sshConn
	moved      map[string]*giturl.Endpoint // where a repository's own origin redirected to
}

// transport returns the HTTP transport for a trust, client certificate and proxy.
func (p *Pool) transport(cred *gitauth.Credentials) *http.Transport {
	key := cred.TransportKey()
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.transports[key]; ok {
		return t
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: handshakeTimeout, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
	if config := cred.TLS(); config != nil {
		t.TLSClientConfig = config.Clone()
	} else {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if proxy := cred.Proxy(); proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	if p.transports == nil {
		p.transports = map[[sha256.Size]byte]*http.Transport{}
	}
	p.transports[key] = t
	return t
}

// Close closes the idle HTTP connections and all SSH connections. The Pool stays usable.
func (p *Pool) Close() {
	p.mu.Lock()
	transports, conns := p.transports, p.ssh
	p.transports, p.ssh = nil, nil
	p.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	for _, c := range conns {
		c.close()
	}
}

// where returns the place that the repository's origin redirected to, or the endpoint itself.
func (p *Pool) where(ep *giturl.Endpoint) *giturl.Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := p.moved[ep.String()]; ok {
		return ep.WithPath(to.Path())
	}
	return ep
}

// setMoved remembers where discovery ended; at the endpoint itself there is nothing to remember.
func (p *Pool) setMoved(from, to *giturl.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to.Path() == from.Path() {
		delete(p.moved, from.String())
		return
	}
	if p.moved == nil {
		p.moved = map[string]*giturl.Endpoint{}
	}
	p.moved[from.String()] = to
}
