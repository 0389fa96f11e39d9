package watchcommit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// A target with a signing key commits nothing while the key cannot be read, and then everything signed.
func TestCommitsAreSignedOrWait(t *testing.T) {
	w := newWorld(t, scenarioOf(7, 12, 100*time.Millisecond, 0), valkeytest.Mini(t))
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	identity := pem.EncodeToMemory(block)
	signer, err := gitcommit.SignerFromSecret(map[string][]byte{"identity": identity})
	if err != nil {
		t.Fatal(err)
	}
	served := false
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/namespaces/tidemark/secrets/signing":
			w.api.ServeHTTP(rw, r)
		case !served:
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusNotFound)
			fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		default:
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"tidemark","name":"signing"},"data":{"identity":%q}}`, base64.StdEncoding.EncodeToString(identity))
		}
	}))
	t.Cleanup(func() { w.api.Disconnect(); api.CloseClientConnections(); api.Close() })
	w.apiURL = api.URL
	w.target(strings.Replace(storyTarget, "prune: Always", "prune: Always\n  commit: {signingKeyRef: {namespace: tidemark, name: signing}}", 1))
	w.clock.Set(w.session.End())
	w.facts()
	w.tick()
	f := w.function()
	f.replayBytes = 1
	if status, r := post(t, f); status != http.StatusOK {
		t.Fatalf("status %d, %+v", status, r)
	}
	if tip := w.repo.Tip("main"); tip != "" {
		t.Errorf("the branch is at %s, though the key cannot be read", tip)
	}
	served = true
	w.tick()
	allowed := filepath.Join(t.TempDir(), "allowed")
	if err := os.WriteFile(allowed, []byte("tidemark@noreply.invalid "+signer.PublicKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commits := strings.Fields(w.repo.Git("rev-list", "main"))
	if len(commits) == 0 {
		t.Errorf("nothing was committed:\n%s", w.logs)
	}
	for _, commit := range commits {
		if out, err := w.repo.TryGit("-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", commit); err != nil {
			t.Errorf("git verify-commit %s: %v\n%s", commit, err, out)
		}
	}
}
