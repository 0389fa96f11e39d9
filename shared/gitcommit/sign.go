package gitcommit

import (
	"bytes"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// SSHSigner signs commits with an SSH key, in the form that git's gpg.format=ssh makes and verifies.
type SSHSigner struct{ key ssh.Signer }

// SignerFromSecret reads the key to sign with from a Secret: ssh-privatekey (as in Secrets of type
// kubernetes.io/ssh-auth) or identity, in PEM, and the passphrase in password. No error repeats a value.
func SignerFromSecret(data map[string][]byte) (*SSHSigner, error) {
	name := "ssh-privatekey"
	if len(data[name]) == 0 {
		name = "identity"
	}
	if len(data[name]) == 0 {
		return nil, fmt.Errorf("signing key: the Secret holds neither ssh-privatekey nor identity")
	}
	var key ssh.Signer
	var err error
	if passphrase := data["password"]; len(passphrase) > 0 {
		key, err = ssh.ParsePrivateKeyWithPassphrase(data[name], passphrase)
	} else {
		key, err = ssh.ParsePrivateKey(data[name])
	}
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", name, err)
	}
	return &SSHSigner{key}, nil
}

// PublicKey is what readers need to verify: a line of git's allowed signers file after the principal.
func (s *SSHSigner) PublicKey() string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(s.key.PublicKey())))
}

// Sign implements Signer. The namespace is git's, so that a signature made here is good for nothing else.
func (s *SSHSigner) Sign(content []byte) (string, error) {
	signature, err := sshsig.Sign(bytes.NewReader(content), s.key, sshsig.HashSHA512, "git")
	if err != nil {
		return "", err
	}
	return string(sshsig.Armor(signature)), nil
}
