package allinone

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

// variables are the names in the table that -help prints.
func variables(t *testing.T, err error) []string {
	t.Helper()
	var help *settings.Help
	if !errors.As(err, &help) {
		t.Fatalf("-help: got %v, want the table of settings", err)
	}
	var out []string
	for line := range strings.Lines(help.Table) {
		if name, _, _ := strings.Cut(line, " "); name != "VARIABLE" && name != "" && name == strings.ToUpper(name) {
			out = append(out, name)
		}
	}
	return out
}

// Each function's README names every setting of the function, and functions/README.md those that several share.
func TestEveryReadmeListsTheSettings(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{os.Args[0], "-help"}
	shared, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		own, err := os.ReadFile("../" + m.name + "/README.md")
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = m.fromEnv()
		names := variables(t, err)
		if len(names) < 10 {
			t.Errorf("%s: -help names only %v", m.name, names)
		}
		for _, name := range names {
			secret := strings.TrimSuffix(strings.TrimSuffix(name, "_FILE"), "_SECRET_ARN")
			if slices.Contains(names, secret) {
				name = secret // where a secret may come from is told once for all
			}
			if !strings.Contains(string(own)+string(shared), "`"+name+"`") {
				t.Errorf("neither functions/%s/README.md nor functions/README.md names %s", m.name, name)
			}
		}
	}
}

func TestTheReadmeListsOurOwnSettings(t *testing.T) {
	table, err := settings.Table(&Config{})
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := variables(t, &settings.Help{Table: table})
	if len(names) != 4 {
		t.Errorf("our own settings are %v", names)
	}
	for _, name := range names {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("README.md does not name %s", name)
		}
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"FUNCTIONS", "auditingest,kitchen", "FUNCTIONS (kitchen) must be some of auditingest,"},
		{"DRAIN_EVERY", "0s", "DRAIN_EVERY (0s) must be more than 0s"},
		{"DRAIN_EVERY", "soon", "DRAIN_EVERY"},
		{"SWEEP_EVERY", "-1s", "SWEEP_EVERY (-1s) must be more than 0s"},
		{"REDIS_TLS", "true", "REDIS_ADDR is not set: REDIS_TLS is set, so a store of your own is meant"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
