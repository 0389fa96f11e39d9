package host_test

import (
	"net/http/httptest"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

func TestMayRead(t *testing.T) {
	for name, tt := range map[string]struct {
		secret settings.Secret
		header string
		trust  bool
		want   bool
	}{
		"no token is configured":          {settings.Secret{}, "", false, true},
		"the token":                       {settings.NewSecret("sesame"), "Bearer sesame", false, true},
		"the scheme in another case":      {settings.NewSecret("sesame"), "bearer sesame", false, true},
		"the platform knows the caller":   {settings.NewSecret("sesame"), "", true, true},
		"no header":                       {settings.NewSecret("sesame"), "", false, false},
		"another token":                   {settings.NewSecret("sesame"), "Bearer simsim", false, false},
		"the beginning of the token":      {settings.NewSecret("sesame"), "Bearer ses", false, false},
		"another scheme":                  {settings.NewSecret("sesame"), "Basic sesame", false, false},
		"a scheme alone":                  {settings.NewSecret("sesame"), "Bearer", false, false},
		"the token without its scheme":    {settings.NewSecret("sesame"), "sesame", false, false},
		"an empty token where one is set": {settings.NewSecret("sesame"), "Bearer ", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			if tt.trust {
				r = r.WithContext(host.WithTrust(r.Context()))
			}
			if got, err := host.MayRead(r, tt.secret); got != tt.want || err != nil {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestAnEmptyTokenOpensNothing(t *testing.T) {
	if host.Bears(httptest.NewRequest("GET", "/", nil), "") {
		t.Error("a request without a token bears an empty one")
	}
}
