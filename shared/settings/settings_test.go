package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Store is a group of settings that several functions embed.
type Store struct {
	Addr     string `envconfig:"STORE_ADDR" desc:"host:port"`
	Password string `envconfig:"STORE_PASSWORD" secret:"true" desc:"password"`
}

func (s *Store) Validate() error {
	if s.Addr == "nowhere" {
		return Invalid("STORE_ADDR", s.Addr, "must be host:port")
	}
	return nil
}

type config struct {
	Store
	Grace  time.Duration `envconfig:"GRACE" default:"45s" desc:"how long to wait"`
	Count  uint          `envconfig:"COUNT" default:"3" desc:"how many"`
	On     bool          `envconfig:"ON" default:"true" desc:"whether"`
	Kinds  []string      `envconfig:"KINDS" default:"a,b" desc:"which"`
	Tokens Secret        `envconfig:"TOKENS" desc:"who may"`
}

func (c *config) Validate() error {
	if c.Grace > time.Minute {
		return Invalid("GRACE", c.Grace, "must be at most %s: the API server may forget changes after 75s", time.Minute)
	}
	return nil
}

// load reads a config with just these variables set.
func load(t *testing.T, env map[string]string) (config, error) {
	t.Helper()
	for _, name := range []string{"STORE_ADDR", "STORE_PASSWORD", "GRACE", "COUNT", "ON", "KINDS", "TOKENS"} {
		for _, suffix := range []string{"", fileSuffix, arnSuffix} {
			if value, ok := env[name+suffix]; ok {
				t.Setenv(name+suffix, value)
			} else {
				t.Setenv(name+suffix, "") // so that the test's end restores it
				os.Unsetenv(name + suffix)
			}
		}
	}
	var c config
	err := Load(&c)
	return c, err
}

func TestDefaultsAndValues(t *testing.T) {
	c, err := load(t, nil)
	if err != nil || c.Grace != 45*time.Second || c.Count != 3 || !c.On || !slices.Equal(c.Kinds, []string{"a", "b"}) || c.Tokens.Configured() {
		t.Errorf("defaults: %+v, %v", c, err)
	}
	c, err = load(t, map[string]string{"STORE_ADDR": "h:1", "STORE_PASSWORD": "p", "GRACE": "1m", "COUNT": "7", "ON": "false", "KINDS": "x", "TOKENS": "t"})
	tokens, tokenErr := c.Tokens.Get(t.Context())
	if err != nil || tokenErr != nil || c.Addr != "h:1" || c.Password != "p" || c.Grace != time.Minute || c.Count != 7 || c.On || !slices.Equal(c.Kinds, []string{"x"}) || tokens != "t" {
		t.Errorf("values: %+v, tokens %q, %v", c, tokens, err)
	}
}

func TestMistakesNameTheVariableTheValueAndTheRule(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"a duration without a unit", map[string]string{"GRACE": "45"}, `GRACE ("45") must be a duration such as 45s or 10m`},
		{"an empty duration", map[string]string{"GRACE": ""}, `GRACE ("") must be a duration such as 45s or 10m`},
		{"a word for a number", map[string]string{"COUNT": "many"}, `COUNT ("many") must be a whole number, not negative`},
		{"a negative number", map[string]string{"COUNT": "-1"}, `COUNT ("-1") must be a whole number, not negative`},
		{"a word for yes", map[string]string{"ON": "yes"}, `ON ("yes") must be true or false`},
		{"a rule of the function", map[string]string{"GRACE": "90s"}, "GRACE (1m30s) must be at most 1m0s: the API server may forget changes after 75s"},
		{"a rule of a group", map[string]string{"STORE_ADDR": "nowhere"}, "STORE_ADDR (nowhere) must be host:port"},
		{"a secret in two places", map[string]string{"TOKENS": "hunter2", "TOKENS_FILE": "/f"}, "TOKENS, TOKENS_FILE are all set: keep one"},
		{"a password in three places", map[string]string{"STORE_PASSWORD": "hunter2", "STORE_PASSWORD_FILE": "/f", "STORE_PASSWORD_SECRET_ARN": "arn"}, "STORE_PASSWORD, STORE_PASSWORD_FILE, STORE_PASSWORD_SECRET_ARN are all set: keep one"},
		{"a file that is not there", map[string]string{"TOKENS_FILE": dir + "/none"}, "TOKENS_FILE (" + dir + "/none) must be a readable file: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.env)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the error shows a secret")
			}
		})
	}
	if err := Load(config{}); err == nil {
		t.Error("a struct that is no pointer is taken")
	}
	var untagged struct{ A string }
	if err := Load(&untagged); err == nil || !strings.Contains(err.Error(), "field A") {
		t.Errorf("a field without a variable: %v", err)
	}
	if got := Missing("A", "needed for %s", "b").Error(); got != "A is not set: needed for b" {
		t.Error(got)
	}
}

func TestASecretFromAFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	c, err := load(t, map[string]string{"TOKENS_FILE": file, "STORE_PASSWORD_FILE": file})
	if err != nil || c.Password != "first" {
		t.Fatalf("%v, password %q", err, c.Password)
	}
	now := time.Now()
	get := func(at time.Duration) string {
		t.Helper()
		value, err := c.Tokens.from.current(t.Context(), now.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	write("second\n")
	if got := get(0); got != "first" {
		t.Errorf("at once: %q, want the one in memory", got)
	}
	if got := get(time.Minute); got != "second" {
		t.Errorf("a minute later: %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := get(2 * time.Minute); got != "second" {
		t.Errorf("with the file gone: %q, want the last one", got)
	}
}

// extension plays the AWS Parameters and Secrets extension.
func extension(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(extensionPortVariable, port)
	t.Setenv("AWS_SESSION_TOKEN", "session-hunter2")
}

func TestASecretFromTheExtension(t *testing.T) {
	const arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:tokens-AbCdEf"
	extension(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/secretsmanager/get" || r.URL.Query().Get("secretId") != arn || r.Header.Get("X-Aws-Parameters-Secrets-Token") != "session-hunter2" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"Name": "tokens", "SecretString": "default=sesame"})
	})
	c, err := load(t, map[string]string{"TOKENS_SECRET_ARN": arn, "STORE_PASSWORD_SECRET_ARN": arn})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Tokens.Get(t.Context()); err != nil || got != "default=sesame" || c.Password != got || !c.Tokens.Configured() {
		t.Errorf("tokens %q, password %q, %v", got, c.Password, err)
	}
}

func TestAnExtensionThatDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refuses":       {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "session-hunter2", 400) }, "the secrets extension answered 400 Bad Request"},
		"has no string": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"SecretBinary":"aHVudGVyMg=="}`) }, "the secrets extension's answer has no SecretString"},
		"says nonsense": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `hunter2`) }, "the secrets extension's answer has no SecretString"},
	} {
		t.Run(name, func(t *testing.T) {
			extension(t, c.answer)
			_, err := load(t, map[string]string{"TOKENS_SECRET_ARN": "arn:x"})
			if want := "TOKENS_SECRET_ARN (arn:x) must be a readable secret: " + c.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		extension(t, nil)
		t.Setenv(extensionPortVariable, "1")
		if _, err := load(t, map[string]string{"TOKENS_SECRET_ARN": "arn:x"}); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "ask the secrets extension on port 1") {
			t.Errorf("got %v", err)
		}
	})
}

func TestASecretIsNeverShown(t *testing.T) {
	s := NewSecret("hunter2")
	holder := struct{ Token Secret }{s}
	text, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "token", s, "config", holder)
	shown := fmt.Sprintf("%v %+v %#v %s %q %x", s, holder, s, s, s, s) + string(text) + logged.String() + fmt.Sprint(&s)
	if strings.Contains(shown, "hunter2") || strings.Contains(shown, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("shown: %s", shown)
	}
	var none Secret
	if got, err := none.Get(context.Background()); got != "" || err != nil || none.Configured() {
		t.Errorf("no secret is %q, %v", got, err)
	}
}

func TestHelp(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	for _, flag := range []string{"-help", "--help", "-h"} {
		os.Args = []string{"function", flag}
		_, err := load(t, map[string]string{"GRACE": "nonsense", "STORE_PASSWORD": "hunter2"})
		var help *Help
		if !errors.As(err, &help) {
			t.Fatalf("%s: %v", flag, err)
		}
		for _, want := range []string{"STORE_ADDR", "host:port", "GRACE", "45s", "duration", "how long to wait", "number", "bool", "list", "TOKENS_FILE", "TOKENS_SECRET_ARN", "STORE_PASSWORD_FILE"} {
			if !strings.Contains(help.Table, want) {
				t.Errorf("%s lacks %q:\n%s", flag, want, help.Table)
			}
		}
		if strings.Contains(help.Table, "hunter2") {
			t.Error("the table shows a secret")
		}
	}
}
