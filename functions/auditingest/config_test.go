package auditingest_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/settings"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestConfigurationMistakesNameTheRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*auditingest.Config)
		want   string
	}{
		{"no tokens", func(c *auditingest.Config) { c.Tokens = settings.Secret{} }, "AUDIT_TOKENS is not set: without a token anybody could name authors; AUDIT_ALLOW_ANONYMOUS=true accepts that"},
		{"tokens and anybody", func(c *auditingest.Config) { c.AllowAnonymous = true }, "AUDIT_ALLOW_ANONYMOUS (true) must not be set beside AUDIT_TOKENS: keep one"},
		{"no room for an event", func(c *auditingest.Config) { c.MaxEventBytes = 0 }, "AUDIT_MAX_EVENT_BYTES (0) must be at least 1"},
		{"no room for a body", func(c *auditingest.Config) { c.MaxBodyBytes = -1 }, "AUDIT_MAX_BODY_BYTES (-1) must be at least 1"},
		{"nobody at work", func(c *auditingest.Config) { c.Concurrency = 0 }, "AUDIT_CONCURRENCY (0) must be at least 1"},
		{"a queue of less than none", func(c *auditingest.Config) { c.Queue = -1 }, "AUDIT_QUEUE (-1) must be at least 0"},
		{"facts that do not last", func(c *auditingest.Config) { c.FactTTL = 0 }, "AUDIT_FACT_TTL (0s) must be more than 0s"},
		{"no time to store", func(c *auditingest.Config) { c.StoreTimeout = 0 }, "AUDIT_STORE_TIMEOUT (0s) must be more than 0s"},
		{"a negative skew", func(c *auditingest.Config) { c.ClockSkew = -time.Second }, "AUDIT_CLOCK_SKEW (-1s) must not be negative"},
	} {
		cfg := config(c.change)
		if err := cfg.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestTokensThatCannotBeReadStopTheStart(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2":               "AUDIT_TOKENS: pair 1 must be route=token",
		"default=a,=hunter2":    "AUDIT_TOKENS: pair 2 must be route=token",
		"default=a,hunter2=":    "AUDIT_TOKENS: pair 2 must be route=token",
		"default=a,b/c=hunter2": "AUDIT_TOKENS: pair 2: the route must be 1 to 253 printable characters without a slash",
		" , ,":                  "AUDIT_TOKENS is not set: it holds no route=token pair",
		"default=a,\nhunter2 ":  "AUDIT_TOKENS: pair 2 must be route=token",
	} {
		cfg := config(func(c *auditingest.Config) { c.Tokens = settings.NewSecret(text) })
		_, err := auditingest.New(cfg, &fakeStore{}, telemetry.WriteTo(io.Discard, "auditingest"))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("default=sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_ADDR", "127.0.0.1:1")
	if _, err := auditingest.FromEnv(); err == nil || !strings.Contains(err.Error(), "AUDIT_TOKENS") {
		t.Errorf("without tokens: %v", err)
	}
	t.Setenv("AUDIT_TOKENS_FILE", file)
	f, err := auditingest.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	// Nobody listens there: the function starts all the same, and says so to each post.
	for token, want := range map[string]int{"sesame": 503, "other": 401} {
		if w := send(f, "POST", "/audit-webhook/default", bearer(token), strings.NewReader(list(update("a")))); w.Code != want {
			t.Errorf("token %q is answered %d %s, want %d", token, w.Code, w.Body, want)
		}
	}
	if w := send(f, "GET", "/health/readiness", nil, nil); w.Code != 200 {
		t.Errorf("readiness with the store down is %d: a store that all copies share must not take them all away", w.Code)
	}
	t.Setenv("REDIS_ADDR", "")
	if _, err := auditingest.FromEnv(); err == nil {
		t.Error("started without a store")
	}
}

// Marked secrets go in everywhere; they must come out nowhere: no answer, log line, metric, key or value.
func TestNoSecretComesOut(t *testing.T) {
	const mark = "hunter2"
	server := valkeytest.Mini(t)
	weather := valkeytest.NewOutage(t, server.Addr)
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: weather.Addr, KeyPrefix: server.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var out bytes.Buffer
	cfg := config(func(c *auditingest.Config) {
		c.Tokens = settings.NewSecret("default=" + mark + "-token,eu-1=" + mark + "-other")
		c.StoreTimeout, c.MaxEventBytes, c.RouteAnnotationKey = time.Second, 8<<10, "kcp.io/cluster"
	})
	f := newFunction(t, cfg, auditingest.NewStore(cfg, store), &out)
	secret := strings.Replace(update("s"), `"kind":"ConfigMap"`, `"data":{"password":"`+mark+`"},"stringData":{"k":"`+mark+`"},"kind":"Secret"`, 1)
	secret = strings.Replace(secret, `"requestURI":"/api/v1`, `"requestObject":{"kind":"Secret","metadata":{"annotations":{"last-applied":"`+mark+`"},"managedFields":[{"manager":"`+mark+`"}]},"data":{"p":"`+mark+`"}},"requestURI":"/api/v1`, 1)
	bodies := []string{list(secret), list(`{"stage":"` + mark + ``), `{"kind":"` + mark + `"}`, mark, list(`{"verb":"` + mark + `"}`), list(`{"a":"` + strings.Repeat(mark, 2000) + `"}`), list(strings.Replace(secret, `"ResponseComplete"`, `7`, 1))}
	post := func() {
		for _, path := range []string{"/audit-webhook/default", "/audit-webhook/eu-1", "/audit-webhook", "/audit-webhook/default/self-test"} {
			for _, method := range []string{"POST", "GET"} {
				for _, token := range []string{mark + "-token", mark + "-wrong"} {
					for _, body := range bodies {
						header := bearer(token)
						header["Cookie"], header["Content-Encoding"] = "session="+mark, ""
						w := send(f, method, path, header, strings.NewReader(body))
						out.Write(w.Body.Bytes())
						_ = w.Header().Write(&out)
					}
				}
			}
		}
	}
	post()
	weather.Set(valkeytest.Down)
	post()
	weather.Set(valkeytest.Fair)
	out.Write(send(f, http.MethodGet, "/metrics", nil, nil).Body.Bytes())

	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 2 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	for _, key := range keys {
		out.WriteString(key + "\n")
		if value, err := client.Get(t.Context(), key).Result(); err == nil {
			out.WriteString(value + "\n")
		}
	}
	if at := strings.Index(out.String(), mark); at >= 0 {
		t.Errorf("a secret comes out: …%s", out.String()[max(0, at-200):at+20])
	}
	if !strings.Contains(out.String(), "facts not stored") {
		t.Error("the store's failure is not in the log")
	}
}
