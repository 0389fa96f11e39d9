package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// extension answers as the Parameters and Secrets extension does.
func extension(t *testing.T, secrets map[string]string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, ok := secrets[r.URL.Query().Get("secretId")]
		if r.URL.Path != "/secretsmanager/get" || r.Header.Get("X-Aws-Parameters-Secrets-Token") != "session" || !ok {
			http.Error(w, "hunter2 is not there", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": value})
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", u.Port())
	t.Setenv("AWS_SESSION_TOKEN", "session")
}

func TestGitCredentialsComeFromSecretsManager(t *testing.T) {
	extension(t, map[string]string{
		"tidemark/git/flux-system/cfg": `{"username":"git","password":"hunter2"}`,
		"tidemark/git/flux-system/odd": `hunter2`,
		"tidemark/git/flux-system/num": `{"password":2}`,
	})
	cluster := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the cluster was asked") }))
	defer cluster.Close()
	client, err := NewClient(&rest.Config{Host: cluster.URL}, "watchcommit")
	if err != nil {
		t.Fatal(err)
	}
	client.secrets = ManagedSecrets("tidemark/git/")
	got, err := client.SecretData(context.Background(), SecretReference{Namespace: "flux-system", Name: "cfg"})
	if diff := cmp.Diff(map[string][]byte{"username": []byte("git"), "password": []byte("hunter2")}, got); err != nil || diff != "" {
		t.Errorf("got %v: %s", err, diff)
	}
	for name, c := range map[string]struct {
		forAPerson bool
		want       string
	}{
		"odd":     {true, "AWS secret tidemark/git/flux-system/odd must be a JSON object of texts"},
		"num":     {true, "AWS secret tidemark/git/flux-system/num must be a JSON object of texts"},
		"missing": {false, "read AWS secret tidemark/git/flux-system/missing: the secrets extension answered 400"},
	} {
		_, err := client.SecretData(context.Background(), SecretReference{Namespace: "flux-system", Name: name})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || errors.Is(err, ErrSecretNotReadable) != c.forAPerson {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
