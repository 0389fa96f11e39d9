package valkey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/functions/refsweep"
	"github.com/tidemark-dev/tidemark/functions/watchcommit"
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/loopback"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

const prefix = "gitops-reverser"

// users are the functions, which are the users of the server.
func users(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("acl/*.acl")
	if err != nil || len(files) < 4 {
		t.Fatalf("found the rules %v: %v", files, err)
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(f), ".acl"))
	}
	return out
}

func password(user string) string { return "password of " + user }

// usersFile is what users.sh writes for passwords that end in a line break, as editors make them.
func usersFile(t *testing.T, names []string) string {
	t.Helper()
	passwords := t.TempDir()
	for _, u := range names {
		if err := os.WriteFile(filepath.Join(passwords, u), []byte(password(u)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("sh", "users.sh", "acl", passwords, prefix).CombinedOutput()
	if err != nil {
		t.Fatalf("users.sh: %v\n%s", err, out)
	}
	return string(out)
}

// serve runs a real server with valkey.conf and the users, and an administrator who looks on.
func serve(t *testing.T, args ...string) valkeytest.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	text := usersFile(t, users(t)) + "user administrator on nopass ~* +@all\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := filepath.Abs("valkey.conf")
	if err != nil {
		t.Fatal(err)
	}
	return valkeytest.Configured(t, conf, append([]string{"--aclfile", file}, args...)...)
}

func client(t *testing.T, addr, user, password string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func store(t *testing.T, addr, user string) *queue.RedisStore {
	t.Helper()
	env := queue.RedisEnv{Addr: addr, Username: user, Password: settings.NewSecret(password(user)), KeyPrefix: prefix}
	s, err := env.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// cluster is a Cluster of one server, by two addresses, as ElastiCache Serverless shows itself.
func cluster(t *testing.T) (admin string, addr string) {
	t.Helper()
	bus, err := loopback.Port()
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-config-file", "nodes.conf")
	a := client(t, server.Addr, "administrator", "any")
	if err := a.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for {
		info, err := a.ClusterInfo(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info, "cluster_state:ok") {
			return server.Addr, server.Addr + "," + server.Addr
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestEveryFunctionWorksAsItsUser(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		server := serve(t)
		work(t, server.Addr)
		denied(t, server.Addr)
	})
	t.Run("a Cluster", func(t *testing.T) {
		admin, addr := cluster(t)
		work(t, addr)
		denied(t, admin)
	})
}

// work plays a recorded session to all functions, each signed in as itself.
func work(t *testing.T, addr string) {
	session, err := replay.Load("../../events/samples/sessions/story")
	if err != nil {
		t.Fatal(err)
	}
	clock := replay.NewClock()
	clock.Set(session.Begin())
	api := replay.NewServer(session, clock)
	kubernetes := httptest.NewServer(api)
	t.Cleanup(func() { api.Disconnect(); kubernetes.CloseClientConnections(); kubernetes.Close() })
	git := gittest.NewServer(t)
	repository := git.Repository("cfg")
	var logs bytes.Buffer
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(logs.String())
		}
	})

	auditStore := store(t, addr, "auditingest")
	auditConfig := auditingest.Config{Tokens: settings.NewSecret("*=token")}
	for name, value := range map[string]string{"AUDIT_TOKENS": "*=token", "REDIS_ADDR": addr} {
		t.Setenv(name, value)
	}
	if err := settings.Load(&auditConfig); err != nil {
		t.Fatal(err)
	}
	ingest, err := auditingest.New(auditConfig, auditingest.NewStore(auditConfig, auditStore), telemetry.WriteTo(&logs, "auditingest"))
	if err != nil {
		t.Fatal(err)
	}
	var captureConfig authorcapture.Config
	if err := settings.Load(&captureConfig); err != nil {
		t.Fatal(err)
	}
	// The session's commands are of a kind of its own.
	captureConfig.Kinds = append(captureConfig.Kinds, kindsOf(t, session)...)
	capture := authorcapture.New(captureConfig, store(t, addr, "authorcapture").CommandAuthorStore(), telemetry.WriteTo(&logs, "authorcapture"))
	webhooks := http.NewServeMux()
	webhooks.Handle("/audit-webhook/", ingest)
	webhooks.Handle("/validate-operator-types", capture)
	receiver := httptest.NewServer(webhooks)
	t.Cleanup(receiver.Close)

	targets := filepath.Join(t.TempDir(), "targets.yaml")
	writeFile(t, targets, "apiVersion: tidemark.dev/v1alpha1\nkind: GitTarget\nmetadata: {name: prod}\nspec:\n"+
		"  repository: {url: "+repository.URL+", path: clusters/prod}\n  attributionGrace: 1s\n  prune: Always\n"+
		"  resources: [{resource: configmaps}, {group: apps, resource: deployments}, {resource: services}]\n")
	kubeClient, err := kube.NewClient(&rest.Config{Host: kubernetes.URL}, "watchcommit")
	if err != nil {
		t.Fatal(err)
	}
	watch, err := watchcommit.New(watchcommit.Config{Grace: time.Second, Lease: 30 * time.Second, TargetsFile: targets, FactTTL: 10 * time.Minute},
		watchcommit.Deps{Store: store(t, addr, "watchcommit"), Cluster: kubeClient, Telemetry: telemetry.WriteTo(&logs, "watchcommit")})
	if err != nil {
		t.Fatal(err)
	}

	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	writeFile(t, fleet, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: cfg, namespace: flux}\nspec:\n  url: "+repository.URL+"\n  ref: {branch: main}\n")
	t.Setenv("SWEEP_TARGETS_FILE", fleet)
	t.Setenv("SWEEP_SECRETS_DIR", t.TempDir())
	var sweepConfig refsweep.Config
	if err := settings.Load(&sweepConfig); err != nil {
		t.Fatal(err)
	}
	sweep, err := refsweep.FromConfig(sweepConfig, store(t, addr, "refsweep"), telemetry.WriteTo(&logs, "refsweep"))
	if err != nil {
		t.Fatal(err)
	}

	place := aConfigMap(t, session)
	call(t, watch, http.MethodPost, "/")
	player := &replay.Player{Session: session, Clock: clock, Client: &http.Client{Timeout: 10 * time.Second},
		AuditURL: receiver.URL + "/audit-webhook", AuditToken: "token", Route: "default", AdmissionURL: receiver.URL + "/validate-operator-types"}
	step := (session.End() - session.Begin()) / 6
	for at := session.Begin(); at <= session.End()+step; at += step {
		if err := player.AdvanceTo(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		call(t, watch, http.MethodPost, "/")
	}
	time.Sleep(time.Second) // the grace of what came last
	var drained watchcommit.Result
	if err := json.Unmarshal(call(t, watch, http.MethodPost, "/"), &drained); err != nil || drained.Failed != 0 || drained.Waiting != 0 {
		t.Errorf("the last drain answers %+v (%v)", drained, err)
	}
	for range 2 {
		call(t, sweep, http.MethodPost, "/")
	}
	if out := call(t, sweep, http.MethodGet, "/observations"); !bytes.Contains(out, []byte(`"name":"cfg"`)) {
		t.Errorf("observations: %s", out)
	}
	if out := call(t, ingest, http.MethodGet, "/audit-webhook/default/self-test"); !bytes.Contains(out, []byte(`"arriving":true`)) {
		t.Errorf("self-test: %s", out)
	}
	asked := who.New(who.Config{Commits: 100, Timeout: 20 * time.Second, TargetsFile: targets},
		who.Deps{Cluster: kubeClient, Authors: store(t, addr, "who").AttributionIndex(0), Pool: &gitwire.Pool{}, Telemetry: telemetry.WriteTo(&logs, "who")})
	if out := call(t, asked, http.MethodGet, "/who?resource=configmaps&namespace="+place[0]+"&name="+place[1]); !bytes.Contains(out, []byte(`"live":`)) || bytes.Contains(out, []byte(`"incomplete"`)) {
		t.Errorf("who: %s", out)
	}
}

// aConfigMap is one that is there at the session's end.
func aConfigMap(t *testing.T, session *replay.Session) [2]string {
	t.Helper()
	there := map[[2]string]bool{}
	for _, w := range session.Watches {
		if w.Resource != "configmaps" {
			continue
		}
		for _, e := range append(slices.Clone(w.Initial), w.Live...) {
			if e.Object.GetName() != "" {
				there[[2]string{e.Object.GetNamespace(), e.Object.GetName()}] = e.Type != "DELETED"
			}
		}
	}
	for place, is := range there {
		if is {
			return place
		}
	}
	t.Fatal("the session ends without any ConfigMap")
	return [2]string{}
}

// kindsOf are the kinds of the session's reviews, as resource.group.
func kindsOf(t *testing.T, session *replay.Session) []string {
	t.Helper()
	var out []string
	for _, r := range session.Admission {
		var review struct {
			Request struct {
				Resource struct{ Group, Resource string }
			}
		}
		if err := json.Unmarshal(r.Body, &review); err != nil {
			t.Fatal(err)
		}
		out = append(out, review.Request.Resource.Resource+"."+review.Request.Resource.Group)
	}
	return out
}

// denied fails the test for every command that the server refused a user.
func denied(t *testing.T, addr string) {
	t.Helper()
	entries, err := client(t, addr, "administrator", "any").ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was refused %s %q (%d times)", e.Username, e.Reason, e.Object, e.Count)
	}
}

func call(t *testing.T, handler http.Handler, method, path string) []byte {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Authorization", "Bearer token")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body)
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s is answered %d %s", method, path, w.Code, body)
	}
	return body
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAUserReachesItsOwnKeysOnly(t *testing.T) {
	server := serve(t)
	// One key of each family.
	families := map[string]string{
		"facts":        prefix + ":author:v1:audit:route:default:configmaps:object:u:last",
		"commands":     prefix + ":author:v1:command:u",
		"routes":       prefix + ":commit:v1:route:default:heard",
		"drains":       prefix + ":commit:v1:branch:{b}:lease",
		"cursors":      prefix + ":watch:v1:target:u:configmaps:cluster:last-rv",
		"observations": prefix + ":refs:v1:fleet",
		"others":       "other:author:v1:command:u",
		"almost":       prefix + "x:author:v1:command:u",
	}
	own := map[string][]string{
		"auditingest":   {"facts", "routes"},
		"authorcapture": {"commands"},
		"refsweep":      {"observations"},
		"watchcommit":   {"facts", "commands", "routes", "drains", "cursors"},
		"who":           {},
	}
	for _, user := range users(t) {
		if own[user] == nil {
			t.Errorf("nothing is said about the keys of %s", user)
		}
		c := client(t, server.Addr, user, password(user))
		for family, key := range families {
			err := c.Set(t.Context(), key, "v", time.Minute).Err()
			mayWrite := false
			for _, f := range own[user] {
				mayWrite = mayWrite || f == family
			}
			if refused := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); refused == mayWrite || err != nil && !refused {
				t.Errorf("%s writes a key of %s: %v, want it allowed: %t", user, family, err, mayWrite)
			}
			// What a command may not do, a script may not either.
			err = c.Eval(t.Context(), "return redis.call('GET', KEYS[1])", []string{key}).Err()
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			if user != "authorcapture" && (err == nil) != mayWrite {
				t.Errorf("%s reads a key of %s by a script: %v, want it allowed: %t", user, family, err, mayWrite)
			}
		}
	}
}

func TestNobodyMayLookAroundOrDestroy(t *testing.T) {
	server := serve(t)
	for _, user := range users(t) {
		c := client(t, server.Addr, user, password(user))
		for _, command := range [][]any{
			{"KEYS", "*"}, {"SCAN", "0"}, {"FLUSHALL"}, {"FLUSHDB"}, {"CONFIG", "GET", "*"}, {"ACL", "LIST"}, {"MONITOR"},
			{"SHUTDOWN"}, {"REPLICAOF", "NO", "ONE"}, {"SUBSCRIBE", "c"}, {"PUBLISH", "c", "m"}, {"CLIENT", "LIST"}, {"SCRIPT", "FLUSH"}, {"FUNCTION", "LIST"}, {"MODULE", "LIST"},
			{"RANDOMKEY"}, {"DBSIZE"}, {"SWAPDB", "0", "1"}, {"INFO"},
		} {
			if err := c.Do(t.Context(), command...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
				t.Errorf("%s: %v gives %v, want NOPERM", user, command, err)
			}
		}
	}
}

func TestNobodyGetsInWithoutAPassword(t *testing.T) {
	server := serve(t)
	for name, c := range map[string]*redis.Client{
		"without a name":             client(t, server.Addr, "", ""),
		"as the user default":        client(t, server.Addr, "default", "any"),
		"with another's password":    client(t, server.Addr, "refsweep", password("watchcommit")),
		"with the password's ending": client(t, server.Addr, "refsweep", password("refsweep")+"\n"),
	} {
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
}

func TestUsersFileHoldsNoPasswordAndAsksForEach(t *testing.T) {
	names := users(t)
	text := usersFile(t, names)
	if strings.Contains(text, "password of") || strings.Contains(text, "{prefix}") {
		t.Errorf("the users' file shows a password or an unfilled prefix:\n%s", text)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a password that is missing": {[]string{"acl", t.TempDir(), prefix}, "has no password for user auditingest"},
		"a prefix that is a pattern": {[]string{"acl", t.TempDir(), "*"}, "prefix (*) must be"},
		"a prefix that is empty":     {[]string{"acl", t.TempDir(), ""}, "prefix () must be"},
	} {
		out, err := exec.CommandContext(context.Background(), "sh", append([]string{"users.sh"}, c.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v %s, want %q", name, err, out, c.want)
		}
	}
}
