package watchcommit

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// A password goes to the git server and nowhere else: not to logs, answers, keys or values of the store, nor into git,
// whatever goes wrong.
func TestAPasswordStaysWhereItIs(t *testing.T) {
	const password = "hunter2-marked-secret"
	w := tale(t, "", func(sc *scenario, cm *recorded.Watch) {
		sc.at = time.Second
		sc.create(cm, "a", "alice")
		sc.post()
		sc.at = 3 * time.Second
		sc.create(cm, "b", "bob")
	})
	w.git.RequirePassword("mirror", password)
	value := password
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/tidemark/secrets/cfg-git" {
			w.api.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		data := fmt.Sprintf(`"username":%q,"password":%q`, base64.StdEncoding.EncodeToString([]byte("mirror")), base64.StdEncoding.EncodeToString([]byte(value)))
		fmt.Fprintf(rw, `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"tidemark","name":"cfg-git"},"data":{%s}}`, data)
	}))
	t.Cleanup(func() { w.api.Disconnect(); api.CloseClientConnections(); api.Close() })
	w.apiURL = api.URL
	w.target(strings.Replace(smallTarget(""), "path: p}", "path: p, secretRef: {namespace: tidemark, name: cfg-git}}", 1))

	var answers strings.Builder
	tick := func(want int) {
		t.Helper()
		recorder := httptest.NewRecorder()
		w.function().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", nil))
		if recorder.Code != want {
			t.Errorf("status %d, want %d\n%s", recorder.Code, want, w.logs)
		}
		answers.WriteString(recorder.Body.String())
	}
	w.at(2)
	w.facts()
	value = password + "-wrong"
	tick(http.StatusServiceUnavailable)
	value = password
	w.git.Inject(gittest.Pushes, 1, gittest.LoseRequest)
	tick(http.StatusOK)
	w.repo.Hook("pre-receive", "#!/bin/sh\necho 'ask https://mirror:"+password+"@git.example.com/cfg' >&2\nexit 1\n")
	w.at(4)
	w.facts()
	tick(http.StatusServiceUnavailable)
	w.repo.RemoveHook("pre-receive")
	tick(http.StatusOK)
	w.wantHistory(first, "alice: create a", "bob: create b")

	places := map[string]string{"the logs": w.logs.String(), "the answers": answers.String(), "git": w.repo.Git("log", "-p", "main"), "the store": w.dump()}
	for place, text := range places {
		if len(text) == 0 {
			t.Errorf("%s: nothing to look at", place)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(password))) {
			t.Errorf("%s: the password is there", place)
		}
	}
	if strings.Contains(w.dump(), w.repo.URL) || strings.Contains(w.dump(), strings.TrimPrefix(w.repo.URL, "http://")) {
		t.Error("the store spells the repository's URL")
	}
}

// dump is every key of the store with its value.
func (w *world) dump() string {
	w.t.Helper()
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	defer client.Close()
	var out strings.Builder
	for _, key := range client.Keys(ctx, w.redis.Prefix+"*").Val() {
		out.WriteString(key + " = ")
		switch client.Type(ctx, key).Val() {
		case "hash":
			fmt.Fprintln(&out, client.HGetAll(ctx, key).Val())
		case "zset":
			fmt.Fprintln(&out, client.ZRange(ctx, key, 0, -1).Val())
		default:
			fmt.Fprintln(&out, client.Get(ctx, key).Val())
		}
		if ttl := client.TTL(ctx, key).Val(); ttl <= 0 {
			w.t.Errorf("%s has no TTL", key)
		}
	}
	return out.String()
}
