package kube

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout bounds every request of this package that is not a watch or a list of objects.
const requestTimeout = 15 * time.Second

var (
	secretsResource    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	eventsResource     = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// Client asks one API server. It is safe for concurrent use.
type Client struct {
	dynamic   dynamic.Interface
	discovery *discovery
	// component is who we say we are in Events.
	component string
	now       func() time.Time
	// secrets reads Secrets from elsewhere; nil reads them from the cluster.
	secrets ReadSecret
}

// ReadSecret reads the values of a Secret by its reference.
type ReadSecret func(ctx context.Context, ref SecretReference) (map[string][]byte, error)

// LoadConfig finds the API server: the kubeconfig file that is named, or, with an empty name, the service account
// of the pod we run in.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("KUBECONFIG is empty and there is no service account of a pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read KUBECONFIG %s: %w", kubeconfig, err)
	}
	return config, nil
}

// NewClient makes a client for the function of the given name. It sends nothing yet.
func NewClient(config *rest.Config, function string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "tidemark-" + function
	// The API server's own priority and fairness decides how fast is too fast.
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the API server's client: %w", err)
	}
	return newClient(config, client, function)
}

func newClient(config *rest.Config, client *http.Client, function string) (*Client, error) {
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("set up the API server's client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("API server address: %w", err)
	}
	return &Client{
		dynamic:   dyn,
		discovery: &discovery{http: client, base: base},
		component: "tidemark-" + function,
		now:       time.Now,
	}, nil
}

// Dynamic is the client for lists and watches. Its requests have no deadline but the context's.
func (c *Client) Dynamic() dynamic.Interface { return c.dynamic }

// ClusterUID names the cluster: the UID of namespace kube-system.
func (c *Client) ClusterUID(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := c.dynamic.Resource(namespacesResource).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read namespace kube-system: %w", err)
	}
	return ns.GetUID(), nil
}

// ErrSecretNotReadable is wrapped by SecretData where a person has to act: the Secret is not there, we may not read
// it, or it is not a Secret's shape.
var ErrSecretNotReadable = errors.New("secret not readable")

// SecretData reads the values of a Secret. No error holds any of them.
func (c *Client) SecretData(ctx context.Context, ref SecretReference) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if c.secrets != nil {
		return c.secrets(ctx, ref)
	}
	secret, err := c.dynamic.Resource(secretsResource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: Secret %s/%s does not exist", ErrSecretNotReadable, ref.Namespace, ref.Name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: Secret %s/%s: no permission to read it; grant get on it by name", ErrSecretNotReadable, ref.Namespace, ref.Name)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	raw, _ := secret.Object["data"].(map[string]any)
	data := make(map[string][]byte, len(raw))
	for key, v := range raw {
		text, _ := v.(string)
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("%w: Secret %s/%s: key %s is not base64", ErrSecretNotReadable, ref.Namespace, ref.Name, key)
		}
		data[key] = value
	}
	return data, nil
}
