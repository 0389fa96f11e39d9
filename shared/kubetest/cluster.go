package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

// The versions in servers/go.mod.
const (
	kubeVersion = "v1.36.3"
	etcdVersion = "v3.6.8"
)

// readyTimeout is generous: the servers share the machine with the tests.
const readyTimeout = 3 * time.Minute

// AggregatedRoles is the controller that fills in the rules of aggregated ClusterRoles.
const AggregatedRoles = "clusterrole-aggregation-controller"

// Options say what the control plane is to have besides RBAC.
type Options struct {
	// AuditURL is where audit events go, as they come from infra/kubernetes/audit; empty: no audit.
	AuditURL string
	// AuditToken is sent with them, and AuditCA is what the address is trusted by. The API server keeps the token to
	// itself unless the address is https.
	AuditToken string
	AuditCA    []byte
	// AuditPolicy is a file; empty is infra/kubernetes/audit/policy.yaml.
	AuditPolicy string
	// AuditMaxWait is how long the API server collects audit events; 0 means 300 ms.
	AuditMaxWait time.Duration
	// Controllers are those that kube-controller-manager runs, "*" is all; without any it does not run at all.
	Controllers []string
	// Args are more arguments of the API server.
	Args []string
}

// Cluster is a running control plane. It ends with the test.
type Cluster struct {
	t    testing.TB
	dir  string
	ca   []byte
	host string
	http *http.Client

	etcdURL    string
	etcd       *process
	apiserver  *process
	controller *process
}

// Start runs a control plane and waits until it is ready.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir()}
	if err := c.setUp(o); err != nil {
		t.Fatalf("set up a control plane: %v", err)
	}
	t.Cleanup(c.end)
	c.must(c.etcd.start())
	c.must(c.apiserver.start())
	c.waitReady()
	if c.controller != nil {
		c.must(c.controller.start())
	}
	return c
}

func (c *Cluster) setUp(o Options) error {
	ports := make([]string, 3)
	for i := range ports {
		port, err := loopback.Port()
		if err != nil {
			return err
		}
		ports[i] = strconv.Itoa(port)
	}
	c.host, c.etcdURL = "https://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	peer := "http://127.0.0.1:" + ports[2]
	var err error
	if c.ca, err = servingCertificate(c.file("tls.crt"), c.file("tls.key")); err != nil {
		return err
	}
	if err := signingKey(c.file("sa.key")); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("tokens.csv"), tokenFile(), 0o600); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	c.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}

	c.etcd = c.process("etcd",
		"--data-dir="+c.file("etcd"), "--unsafe-no-fsync", "--log-level=warn", "--name=default",
		"--listen-client-urls="+c.etcdURL, "--advertise-client-urls="+c.etcdURL,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	args := []string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + ports[0],
		"--tls-cert-file=" + c.file("tls.crt"), "--tls-private-key-file=" + c.file("tls.key"), "--cert-dir=" + c.file("certs"),
		"--service-account-issuer=https://kubetest.invalid", "--service-account-key-file=" + c.file("sa.key"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		"--token-auth-file=" + c.file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		// Pods are only stored here; nothing runs them, so they need no service account.
		"--disable-admission-plugins=ServiceAccount",
	}
	audit, err := c.auditArgs(o)
	if err != nil {
		return err
	}
	c.apiserver = c.process("kube-apiserver", append(append(args, audit...), o.Args...)...)
	if len(o.Controllers) > 0 {
		c.controller = c.process("kube-controller-manager",
			"--kubeconfig="+c.Kubeconfig(Admin), "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials",
			"--controllers="+strings.Join(o.Controllers, ","),
			"--service-account-private-key-file="+c.file("sa.key"), "--root-ca-file="+c.file("tls.crt"))
	}
	return nil
}

func (c *Cluster) auditArgs(o Options) ([]string, error) {
	if o.AuditURL == "" {
		return nil, nil
	}
	policy, wait := o.AuditPolicy, o.AuditMaxWait
	if policy == "" {
		policy = Manifest("audit/policy.yaml")
	}
	if wait == 0 {
		wait = 300 * time.Millisecond
	}
	if err := c.auditKubeconfig(o); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy, "--audit-webhook-config-file=" + c.file("audit.kubeconfig"),
		"--audit-webhook-mode=batch", "--audit-webhook-batch-max-wait=" + wait.String(),
	}, nil
}

// auditKubeconfig is the shipped file with this test's address and token.
func (c *Cluster) auditKubeconfig(o Options) error {
	shipped, err := clientcmd.LoadFromFile(Manifest("audit/webhook.kubeconfig"))
	if err != nil {
		return err
	}
	for _, cluster := range shipped.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = o.AuditURL, "", o.AuditCA
	}
	for _, user := range shipped.AuthInfos {
		user.TokenFile = c.file("audit-token")
	}
	if err := os.WriteFile(c.file("audit-token"), []byte(o.AuditToken), 0o600); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*shipped, c.file("audit.kubeconfig"))
}

func (c *Cluster) process(name string, args ...string) *process {
	return &process{name: name, path: binary(c.t, name), args: args, log: c.file(name + ".log")}
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) end() {
	for _, p := range []*process{c.controller, c.apiserver, c.etcd} {
		if p == nil {
			continue
		}
		if p.cmd != nil && p.ended() {
			c.t.Errorf("%s ended by itself:\n%s", p.name, p.lastWords())
		}
		p.kill()
	}
}

// waitReady waits until the API server calls itself ready, its start-up hooks (the built-in roles) included.
func (c *Cluster) waitReady() {
	c.t.Helper()
	deadline := time.Now().Add(readyTimeout)
	last := ""
	for time.Now().Before(deadline) {
		for _, p := range []*process{c.etcd, c.apiserver} {
			if p.ended() {
				c.t.Fatalf("%s ended:\n%s", p.name, p.lastWords())
			}
		}
		if last = c.readyz(); last == "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("the API server is not ready after %s: %s", readyTimeout, last)
}

func (c *Cluster) readyz() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+Admin.token())
	resp, err := c.http.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

// RestartAPIServer ends the API server and starts it again: its watch cache is empty then.
func (c *Cluster) RestartAPIServer() {
	c.t.Helper()
	c.apiserver.stop()
	c.must(c.apiserver.start())
	c.waitReady()
}

// KillAPIServer ends the API server without warning and starts it again. Audit events that it has not posted are lost.
func (c *Cluster) KillAPIServer() {
	c.t.Helper()
	c.apiserver.kill()
	c.must(c.apiserver.start())
	c.waitReady()
}

// Config is the way in for a user.
func (c *Cluster) Config(u User) *rest.Config {
	return &rest.Config{
		Host: c.host, BearerToken: u.token(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
	}
}

// Client is the user's dynamic client.
func (c *Cluster) Client(u User) dynamic.Interface {
	c.t.Helper()
	return c.ClientFor(c.Config(u))
}

// ClientFor is the dynamic client of a way in.
func (c *Cluster) ClientFor(config *rest.Config) dynamic.Interface {
	c.t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Manifest is the path of a file under infra/kubernetes.
func Manifest(name string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..", "infra", "kubernetes", name)
}

func kubeconfig(server string, ca []byte, token string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: it\n  cluster:\n    server: %s\n", server)
	if ca != nil {
		fmt.Fprintf(&b, "    certificate-authority-data: %s\n", base64Text(ca))
	}
	fmt.Fprintf(&b, "users:\n- name: me\n  user: {token: %q}\n", token)
	b.WriteString("contexts:\n- name: it\n  context: {cluster: it, user: me}\ncurrent-context: it\n")
	return []byte(b.String())
}
