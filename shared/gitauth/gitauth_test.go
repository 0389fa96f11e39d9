package gitauth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

func endpoint(t *testing.T, raw string) *giturl.Endpoint {
	t.Helper()
	ep, err := giturl.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func data(pairs ...string) map[string][]byte {
	d := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i]] = []byte(pairs[i+1])
	}
	return d
}

func TestAuthorizationHeader(t *testing.T) {
	tests := []struct {
		name, url string
		data      map[string][]byte
		want, err string
	}{
		{name: "no Secret is anonymous", url: "https://h/r"},
		{name: "an empty Secret too", url: "https://h/r", data: data()},
		{name: "user name and password", url: "https://h/r", data: data("username", "alice", "password", "pw"), want: "Basic YWxpY2U6cHc="},
		{name: "values are not trimmed", url: "https://h/r", data: data("username", "alice", "password", "pw\n"), want: "Basic YWxpY2U6cHcK"},
		{name: "a user name alone", url: "https://h/r", data: data("username", "alice"), want: "Basic YWxpY2U6"},
		{name: "a password alone is a mistake", url: "https://h/r", data: data("password", "pw"), err: "building auth options: "},
		{name: "a token", url: "https://h/r", data: data("bearerToken", "tok"), want: "Bearer tok"},
		{name: "a token beats user name and password", url: "https://h/r", data: data("bearerToken", "tok", "username", "alice", "password", "pw"), want: "Bearer tok"},
		{name: "even an empty one", url: "https://h/r", data: data("bearerToken", "", "username", "alice", "password", "pw")},
		{name: "the URL's userinfo counts", url: "https://alice:pw@h/r", want: "Basic YWxpY2U6cHc="},
		{name: "and fills in what is missing", url: "https://alice:pw@h/r", data: data("username", "bob"), want: "Basic Ym9iOnB3"},
		{name: "SSH without an identity", url: "ssh://h/r", err: "building auth options: "},
		{name: "SSH without known_hosts", url: "ssh://h/r", data: data("identity", "x"), err: "building auth options: "},
		{name: "SSH with a broken identity", url: "git@h:r", data: data("identity", "x", "known_hosts", "h ssh-ed25519 AAAA"), err: "parsing SSH identity: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cred, err := gitauth.FromSecret(endpoint(t, tt.url), tt.data)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s…", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			if err := cred.Authorize(t.Context(), h); err != nil || h.Get("Authorization") != tt.want {
				t.Errorf("Authorization %q, %v, want %q", h.Get("Authorization"), err, tt.want)
			}
		})
	}
}

func privateKey(t *testing.T, passphrase string) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

func TestEncryptedIdentity(t *testing.T) {
	ed, _, _ := publicKeys(t)
	known := append([]byte("h "), ssh.MarshalAuthorizedKey(ed)...)
	key := privateKey(t, "open sesame")
	ep := endpoint(t, "ssh://h/r")
	cred, err := gitauth.FromSecret(ep, map[string][]byte{"identity": key, "known_hosts": known, "password": []byte("open sesame")})
	if err != nil || cred.SSH() == nil {
		t.Errorf("the right passphrase: %v", err)
	}
	for _, passphrase := range []string{"", "s3cr3t-pw"} {
		_, err := gitauth.FromSecret(ep, map[string][]byte{"identity": key, "known_hosts": known, "password": []byte(passphrase)})
		if err == nil || !strings.HasPrefix(err.Error(), "parsing SSH identity: ") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("passphrase %q: %v", passphrase, err)
		}
	}
	plain := map[string][]byte{"identity": privateKey(t, ""), "known_hosts": known, "password": []byte("s3cr3t-pw")}
	if cred, err := gitauth.FromSecret(ep, plain); err != nil || cred.SSH() == nil {
		t.Errorf("a password beside a key that needs none: %v", err)
	}
}

