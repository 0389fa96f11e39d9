package gitauth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestKnownHostsOffersThisHostsKeysOnly(t *testing.T) {
	const name = "02-known-hosts-foreign-key-types"
	var c struct {
		Host   string
		Port   int
		Expect struct {
			Algorithms []string `json:"host_key_algorithms"`
			Runs       int      `json:"deterministic_over_runs"`
		}
	}
	gittest.Case(t, name, &c)
	known := gittest.CaseFile(t, name, "known_hosts")
	for range c.Expect.Runs {
		identity, err := gitauth.NewSSH(privateKey(t, ""), "", known)
		if err != nil {
			t.Fatal(err)
		}
		config, err := identity.ClientConfig("git", c.Host, fmt.Sprint(c.Port))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(config.HostKeyAlgorithms, c.Expect.Algorithms) {
			t.Fatalf("offers %q, want %q", config.HostKeyAlgorithms, c.Expect.Algorithms)
		}
	}
}

func publicKeys(t *testing.T) (ed, ec, rs ssh.PublicKey) {
	t.Helper()
	edKey, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsKey, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	var keys []ssh.PublicKey
	for _, k := range []any{edKey, &ecKey.PublicKey, &rsKey.PublicKey} {
		key, err := ssh.NewPublicKey(k)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys[0], keys[1], keys[2]
}

func TestKnownHosts(t *testing.T) {
	ed, ec, rs := publicKeys(t)
	line := func(hosts string, key ssh.PublicKey) string {
		return hosts + " " + string(ssh.MarshalAuthorizedKey(key))
	}
	tests := []struct {
		name, known, host, port string
		offered                 string // algorithms, comma separated; empty: the host is not known
		accepts                 []ssh.PublicKey
		refuses                 []ssh.PublicKey
	}{
		{name: "one key", known: line("h", ed), host: "h", port: "22", offered: "ssh-ed25519", accepts: []ssh.PublicKey{ed}, refuses: []ssh.PublicKey{ec, rs}},
		{name: "an RSA key signs with SHA-2", known: line("h", rs), host: "h", port: "22", offered: "rsa-sha2-512,rsa-sha2-256", accepts: []ssh.PublicKey{rs}},
		{name: "also beside another type, in a fixed order", known: line("h", rs) + line("h", ec), host: "h", port: "22",
			offered: "ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256", accepts: []ssh.PublicKey{rs, ec}},
		{name: "a port has keys of its own", known: line("h", ed) + line("[h]:2222", ec), host: "h", port: "2222", offered: "ecdsa-sha2-nistp256", refuses: []ssh.PublicKey{ed}},
		{name: "another host's keys are not offered", known: line("other", ec) + line("h", ed), host: "h", port: "22", offered: "ssh-ed25519"},
		{name: "a port without brackets", known: line("h:2222", ed), host: "h", port: "2222", offered: "ssh-ed25519"},
		{name: "the usual port in brackets", known: line("[h]:22", ed), host: "h", port: "22", offered: "ssh-ed25519"},
		{name: "an IPv6 address without a port", known: line("2001:db8::1", ed), host: "2001:db8::1", port: "22", offered: "ssh-ed25519"},
		{name: "several names on a line", known: line("x,h,y", ed), host: "h", port: "22", offered: "ssh-ed25519"},
		{name: "patterns", known: line("*.example.com", ed), host: "git.example.com", port: "22", offered: "ssh-ed25519"},
		{name: "a pattern is no suffix", known: line("*.example.com", ed), host: "example.com", port: "22"},
		{name: "an exception", known: line("*.example.com,!git.example.com", ed), host: "git.example.com", port: "22"},
		{name: "an unknown host", known: line("h", ed), host: "i", port: "22"},
		{name: "an unknown port", known: line("h", ed), host: "h", port: "23"},
		{name: "an IPv6 address", known: line("[::1]:2222", ed), host: "::1", port: "2222", offered: "ssh-ed25519"},
		{name: "comments and empty lines", known: "# c\n\n" + line("h", ed) + "\n# d\n", host: "h", port: "22", offered: "ssh-ed25519"},
		{name: "a revoked key", known: line("h", ed) + "@revoked " + line("h", ed) + line("h", ec), host: "h", port: "22",
			offered: "ssh-ed25519,ecdsa-sha2-nistp256", accepts: []ssh.PublicKey{ec}, refuses: []ssh.PublicKey{ed}},
		{name: "a hashed name", known: line(knownhosts.HashHostname("h"), ed), host: "h", port: "22", offered: "ssh-ed25519"},
		{name: "a hashed name of another", known: line(knownhosts.HashHostname("i"), ed), host: "h", port: "22"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			identity, err := gitauth.NewSSH(privateKey(t, ""), "", []byte(tt.known))
			if err != nil {
				t.Fatal(err)
			}
			config, err := identity.ClientConfig("git", tt.host, tt.port)
			if tt.offered == "" {
				if !errors.Is(err, gitauth.ErrUnknownHost) {
					t.Errorf("error %v, want ErrUnknownHost", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(config.HostKeyAlgorithms, ","); got != tt.offered {
				t.Errorf("offers %s, want %s", got, tt.offered)
			}
			address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 22}
			for _, key := range tt.accepts {
				if err := config.HostKeyCallback(tt.host, address, key); err != nil {
					t.Errorf("%s key: %v", key.Type(), err)
				}
			}
			for _, key := range tt.refuses {
				if err := config.HostKeyCallback(tt.host, address, key); !errors.Is(err, gitauth.ErrHostKey) {
					t.Errorf("%s key: %v, want ErrHostKey", key.Type(), err)
				}
			}
		})
	}
	for _, broken := range []string{"", "# only a comment\n", "h ssh-ed25519", "h ssh-ed25519 %%%"} {
		if _, err := gitauth.NewSSH(privateKey(t, ""), "", []byte(broken)); err == nil || !strings.HasPrefix(err.Error(), "parsing known_hosts: ") {
			t.Errorf("known_hosts %q: %v, want an error", broken, err)
		}
	}
}

func TestKnownHostsAuthority(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	_, ec, _ := publicKeys(t)
	certificate := &ssh.Certificate{Key: ec, CertType: ssh.HostCert, ValidPrincipals: []string{"h"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	known := append([]byte("@cert-authority h "), ssh.MarshalAuthorizedKey(authority.PublicKey())...)
	identity, err := gitauth.NewSSH(privateKey(t, ""), "", known)
	if err != nil {
		t.Fatal(err)
	}
	config, err := identity.ClientConfig("git", "h", "22")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(config.HostKeyAlgorithms, ssh.CertAlgoECDSA256v01) {
		t.Errorf("offers %q, want certificates", config.HostKeyAlgorithms)
	}
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 22}
	if err := config.HostKeyCallback("h:22", address, certificate); err != nil {
		t.Errorf("a certificate of the authority: %v", err)
	}
	if err := config.HostKeyCallback("h:22", address, ec); err == nil {
		t.Error("the bare key was accepted")
	}
}
