package gitcommit_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestSignedCommitsVerify(t *testing.T) {
	_, modern, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.PrivateKey{"ed25519": modern, "rsa": old} {
		t.Run(name, func(t *testing.T) {
			eachFormat(t, func(t *testing.T, _ *gittest.Server, repo *gittest.Repository) {
				block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("open sesame"))
				if err != nil {
					t.Fatal(err)
				}
				signer, err := gitcommit.SignerFromSecret(map[string][]byte{"ssh-privatekey": pem.EncodeToMemory(block), "password": []byte("open sesame")})
				if err != nil {
					t.Fatal(err)
				}
				commits := []gitcommit.Commit{commitOf("first\n\nwith a body", write("a", "1")), commitOf("second", write("a", "2"))}
				for i := range commits {
					commits[i].Signer = signer
				}
				land(t, open(t, repo, gitcommit.Options{}), "main", commits...)
				allowed := filepath.Join(t.TempDir(), "allowed")
				if err := os.WriteFile(allowed, []byte("tidemark@example.com "+signer.PublicKey()+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, commit := range []string{"main", "main^"} {
					out, err := repo.TryGit("-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", commit)
					if err != nil || !strings.Contains(out, `Good "git" signature for tidemark@example.com`) {
						t.Errorf("git verify-commit %s: %v\n%s", commit, err, out)
					}
				}
				if subject := repo.Git("log", "-1", "--format=%s", "main"); subject != "second" {
					t.Errorf("the subject got %q", subject)
				}
			})
		})
	}
}

func TestSignerRefusesWithoutRepeating(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"nothing":           {},
		"no key":            {"identity": []byte("hunter2-s3cr3t")},
		"a wrong pass word": {"identity": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2-s3cr3t\n-----END OPENSSH PRIVATE KEY-----\n"), "password": []byte("hunter2-s3cr3t")},
	} {
		if _, err := gitcommit.SignerFromSecret(data); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
