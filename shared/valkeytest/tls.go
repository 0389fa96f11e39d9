package valkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// TLS is a real single node that speaks TLS, with its authority's certificate in caFile; it ends with the test.
func TLS(t testing.TB) (server Server, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "valkeytest"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	caFile = filepath.Join(dir, "tls.crt")
	keyFile := filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{caFile: {Type: "CERTIFICATE", Bytes: certificate}, keyFile: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, err := loopback.Port()
	if err != nil {
		t.Fatal(err)
	}
	_, stop, err := start("--tls-port", strconv.Itoa(port), "--tls-cert-file", caFile, "--tls-key-file", keyFile, "--tls-auth-clients", "no")
	if err != nil {
		t.Fatalf("a real redis with TLS is needed: %v", err)
	}
	t.Cleanup(stop)
	return Server{Kind: "tls", Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Prefix: newPrefix()}, caFile
}
