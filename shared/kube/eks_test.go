package kube

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func eksEnv(t *testing.T, server *httptest.Server) Env {
	t.Helper()
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return Env{EKSCluster: "prod", EKSEndpoint: server.URL, EKSCA: base64.StdEncoding.EncodeToString(ca)}
}

func TestEveryRequestToEKSCarriesATokenOfTheRole(t *testing.T) {
	var seen []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	config, err := eksEnv(t, server).Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		resp, err := client.Get(server.URL + "/version")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(seen) != 2 || seen[0] != seen[1] {
		t.Fatalf("got the headers %q, want one token twice", seen)
	}
	token, ok := strings.CutPrefix(seen[0], "Bearer k8s-aws-v1.")
	signed, err := base64.RawURLEncoding.DecodeString(token)
	if !ok || err != nil || !strings.HasPrefix(string(signed), "https://sts.eu-west-1.amazonaws.com/?") || strings.Contains(string(signed), "hunter2") {
		t.Errorf("Authorization = %q (%v), want a presigned STS request", seen[0], err)
	}
}

func TestAnEKSTokenIsSignedAnewBeforeItExpiresAndWithTheCredentialsOfThen(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDFIRST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a := &eksAuth{cluster: "prod", region: "eu-west-1", now: func() time.Time { return now }}
	first, err := a.current()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDSECOND")
	now = now.Add(13 * time.Minute)
	if again, _ := a.current(); again != first {
		t.Errorf("after 13 minutes the token is another one, want the same")
	}
	now = now.Add(time.Minute)
	second, err := a.current()
	if err != nil {
		t.Fatal(err)
	}
	signed, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(second, "k8s-aws-v1."))
	if !strings.Contains(string(signed), "AKIDSECOND") {
		t.Errorf("after 14 minutes the token is %s, want one of the new credentials", signed)
	}
}

func TestEKSSettingsAreChecked(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	good := eksEnv(t, server)
	for name, c := range map[string]struct {
		change func(*Env)
		want   string
	}{
		"a kubeconfig beside it":         {func(e *Env) { e.Kubeconfig = "/etc/kubeconfig" }, "EKS_CLUSTER (prod) must be empty when KUBECONFIG is set"},
		"an address without TLS":         {func(e *Env) { e.EKSEndpoint = "http://x" }, "EKS_ENDPOINT (http://x) must begin with https://"},
		"no authority":                   {func(e *Env) { e.EKSCA = "" }, "EKS_CA () must be a PEM certificate"},
		"an authority that is no base64": {func(e *Env) { e.EKSCA = "---" }, "EKS_CA (---) must be a PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			c.change(&e)
			if _, err := e.Config(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("no region", func(t *testing.T) {
		t.Setenv("AWS_REGION", "")
		if _, err := good.Config(); err == nil || !strings.Contains(err.Error(), "AWS_REGION is not set") {
			t.Errorf("got %v, want AWS_REGION is not set", err)
		}
	})
	t.Run("no credentials", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		if _, err := good.Config(); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
			t.Errorf("got %v, want AWS_ACCESS_KEY_ID", err)
		}
	})
}
