package auditingest_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// What Lambda hands over reaches the store: with a token over HTTP, without one from a subscription that IAM let in.
func TestPayloadsOfLambda(t *testing.T) {
	for _, c := range []struct {
		file   string
		token  string
		status int
		body   string
	}{
		{"function-url-text.json", "sesame", 200, `{"stored":2,"counts":{"stored":2}}`},
		{"function-url-text.json", "another", 401, ""},
		{"function-url-base64-gzip.json", "sesame", 200, `{"stored":2,"counts":{"stored":2}}`},
		{"http-api-text.json", "sesame", 200, `{"stored":2,"counts":{"stored":2}}`},
		{"http-api-base64.json", "sesame", 200, `{"stored":2,"counts":{"stored":2}}`},
		{"function-url-get.json", "", 200, ""},
		{"cloudwatch-logs.json", "", 0, `{"stored":2,"counts":{"stored":2,"event_malformed":1}}`},
		{"cloudwatch-logs-control.json", "", 0, `null`},
	} {
		t.Run(c.file, func(t *testing.T) {
			payload, err := os.ReadFile(filepath.Join("../../events/samples/platforms", c.file))
			if err != nil {
				t.Fatal(err)
			}
			if c.token == "another" {
				payload = []byte(strings.Replace(string(payload), "Bearer sesame", "Bearer another", 1))
			}
			f := newFunction(t, config(), &fakeStore{}, io.Discard)
			adapter := awslambda.New(awslambda.Config{EventPath: "/", LogsPath: "/audit-webhook/{cluster}"}, f, slog.New(slog.DiscardHandler))
			result, err := adapter.Invoke(t.Context(), payload)
			if err != nil {
				t.Fatal(err)
			}
			if c.status == 0 {
				if string(result) != c.body {
					t.Errorf("result %s, want %s", result, c.body)
				}
				return
			}
			var answer struct {
				StatusCode int
				Body       string
			}
			if err := json.Unmarshal(result, &answer); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != c.status || c.body != "" && strings.TrimSpace(answer.Body) != c.body {
				t.Errorf("answered %d %s, want %d %s", answer.StatusCode, answer.Body, c.status, c.body)
			}
		})
	}
}

func TestTokensAreRotatedWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("default=first")
		t.Setenv("AUDIT_TOKENS_FILE", file)
		var loaded struct {
			Tokens settings.Secret `envconfig:"AUDIT_TOKENS"`
		}
		if err := settings.Load(&loaded); err != nil {
			t.Fatal(err)
		}
		f := newFunction(t, config(func(c *auditingest.Config) { c.Tokens = loaded.Tokens }), &fakeStore{}, io.Discard)
		status := func(token string) int {
			return send(f, "POST", "/audit-webhook/default", bearer(token), strings.NewReader(list())).Code
		}
		if got := status("first"); got != 200 {
			t.Fatalf("the first token is answered %d", got)
		}
		write("default=first,default=second")
		time.Sleep(time.Minute)
		if a, b := status("first"), status("second"); a != 200 || b != 200 {
			t.Errorf("with both tokens: %d and %d", a, b)
		}
		write("default=second")
		time.Sleep(time.Minute)
		if a, b := status("first"), status("second"); a != 401 || b != 200 {
			t.Errorf("after the rotation: %d and %d, want 401 and 200", a, b)
		}
		write("nonsense")
		time.Sleep(time.Minute)
		if got := status("second"); got != 200 {
			t.Errorf("with a file that cannot be read the last tokens are answered %d", got)
		}
	})
}

// A store that does not answer holds a post for its deadline and no longer, and is used again when it answers.
func TestAHangingServerIsSurvived(t *testing.T) {
	server := valkeytest.Real(t)
	weather := valkeytest.NewOutage(t, server.Addr)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: weather.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cfg := config(func(c *auditingest.Config) {
		c.StoreTimeout, c.QueueWait, c.Concurrency, c.Queue = 200*time.Millisecond, 200*time.Millisecond, 4, 8
	})
	f := newFunction(t, cfg, auditingest.NewStore(cfg, store), io.Discard)
	post := func() int {
		return send(f, "POST", "/audit-webhook/default", bearer("sesame"), strings.NewReader(list(update("a")))).Code
	}
	answers := func() { // within the store's deadline, which a busy machine may need more than once
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); post() != http.StatusOK; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no post is taken in fair weather")
			}
		}
	}
	answers()
	weather.Set(valkeytest.Hanging)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if got := post(); got != http.StatusServiceUnavailable {
				t.Errorf("while the server hangs answered %d, want 503", got)
			}
		})
	}
	all.Wait()
	weather.Set(valkeytest.Down) // cut what hangs
	weather.Set(valkeytest.Fair)
	answers()
}
