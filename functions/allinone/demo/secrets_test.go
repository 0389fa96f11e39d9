package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// Secrets go in wherever one can: tokens, the store's password, git credentials from a Secret of the cluster and from
// a folder, Secrets in watches and audit bodies, and a git server that throws what it was sent back at its caller.
// None comes out again: in a log line, a commit, a key or value of the store, an answer, a metric, a notification.
func TestNoSecretComesOut(t *testing.T) {
	marks := map[string]string{
		"the webhooks' token": "MARK-webhook-3f9a", "the read token": "MARK-read-77b1", "the store's password": "MARK-store-c04d",
		"the repository's password": "MARK-repo-5e21", "the fleet's password": "MARK-fleet-91aa",
	}
	session, err := replay.Load("../../../events/samples/sessions/story")
	if err != nil {
		t.Fatal(err)
	}
	collectSecrets(t, session, marks)
	addSecret(t, session, "cfg-git", marks["the repository's password"])

	store := miniredis.RunT(t)
	store.RequireAuth(marks["the store's password"])
	o := options{program: build(t), within: 12 * time.Second, guard: guard(marks)}
	s, err := newStage(session, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.close(t.Failed()) }()
	s.token, s.readToken, s.secretRef, s.fleet.secret = marks["the webhooks' token"], marks["the read token"], "{namespace: shop, name: cfg-git}", "fleet-git"
	secrets := filepath.Join(s.dir, "secrets")
	for key, value := range map[string]string{"username": "fleet", "password": marks["the fleet's password"]} {
		file := filepath.Join(secrets, "demo", "fleet-git", key)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{
		"LOG_LEVEL=debug", "REDIS_ADDR=" + store.Addr(), "REDIS_PASSWORD=" + marks["the store's password"], "READ_TOKEN=" + s.readToken,
		"SWEEP_SECRETS_DIR=" + secrets,
	}
	answers := ""
	s.beforeEnd = func() { answers = pages(t, s) }
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.perform(ctx); err != nil {
		t.Fatal(err)
	}

	log, err := os.ReadFile(filepath.Join(s.dir, "allinone.log"))
	if err != nil {
		t.Fatal(err)
	}
	commits, err := exec.Command("git", "-C", s.repository, "log", "-p", "--root", "--format=raw", "--all").Output()
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(s.fleet.notifications)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"the log": string(log), "the repository": string(commits), "the store": store.Dump(), "an answer": answers, "a notification": string(told),
	} {
		if len(text) < 100 {
			t.Errorf("%s was not looked through: %q", where, text)
		}
		for what, secret := range marks {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s holds %s: …%s…", where, what, text[max(0, at-200):min(len(text), at+len(form)+50)])
				}
			}
		}
	}
}

// collectSecrets adds the values of the session's Secrets to the marks.
func collectSecrets(t *testing.T, session *replay.Session, marks map[string]string) {
	t.Helper()
	for _, w := range session.Watches {
		for _, ev := range w.Live {
			data, _, _ := unstructured.NestedStringMap(ev.Object.Object, "data")
			if w.Resource != "secrets" || len(data) == 0 {
				continue
			}
			for key, value := range data {
				plain, err := base64.StdEncoding.DecodeString(value)
				if err != nil || len(plain) < 6 {
					t.Fatalf("%q is no value to look for", plain)
				}
				marks[fmt.Sprintf("%s of Secret %s, version %s", key, ev.Object.GetName(), ev.Object.GetResourceVersion())] = string(plain)
			}
		}
	}
	if len(marks) < 7 {
		t.Fatalf("the session holds too few Secrets: %v", marks)
	}
}

func addSecret(t *testing.T, session *replay.Session, name, password string) {
	t.Helper()
	for _, w := range session.Watches {
		if w.Resource == "secrets" {
			encode := func(s string) any { return base64.StdEncoding.EncodeToString([]byte(s)) }
			w.Initial = append(w.Initial, replay.Event{Type: "ADDED", Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "1"},
				"data": map[string]any{"username": encode("mirror"), "password": encode(password)},
			}}})
			return
		}
	}
	t.Fatal("the session watches no Secrets")
}

// guard lets in who knows the password of what they ask for. Once there is a history, one request of eight fails, with all that was sent in the
// answer; a caller that repeats it must not repeat the words.
func guard(marks map[string]string) func(http.Handler) http.Handler {
	var pushed atomic.Bool
	return func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			want := marks["the repository's password"]
			if strings.HasPrefix(r.URL.Path, "/fleet/") {
				want = marks["the fleet's password"]
			}
			if _, password, _ := r.BasicAuth(); password != want {
				w.Header().Set("WWW-Authenticate", "Basic")
				http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
				return
			}
			if pushed.Load() && rand.IntN(8) == 0 {
				http.Error(w, "cannot serve "+want+" "+r.Header.Get("Authorization"), http.StatusInternalServerError)
				return
			}
			git.ServeHTTP(w, r)
			if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
				pushed.Store(true)
			}
		})
	}
}

// pages gets every page that the program has, with the tokens and without.
func pages(t *testing.T, s *stage) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/metrics", "/observations", "/who?resource=secrets&namespace=shop&name=payment-api", "/who?resource=configmaps&namespace=shop&name=prices", "/audit-webhook/" + route + "/self-test", "/health/readiness"} {
		for _, token := range []string{"", s.readToken, s.token} {
			r := httptest.NewRequest(http.MethodGet, s.programURL+path, nil)
			r.RequestURI = ""
			r.Header.Set("Authorization", "Bearer "+token)
			resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(r)
			if err != nil {
				t.Error(err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			_ = resp.Body.Close()
			fmt.Fprintf(&all, "%s: %d %v\n%s\n", path, resp.StatusCode, resp.Header, body)
		}
	}
	return all.String()
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "allinone")
	cmd := exec.Command("go", "build", "-tags", "lambda.norpc,grpcnotrace", "-o", program, "../local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the all-in-one: %v\n%s", err, out)
	}
	return program
}
