package gitauth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the hash that hashed known_hosts lines are made with
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KnownHosts are the host keys of a known_hosts file.
type KnownHosts struct{ lines []knownLine }

type knownLine struct {
	marker   string // "", "cert-authority" or "revoked"
	patterns []string
	key      ssh.PublicKey
}

// ParseKnownHosts reads the text of a known_hosts file: plain and hashed hosts, patterns with * ? and !,
// [host]:port, and the markers @cert-authority and @revoked.
func ParseKnownHosts(text []byte) (*KnownHosts, error) {
	k := &KnownHosts{}
	for len(bytes.TrimSpace(text)) > 0 {
		marker, hosts, key, _, rest, err := ssh.ParseKnownHosts(text)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		k.lines = append(k.lines, knownLine{marker: marker, patterns: hosts, key: key})
		text = rest
	}
	if len(k.lines) == 0 {
		return nil, errors.New("no host key in it")
	}
	return k, nil
}

// hostKeys are the keys that one host may show.
type hostKeys struct {
	plain, authorities, revoked []ssh.PublicKey
}

// keys collects the lines for a host: those of [host]:port, and those of the bare host for port 22, as ssh does.
func (k *KnownHosts) keys(host, port string) hostKeys {
	name := knownName(host, port)
	var found hostKeys
	for _, line := range k.lines {
		if !line.covers(name) {
			continue
		}
		switch line.marker {
		case "revoked":
			found.revoked = append(found.revoked, line.key)
		case "cert-authority":
			found.authorities = append(found.authorities, line.key)
		default:
			found.plain = append(found.plain, line.key)
		}
	}
	return found
}

// knownName is how known_hosts calls a host.
func knownName(host, port string) string {
	if port == "22" {
		return host
	}
	return "[" + host + "]:" + port
}

func (l knownLine) covers(name string) bool {
	covered := false
	for _, pattern := range l.patterns {
		negated := strings.HasPrefix(pattern, "!")
		if !hostMatches(strings.TrimPrefix(pattern, "!"), name) {
			continue
		}
		if negated {
			return false
		}
		covered = true
	}
	return covered
}

func hostMatches(pattern, name string) bool {
	if strings.HasPrefix(pattern, "|1|") {
		return hashMatches(pattern, name)
	}
	// Some tools write [host]:22 for the bare host, or host:port without brackets.
	if host, port, err := net.SplitHostPort(pattern); err == nil {
		pattern = knownName(host, port)
	}
	return wildcard(strings.ToLower(pattern), strings.ToLower(name))
}

func hashMatches(pattern, name string) bool {
	salt, sum, ok := strings.Cut(pattern[len("|1|"):], "|")
	if !ok {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, key)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}

// wildcard matches * (any run) and ? (one byte). Brackets are ordinary, unlike in path.Match.
func wildcard(pattern, name string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			for i := 0; i <= len(name); i++ {
				if wildcard(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		case '?':
			if name == "" {
				return false
			}
		default:
			if name == "" || name[0] != pattern[0] {
				return false
			}
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}

// preference is the order in which algorithms are offered, whatever the order of the file. ssh-rsa keys sign with
// SHA-2 only: modern servers refuse SHA-1, and a key's type says nothing about the hash.
var preference = []struct{ keyType, algorithm string }{
	{ssh.KeyAlgoED25519, ssh.KeyAlgoED25519},
	{ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKED25519},
	{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA256},
	{ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA384},
	{ssh.KeyAlgoECDSA521, ssh.KeyAlgoECDSA521},
	{ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoSKECDSA256},
	{ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA512},
	{ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA256},
}

// certificates are offered, before the plain algorithms, when known_hosts trusts an authority for the host: the
// certified key may be of any type.
var certificates = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// algorithms are the host key algorithms to offer, in a fixed order.
func (h hostKeys) algorithms() []string {
	var offered []string
	if len(h.authorities) > 0 {
		offered = append(offered, certificates...)
	}
	for _, p := range preference {
		for _, key := range h.plain {
			if key.Type() == p.keyType {
				offered = append(offered, p.algorithm)
				break
			}
		}
	}
	return offered
}

// check accepts a key that is recorded, or certified by a recorded authority, and not revoked.
func (h hostKeys) check(address string, remote net.Addr, key ssh.PublicKey) error {
	checker := &ssh.CertChecker{
		IsHostAuthority: func(authority ssh.PublicKey, _ string) bool { return holds(h.authorities, authority) },
		IsRevoked: func(cert *ssh.Certificate) bool {
			return holds(h.revoked, cert.Key) || holds(h.revoked, cert.SignatureKey)
		},
		HostKeyFallback: func(string, net.Addr, ssh.PublicKey) error {
			if holds(h.revoked, key) || !holds(h.plain, key) {
				return fmt.Errorf("%w (%s)", ErrHostKey, key.Type())
			}
			return nil
		},
	}
	return checker.CheckHostKey(address, remote, key)
}

func holds(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	for _, k := range keys {
		if sameKey(k, key) {
			return true
		}
	}
	return false
}
