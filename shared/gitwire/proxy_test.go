package gitwire_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// httpProxy is a proxy for http, https and CONNECT that wants alice and her password.
func httpProxy(t *testing.T, secure bool) (server *httptest.Server, used *atomic.Int64) {
	t.Helper()
	used = &atomic.Int64{}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:pw"))
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		used.Add(1)
		if r.Method != http.MethodConnect {
			r.RequestURI = ""
			r.Header.Del("Proxy-Authorization")
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
			return
		}
		far, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		near, early, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = far.Close()
			return
		}
		join(near, early, far)
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, used
}

// join passes on what comes from either side; from reads a, with what had been read of it before.
func join(a net.Conn, from io.Reader, b net.Conn) {
	go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
	go func() { _, _ = io.Copy(b, from); _ = b.Close() }()
}

// socksProxy speaks as much of SOCKS 5 as a client with a password needs.
func socksProxy(t *testing.T) (address string, used *atomic.Int64) {
	t.Helper()
	used = &atomic.Int64{}
	listener := listen(t)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				r := bufio.NewReader(near)
				if far := socksHandshake(near, r); far != nil {
					used.Add(1)
					join(near, r, far)
				} else {
					_ = near.Close()
				}
			}()
		}
	}()
	return listener.Addr().String(), used
}

func socksHandshake(near net.Conn, r *bufio.Reader) net.Conn {
	read := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return b
	}
	head := read(2)
	read(int(head[1]))
	_, _ = near.Write([]byte{5, 2}) // user name and password, please
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	if user != "alice" || password != "pw" {
		_, _ = near.Write([]byte{1, 1})
		return nil
	}
	_, _ = near.Write([]byte{1, 0})
	request := read(4)
	var host string
	switch request[3] {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(int(read(1)[0])))
	default:
		return nil
	}
	port := binary.BigEndian.Uint16(read(2))
	far, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.ParseIP(host), Port: int(port)})
	if err != nil {
		return nil
	}
	_, _ = near.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return far
}

func TestThroughAProxy(t *testing.T) {
	plain, secure := gittest.NewServer(t), gittest.NewTLSServer(t)
	commit := plain.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	secured := secure.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	door := plain.SSH(gittest.SSHOptions{})
	web, webUsed := httpProxy(t, false)
	socks, socksUsed := socksProxy(t)
	proxies := map[string]struct {
		address string
		used    *atomic.Int64
	}{"http": {web.URL, webUsed}, "socks5": {"socks5://" + socks, socksUsed}}
	// net/http does not send loopback addresses to the proxy of the environment; one that is given it uses.
	servers := map[string]struct {
		url, want string
		data      map[string][]byte
	}{
		"http":  {plain.URL + "/r.git", commit, nil},
		"https": {secure.URL + "/r.git", secured, map[string][]byte{"ca.crt": secure.CA}},
		"ssh":   {door.URL("r.git"), commit, map[string][]byte{"identity": door.Identity, "known_hosts": door.KnownHosts()}},
	}
	for via, proxy := range proxies {
		for to, server := range servers {
			t.Run(to+" through "+via, func(t *testing.T) {
				proxied := func(password string) *gitauth.Credentials {
					cred, err := credentials(t, server.url, server.data).WithProxy(map[string][]byte{
						"address": []byte(proxy.address), "username": []byte("alice"), "password": []byte(password)})
					if err != nil {
						t.Fatal(err)
					}
					return cred
				}
				before := proxy.used.Load()
				refs, err := list(t, server.url, proxied("pw"), nil)
				if err != nil || refs["refs/heads/main"] != server.want {
					t.Errorf("refs %v, error %v", refs, err)
				}
				if proxy.used.Load() != before+1 {
					t.Errorf("the proxy was used %d times, want once", proxy.used.Load()-before)
				}
				refs, err = list(t, server.url, proxied("s3cr3t-pw"), nil)
				if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "alice") {
					t.Errorf("with the wrong password: refs %v, error %v", refs, err)
				}
			})
		}
	}
}

func TestClientCertificates(t *testing.T) {
	server := gittest.NewTLSServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	url := server.URL + "/r.git"
	if _, err := list(t, url, nil, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server whose certificate nobody vouches for: %v", err)
	}
	refs, err := list(t, url, credentials(t, url, map[string][]byte{"caFile": server.CA}), nil)
	if err != nil || refs["refs/heads/main"] != commit {
		t.Errorf("with its CA: refs %v, error %v", refs, err)
	}

	// A server that wants to see a certificate.
	strict := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 || r.TLS.PeerCertificates[0].Subject.CommonName != "alice" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(gittest.CaseFile(t, "06-annotated-tags", "v2-lsrefs.bin"))
	}))
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.Config.ErrorLog = log.New(io.Discard, "", 0)
	strict.StartTLS()
	t.Cleanup(strict.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: strict.Certificate().Raw})
	certificate, key := clientCertificate(t, "alice")
	url = strict.URL + "/r.git"
	if refs, err := list(t, url, credentials(t, url, map[string][]byte{"ca.crt": ca, "tls.crt": certificate, "tls.key": key}), nil); err != nil || len(refs) == 0 {
		t.Errorf("with a certificate: refs %v, error %v", refs, err)
	}
	if refs, err := list(t, url, credentials(t, url, map[string][]byte{"ca.crt": ca}), nil); err == nil {
		t.Errorf("without a certificate: refs %v", refs)
	}
}

func clientCertificate(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// An https proxy is trusted as the Secret says, for SSH too.
func TestThroughAnHTTPSProxy(t *testing.T) {
	server := gittest.NewServer(t)
	commit := server.Repository("r.git").Commit("main", "first", map[string]string{"f": "x"})
	door := server.SSH(gittest.SSHOptions{})
	proxy, used := httpProxy(t, true)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	for _, c := range []struct {
		url  string
		data map[string][]byte
	}{
		{server.URL + "/r.git", map[string][]byte{"ca.crt": ca}},
		{door.URL("r.git"), map[string][]byte{"ca.crt": ca, "identity": door.Identity, "known_hosts": door.KnownHosts()}},
	} {
		cred, err := credentials(t, c.url, c.data).WithProxy(map[string][]byte{
			"address": []byte(proxy.URL), "username": []byte("alice"), "password": []byte("pw")})
		if err != nil {
			t.Fatal(err)
		}
		before := used.Load()
		refs, err := list(t, c.url, cred, nil)
		if err != nil || refs["refs/heads/main"] != commit || used.Load() != before+1 {
			t.Errorf("%s: refs %v, error %v, used %d times", c.url, refs, err, used.Load()-before)
		}
	}
}
