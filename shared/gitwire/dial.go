package gitwire

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
)

// dialThrough opens a TCP connection for SSH, through the proxy of the credentials if they have one: socks5 or HTTP
// CONNECT.
func dialThrough(ctx context.Context, cred *gitauth.Credentials, address string) (net.Conn, error) {
	via, direct := cred.Proxy(), &net.Dialer{KeepAlive: 30 * time.Second}
	if via == nil {
		return direct.DialContext(ctx, "tcp", address)
	}
	if via.Scheme == "socks5" || via.Scheme == "socks5h" {
		d, err := proxy.FromURL(via, direct)
		if err != nil {
			return nil, fmt.Errorf("socks5 proxy: unusable address")
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	return connect(ctx, direct, via, cred.TLS(), address)
}

// connect asks an HTTP proxy for a tunnel. An https one is trusted as trust says, nil for the system's roots.
func connect(ctx context.Context, direct *net.Dialer, via *url.URL, trust *tls.Config, address string) (_ net.Conn, err error) {
	port := via.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[via.Scheme]
	}
	nc, err := direct.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	defer func() {
		if err != nil {
			_ = nc.Close()
		}
	}()
	// The tunnel's owner ends with the context too, before anybody else can see to it.
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if via.Scheme == "https" {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if trust != nil {
			config = trust.Clone()
		}
		config.ServerName = via.Hostname()
		secured := tls.Client(nc, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		nc = secured
	}
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: http.Header{"User-Agent": {userAgent}},
	}
	if u := via.User; u != nil {
		password, _ := u.Password()
		auth := http.Request{Header: http.Header{}}
		auth.SetBasicAuth(u.Username(), password)
		req.Header.Set("Proxy-Authorization", auth.Header.Get("Authorization"))
	}
	if err := req.Write(nc); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, req) //nolint:bodyclose // the answer to CONNECT has no body
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("proxy: answered CONNECT with %d", resp.StatusCode)
	}
	if br.Buffered() > 0 {
		return &bufferedConn{Conn: nc, r: br}, nil
	}
	return nc, nil
}

// bufferedConn first reads what arrived together with the proxy's answer.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(b []byte) (int, error) { return c.r.Read(b) }
