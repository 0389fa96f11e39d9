package kube

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/sigv4"
)

// Env is the part of a function's settings that says how to reach the API server. Embed it in the function's Config.
type Env struct {
	Kubeconfig  string `envconfig:"KUBECONFIG" desc:"kubeconfig file; empty means the service account of the pod, or EKS_CLUSTER"`
	EKSCluster  string `envconfig:"EKS_CLUSTER" desc:"name of the EKS cluster to sign in to with the credentials of the Lambda function's role"`
	EKSEndpoint string `envconfig:"EKS_ENDPOINT" desc:"https address of the EKS cluster's API server"`
	EKSCA       string `envconfig:"EKS_CA" desc:"certificate authority of the EKS cluster, base64 as EKS shows it"`
	// GitSecrets is a prefix that ends in a slash.
	GitSecrets string `envconfig:"GIT_SECRETS_PREFIX" desc:"read git credentials from AWS Secrets Manager: Secret NAMESPACE/NAME is the secret of this prefix and NAMESPACE/NAME, a JSON object of its keys; empty: from the cluster"`
}

// Connect makes the client of a function, with the settings' source of Secrets. It sends nothing.
func (e Env) Connect(function string) (*Client, error) {
	config, err := e.Config()
	if err != nil {
		return nil, err
	}
	client, err := NewClient(config, function)
	if err != nil {
		return nil, err
	}
	if e.GitSecrets != "" {
		client.secrets = ManagedSecrets(e.GitSecrets)
	}
	return client, nil
}

// Config is the way to the API server that the settings name. It sends nothing.
func (e Env) Config() (*rest.Config, error) {
	if e.EKSCluster == "" {
		return LoadConfig(e.Kubeconfig)
	}
	if e.Kubeconfig != "" {
		return nil, settings.Invalid("EKS_CLUSTER", e.EKSCluster, "must be empty when KUBECONFIG is set: keep one")
	}
	if !strings.HasPrefix(e.EKSEndpoint, "https://") {
		return nil, settings.Invalid("EKS_ENDPOINT", e.EKSEndpoint, "must begin with https://: the token goes there")
	}
	ca, err := base64.StdEncoding.DecodeString(e.EKSCA)
	if err != nil || len(ca) == 0 {
		return nil, settings.Invalid("EKS_CA", e.EKSCA, "must be a PEM certificate in base64")
	}
	region := os.Getenv("AWS_REGION")
	if region == "" {
		return nil, settings.Missing("AWS_REGION", "the region is part of what is signed for EKS_CLUSTER; Lambda sets it")
	}
	if _, err := sigv4.FromEnv(); err != nil {
		return nil, fmt.Errorf("EKS_CLUSTER (%s): %w", e.EKSCluster, err)
	}
	config := &rest.Config{Host: e.EKSEndpoint, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &eksAuth{next: next, cluster: e.EKSCluster, region: region, now: time.Now}
	})
	return config, nil
}

// eksAuth puts a signed token on every request and signs anew before it expires.
type eksAuth struct {
	next            http.RoundTripper
	cluster, region string
	now             func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

func (a *eksAuth) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.current()
	if err != nil {
		return nil, fmt.Errorf("sign in to EKS cluster %s: %w", a.cluster, err)
	}
	r = r.Clone(r.Context()) // a RoundTripper must not change the caller's request
	r.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(r)
}

func (a *eksAuth) current() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if now.Before(a.until) {
		return a.token, nil
	}
	c, err := sigv4.FromEnv()
	if err != nil {
		return "", err
	}
	a.token, a.until = sigv4.EKSToken(c, a.region, a.cluster, now), now.Add(sigv4.EKSTokenLife)
	return a.token, nil
}
