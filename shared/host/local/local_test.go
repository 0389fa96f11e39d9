package local

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
)

type waiting struct {
	serving chan struct{}
	stopped chan struct{}
}

func (f waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	close(f.serving)
	<-host.Draining(r.Context())
	_, _ = io.WriteString(w, "finished")
}

func (f waiting) Stop(context.Context) error { close(f.stopped); return nil }

func TestRequestsInFlightAreFinishedBeforeTheFunctionStops(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := waiting{make(chan struct{}), make(chan struct{})}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, Config{RequestTimeout: time.Minute, DrainTimeout: time.Minute}, listener, f)
	}()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+listener.Addr().String(), "text/plain", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-f.serving
	end()
	if got := <-answered; got != "finished" {
		t.Errorf("the request in flight ends with %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	select {
	case <-f.stopped:
	default:
		t.Error("the function was not stopped")
	}
}

// certificate writes one for loopback, and its key.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(certFile, public, 0o600), os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return certFile, keyFile, roots
}

func TestServesHTTPS(t *testing.T) {
	cert, key, roots := certificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	cfg := Config{RequestTimeout: time.Minute, DrainTimeout: time.Minute, CertFile: cert, KeyFile: key}
	go func() {
		served <- Serve(ctx, cfg, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second}
	resp, err := client.Get("https://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("answered %q, %v", body, err)
	}
	end()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestWrongCertificatesAreRefusedAtTheStart(t *testing.T) {
	cert, key, _ := certificate(t)
	for name, c := range map[string]struct{ cert, key, want string }{
		"none":           {"", "", ""},
		"both":           {cert, key, ""},
		"no key":         {cert, "", "TLS_KEY_FILE is not set"},
		"no certificate": {"", key, "TLS_CERT_FILE is not set"},
		"no such file":   {cert + "x", key, "TLS_CERT_FILE ("},
		"swapped":        {key, cert, "TLS_CERT_FILE ("},
	} {
		err := (&Config{CertFile: c.cert, KeyFile: c.key}).Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
