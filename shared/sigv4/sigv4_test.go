package sigv4

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The vectors come from botocore (testdata/vectors.py). Its query is in another order, which the signature does not cover.
func TestTokensAreWhatBotocoreSigns(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Time                         time.Time
		AccessKeyID, SecretAccessKey string
		Vectors                      []struct{ Kind, Region, Name, User, Session, Want string }
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	if len(in.Vectors) != 5 {
		t.Fatalf("testdata/vectors.json has %d vectors, want 5", len(in.Vectors))
	}
	for _, v := range in.Vectors {
		t.Run(v.Kind+" "+v.Region+" "+v.Name, func(t *testing.T) {
			c := Credentials{in.AccessKeyID, in.SecretAccessKey, v.Session}
			// The caller's clock may be in any zone.
			now := in.Time.In(time.FixedZone("UTC+9", 9*3600))
			var got, want string
			switch v.Kind {
			case "eks":
				got, want = decodeEKS(t, EKSToken(c, v.Region, v.Name, now)), decodeEKS(t, v.Want)
			case "elasticache":
				got, want = "https://"+ElastiCachePassword(c, v.Region, v.Name, v.User, now), "https://"+v.Want
			default:
				t.Fatalf("unknown kind %q", v.Kind)
			}
			if diff := cmp.Diff(parts(t, want), parts(t, got)); diff != "" {
				t.Errorf("signed request differs (-botocore +ours):\n%s", diff)
			}
		})
	}
}

func decodeEKS(t *testing.T, token string) string {
	t.Helper()
	rest, ok := strings.CutPrefix(token, eksTokenPrefix)
	if !ok {
		t.Fatalf("token %q does not begin with %s", token, eksTokenPrefix)
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		t.Fatalf("token is not base64 without padding: %v", err)
	}
	return string(b)
}

func parts(t *testing.T, address string) map[string][]string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string(u.Query())
	out["host and path"] = []string{u.Host + u.Path}
	return out
}

func TestEscapeFollowsRFC3986(t *testing.T) {
	for in, want := range map[string]string{
		"a b+c/d":     "a%20b%2Bc%2Fd",
		"A-z_0.9~":    "A-z_0.9~",
		"k=v&x":       "k%3Dv%26x",
		"ü\n*":        "%C3%BC%0A%2A",
		"host;x-amz-": "host%3Bx-amz-",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCredentialsComeFromTheEnvironmentEachTimeAndAreNeverPrinted(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SESSION_TOKEN", "")
	if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials FromEnv() gives %v, want an error that names AWS_ACCESS_KEY_ID", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	t.Setenv("AWS_SESSION_TOKEN", "hunter3")
	c, err := FromEnv()
	if err != nil || c != (Credentials{"id", "hunter2", "hunter3"}) {
		t.Fatalf("FromEnv() = %#v, %v", c.AccessKeyID, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if out := fmt.Sprintf(verb, c); strings.Contains(out, "hunter") {
			t.Errorf("Sprintf(%s) shows %s", verb, out)
		}
	}
}