func TestTLS(t *testing.T) {
	ca, cert, key := certificate(t)
	cred, err := gitauth.FromSecret(endpoint(t, "https://h/r"), map[string][]byte{"ca.crt": ca, "caFile": []byte("ignored"), "tls.crt": cert, "tls.key": key})
	if err != nil {
		t.Fatal(err)
	}
	if config := cred.TLS(); config == nil || config.RootCAs == nil || len(config.Certificates) != 1 {
		t.Errorf("TLS configuration %+v, want roots and a certificate", config)
	}
	old, err := gitauth.FromSecret(endpoint(t, "https://h/r"), map[string][]byte{"caFile": ca})
	if err != nil || old.TLS() == nil {
		t.Errorf("caFile: %v, %v", old, err)
	}
	for name, d := range map[string]map[string][]byte{
		"a CA bundle without a certificate": data("ca.crt", "nothing"),
		"a certificate without its key":     {"tls.crt": cert},
	} {
		if _, err := gitauth.FromSecret(endpoint(t, "https://h/r"), d); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func certificate(t *testing.T) (ca, cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return cert, cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func TestProxy(t *testing.T) {
	var none *gitauth.Credentials
	tests := []struct {
		name string
		data map[string][]byte
		want string // the whole URL; empty: refused
	}{
		{"an address", data("address", "http://proxy.example.com:3128"), "http://proxy.example.com:3128"},
		{"with user name and password", data("address", "https://proxy.example.com", "username", "alice", "password", "pw"), "https://alice:pw@proxy.example.com"},
		{"socks5", data("address", "socks5://127.0.0.1:1080"), "socks5://127.0.0.1:1080"},
		{"no address", data("username", "alice"), ""},
		{"no scheme", data("address", "proxy.example.com:3128"), ""},
		{"a scheme that is no proxy's", data("address", "ftp://proxy.example.com"), ""},
		{"a malformed address", data("address", "http://alice:s3cr3t-pw@h:port"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cred, err := none.WithProxy(tt.data)
			if tt.want == "" {
				if err == nil || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || cred.Proxy().String() != tt.want {
				t.Errorf("proxy %v, %v, want %s", cred.Proxy(), err, tt.want)
			}
		})
	}
}

func TestDigestsTellCredentialsApart(t *testing.T) {
	ca, cert, key := certificate(t)
	ep := endpoint(t, "https://h/r")
	seen := map[[32]byte]string{}
	for name, d := range map[string]map[string][]byte{
		"none":               nil,
		"alice":              data("username", "alice", "password", "pw"),
		"alice's other":      data("username", "alice", "password", "pw2"),
		"the colon moves":    data("username", "alice:p", "password", "w"),
		"token":              data("bearerToken", "tok"),
		"alice with trust":   {"username": []byte("alice"), "password": []byte("pw"), "ca.crt": ca},
		"client certificate": {"tls.crt": cert, "tls.key": key},
	} {
		cred, err := gitauth.FromSecret(ep, d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := gitauth.FromSecret(ep, d)
		if err != nil || again.Digest() != cred.Digest() || again.TransportKey() != cred.TransportKey() {
			t.Errorf("%s: equal credentials have different digests", name)
		}
		if name == "the colon moves" {
			continue // "alice:p" and "w" make the same header as "alice" and "p:w", and differ from all here
		}
		if other, ok := seen[cred.Digest()]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[cred.Digest()] = name
	}
}

func TestCredentialsPrintNothing(t *testing.T) {
	cred, err := gitauth.FromSecret(endpoint(t, "https://alice:s3cr3t@h/r"), data("bearerToken", "s3cr3t"))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, cred); strings.Contains(text, "s3cr3t") || strings.Contains(text, "czNjcjN0") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"denied for Authorization: Basic c29tZXRva2Vu": "denied for Authorization: Basic ***",
		"see https://alice:pw@h/r?a=b&private_token=x": "see https://***@h/r?a=***&private_token=***",
		"password=hunter2, please":                     "password=***, please",
		"access denied or repository not exported: /r": "access denied or repository not exported: /r",
	} {
		if got := gitauth.Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}
