//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// world is everything that a cluster with Tidemark has. Each password in it is random, so that the end of the test can
// look for it in what was written.
type world struct {
	t        *testing.T
	cluster  *kubetest.Cluster
	redis    valkeytest.Server
	git      *gittest.Server
	repo     *gittest.Repository
	ingest   *function
	watch    *function
	settings []string // of watchcommit
	secrets  []string
}

// gitUser is the name by which the git server knows us.
const gitUser = "tidemark"

func newWorld(t *testing.T, options kubetest.Options, target string, settings ...string) *world {
	t.Helper()
	w := &world{t: t}
	w.redis, _ = valkeytest.Own(t)
	auditToken, gitPassword := w.secret(), w.secret()
	w.git = gittest.NewServer(t)
	w.git.RequirePassword(gitUser, gitPassword)
	w.repo = w.git.Repository("cfg.git")

	store := []string{"REDIS_ADDR=" + w.redis.Addr, "REDIS_KEY_PREFIX=" + w.redis.Prefix}
	w.ingest = start(t, "auditingest", append(store, "AUDIT_TOKENS=default="+auditToken)...)
	capture := start(t, "authorcapture", store...)

	front := w.secured(w.ingest)
	options.AuditURL, options.AuditToken, options.AuditCA = front.URL+"/audit-webhook/default", auditToken, kubetest.CABundle(front)
	w.cluster = kubetest.Start(t, options)
	w.cluster.Apply("namespace.yaml", "crds/gittargets.yaml", "crds/commitrequests.yaml",
		"rbac/watchcommit.yaml", "rbac/mirrored.yaml", "rbac/git-credentials.yaml", "rbac/people.yaml")
	w.admission(capture)
	w.people()
	w.cluster.ApplyText(`
apiVersion: v1
kind: Secret
metadata: {namespace: tidemark, name: cfg-git}
data: {username: ` + base64.StdEncoding.EncodeToString([]byte(gitUser)) + `, password: ` + base64.StdEncoding.EncodeToString([]byte(gitPassword)) + `}
---
apiVersion: tidemark.dev/v1alpha1
kind: GitTarget
metadata: {name: prod}
spec:
  repository: {url: "` + w.repo.URL + `", branch: main, path: clusters/prod, secretRef: {namespace: tidemark, name: cfg-git}}
` + target)
	w.cluster.AwaitMirrored()
	me := w.cluster.KubeconfigFor("watchcommit", w.cluster.ServiceAccount("tidemark", "watchcommit"))
	w.settings = append(append(store, "KUBECONFIG="+me), settings...)
	w.watch = start(t, "watchcommit", w.settings...)
	return w
}

func (w *world) secret() string {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		w.t.Fatal(err)
	}
	s := hex.EncodeToString(b[:])
	w.secrets = append(w.secrets, s)
	return s
}

// secured is TLS in front of a function, as a platform's ingress is: the API server calls webhooks no other way.
func (w *world) secured(f *function) *httptest.Server {
	w.t.Helper()
	to, err := url.Parse(f.url)
	if err != nil {
		w.t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(to))
	w.t.Cleanup(front.Close)
	return front
}

// admission applies the webhook configuration as it is shipped, with the address of the test's own TLS in front of
// authorcapture.
func (w *world) admission(capture *function) {
	w.t.Helper()
	front := w.secured(capture)
	for _, u := range w.cluster.Read(kubetest.Manifest("admission/authorcapture.yaml")) {
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, h := range hooks {
			hook, ok := h.(map[string]any)
			if !ok {
				w.t.Fatalf("a webhook is %T", h)
			}
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			hook["clientConfig"] = map[string]any{"url": front.URL + path, "caBundle": base64.StdEncoding.EncodeToString(kubetest.CABundle(front))}
		}
		if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.cluster.ApplyObject(w.cluster.Client(kubetest.Admin), u); err != nil {
			w.t.Fatal(err)
		}
	}
}

// people makes the namespaces and lets everybody work in them; the portal may act as anybody.
func (w *world) people() {
	w.cluster.ApplyText(`
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: platform}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: deployer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: works-here}
rules:
- {apiGroups: ["", apps, batch, networking.k8s.io, example.com, tidemark.dev], resources: ["*"], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: ["*", escalate, bind]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: works-here}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: works-here}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: devs}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}
- {kind: ServiceAccount, namespace: shop, name: deployer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-for-people}
rules:
- {apiGroups: [""], resources: [users, groups], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: ["userextras/configbutler.ai/claims/display-name", "userextras/configbutler.ai/claims/email"], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acts-for-people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-for-people}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: portals}]`)
}

// carol works through the portal, which gives her name and address.
func (w *world) carol() *rest.Config {
	return w.cluster.Impersonate(kubetest.Portal, rest.ImpersonationConfig{
		UserName: "carol", Groups: []string{"devs", "system:authenticated"},
		Extra: map[string][]string{"configbutler.ai/claims/display-name": {"Carol Example"}, "configbutler.ai/claims/email": {"carol@example.com"}},
	})
}

// target is the GitTarget as it is now.
func (w *world) target() *unstructured.Unstructured {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	u, err := w.cluster.Client(kubetest.Admin).Resource(gitTargets).Get(ctx, "prod", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// condition is "STATUS REASON: message" of the GitTarget.
func (w *world) condition(kind string) string {
	w.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(w.target().Object, "status", "conditions")
	for _, c := range conditions {
		if one, ok := c.(map[string]any); ok && one["type"] == kind {
			text := func(key string) string { s, _ := one[key].(string); return s }
			return text("status") + " " + text("reason") + ": " + text("message")
		}
	}
	return ""
}
