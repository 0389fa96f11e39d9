package kubetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// User is somebody who can log in with a token.
type User string

// The people of the tests. Admin may do everything; the others may do what the test grants them, which starts as
// nothing. Portal is a program that may impersonate people once it is granted that.
const (
	Admin  User = "admin"
	Alice  User = "alice"
	Bob    User = "bob"
	Dave   User = "dave"
	Erin   User = "erin"
	Portal User = "portal"
)

func (u User) token() string { return "token-of-" + string(u) }

func tokenFile() []byte {
	var b strings.Builder
	for _, u := range []User{Admin, Alice, Bob, Dave, Erin, Portal} {
		group := "devs"
		switch u {
		case Admin:
			group = "system:masters"
		case Portal:
			group = "portals"
		}
		fmt.Fprintf(&b, "%s,%s,uid-of-%s,%q\n", u.token(), u, u, group)
	}
	return []byte(b.String())
}

func base64Text(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// Kubeconfig writes a kubeconfig file for the user and returns its path.
func (c *Cluster) Kubeconfig(u User) string {
	c.t.Helper()
	return c.KubeconfigFor(string(u), c.Config(u))
}

// KubeconfigFor writes a kubeconfig file for a way in with a token, and returns its path.
func (c *Cluster) KubeconfigFor(name string, config *rest.Config) string {
	c.t.Helper()
	file := c.file(name + ".kubeconfig")
	c.must(os.WriteFile(file, kubeconfig(config.Host, config.CAData, config.BearerToken), 0o600))
	return file
}

// Impersonate is the way in of by, acting as somebody else. The cluster's RBAC decides whether it may.
func (c *Cluster) Impersonate(by User, as rest.ImpersonationConfig) *rest.Config {
	config := c.Config(by)
	config.Impersonate = as
	return config
}

// ServiceAccount is the way in of a service account that exists.
func (c *Cluster) ServiceAccount(namespace, name string) *rest.Config {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"expirationSeconds": int64(3600)},
	}}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	answer, err := c.Client(Admin).Resource(accounts).Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		c.t.Fatalf("token of service account %s/%s: %v", namespace, name, err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	if err != nil || token == "" {
		c.t.Fatalf("token of service account %s/%s: the answer has none", namespace, name)
	}
	config := c.Config(Admin)
	config.BearerToken = token
	return config
}
