package gitauth

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
)

// SSH is a key and the host keys it trusts.
type SSH struct {
	signer ssh.Signer
	known  *KnownHosts
	config func() (*ssh.ClientConfig, error) // instead of both
	digest [sha256.Size]byte
}

// NewSSH reads a PEM private key and the text of a known_hosts file. The passphrase counts only for a key that is
// encrypted: a Secret may hold a password that is for something else.
func NewSSH(identity []byte, passphrase string, knownHosts []byte) (*SSH, error) {
	signer, err := ssh.ParsePrivateKey(identity)
	if errors.As(err, new(*ssh.PassphraseMissingError)) && passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(identity, []byte(passphrase))
	}
	if err != nil {
		return nil, fmt.Errorf("parsing SSH identity: %w", err)
	}
	known, err := ParseKnownHosts(knownHosts)
	if err != nil {
		return nil, fmt.Errorf("parsing known_hosts: %w", err)
	}
	return &SSH{signer: signer, known: known, digest: digest(identity, []byte(passphrase), knownHosts)}, nil
}

// SSHFromConfig is an identity that another library holds. Its configuration is used as it is, and since nothing tells
// two of them apart, each exchange has a connection of its own.
func SSHFromConfig(config func() (*ssh.ClientConfig, error)) *SSH { return &SSH{config: config} }

// Shareable says whether exchanges with these credentials may share a connection.
func (s *SSH) Shareable() bool { return s.config == nil }

// WithSSH is c with an SSH identity.
func (c *Credentials) WithSSH(s *SSH) *Credentials {
	d := c.clone()
	d.ssh = s
	d.seal()
	return d
}

// ErrUnknownHost is the refusal to connect to a host of which known_hosts holds no key.
var ErrUnknownHost = errors.New("known_hosts holds no key of this host")

// ErrHostKey is the refusal of a host key that known_hosts does not hold.
var ErrHostKey = errors.New("host key differs from known_hosts")

// ClientConfig is the configuration for one server. Only the algorithms of the keys recorded for this very host are
// offered: with others the server might pick a key that nobody recorded.
func (s *SSH) ClientConfig(user, host, port string) (*ssh.ClientConfig, error) {
	if s.config != nil {
		return s.config()
	}
	keys := s.known.keys(host, port)
	if len(keys.plain) == 0 && len(keys.authorities) == 0 {
		return nil, ErrUnknownHost
	}
	return &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(s.signer)},
		HostKeyAlgorithms: keys.algorithms(),
		HostKeyCallback: func(_ string, remote net.Addr, key ssh.PublicKey) error {
			return keys.check(net.JoinHostPort(host, port), remote, key)
		},
	}, nil
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
