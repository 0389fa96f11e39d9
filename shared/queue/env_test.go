package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

func TestAStoreSignsInToElastiCacheWithTheRolesCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "",
		"REDIS_ADDR": "cache.example.com:6379", "REDIS_TLS": "true", "REDIS_USERNAME": "tidemark-who", "REDIS_IAM_CACHE": "tidemark",
	} {
		t.Setenv(name, value)
	}
	var e RedisEnv
	if err := settings.Load(&e); err != nil {
		t.Fatal(err)
	}
	username, password, err := e.connection().credentials(t.Context())
	if err != nil || username != "tidemark-who" {
		t.Fatalf("signs in as %q, %v", username, err)
	}
	for _, want := range []string{"tidemark/?Action=connect&ResourceType=ServerlessCache&User=tidemark-who&", "AKIDEXAMPLE%2F", "X-Amz-Expires=900"} {
		if !strings.Contains(password, want) {
			t.Errorf("password %q lacks %q", password, want)
		}
	}
	if strings.Contains(password, "hunter2") {
		t.Error("the password shows the role's secret key")
	}
}

func TestAPasswordFromAFileIsReadAsSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_USERNAME", "who")
	t.Setenv("REDIS_PASSWORD_FILE", file)
	var e RedisEnv
	if err := settings.Load(&e); err != nil {
		t.Fatal(err)
	}
	username, password, err := e.connection().credentials(t.Context())
	if err != nil || username != "who" || password != "hunter2" {
		t.Errorf("credentials gives %q, %q, %v; want who, hunter2", username, password, err)
	}
}

func TestSettingsThatContradictEachOtherAreRefused(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	good := RedisEnv{IAMCache: "tidemark", Username: "who", TLS: true}
	for name, c := range map[string]struct {
		change func(*RedisEnv)
		want   string
	}{
		"no user":          {func(e *RedisEnv) { e.Username = "" }, "REDIS_USERNAME is not set"},
		"a password too":   {func(e *RedisEnv) { e.Password = settings.NewSecret("hunter2") }, "REDIS_IAM_CACHE (tidemark) must be empty when REDIS_PASSWORD is set"},
		"plain text":       {func(e *RedisEnv) { e.TLS = false }, "needs REDIS_TLS=true"},
		"nothing is wrong": {func(*RedisEnv) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			c.change(&e)
			err := e.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
