package refsweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"REDIS_ADDR": "127.0.0.1:6379", "SWEEP_TARGETS_FILE": file}
	tests := []struct {
		name string
		set  map[string]string
		err  string // how the error begins; empty: none
	}{
		{name: "the least"},
		{name: "a sink", set: map[string]string{"K_SINK": "http://broker.example.com/x", "K_CE_OVERRIDES": `{"extensions":{"team":"shop"}}`}},
		{name: "a sink that is no URL", set: map[string]string{"K_SINK": "alice:s3cr3t@broker"}, err: "K_SINK (…) must be"},
		{name: "overrides that are no JSON", set: map[string]string{"K_CE_OVERRIDES": "x"}, err: "K_CE_OVERRIDES"},
		{name: "a selector that is none", set: map[string]string{"SWEEP_SELECTOR": "a in"}, err: "SWEEP_SELECTOR (a in) must be a label selector"},
		{name: "a fleet's name", set: map[string]string{"SWEEP_FLEET": "a}b"}, err: "SWEEP_FLEET (a}b) is not usable"},
		{name: "no listing at a time", set: map[string]string{"SWEEP_PER_HOST": "0"}, err: "SWEEP_PER_HOST (0) must be between 1 and 64"},
		{name: "a short time", set: map[string]string{"SWEEP_TIMEOUT": "3s"}, err: "SWEEP_TIMEOUT (3s) must be between 10s and 14m"},
		{name: "a listing longer than the sweep", set: map[string]string{"SWEEP_TIMEOUT": "15s", "SWEEP_LISTING_TIMEOUT": "11s"}, err: "SWEEP_LISTING_TIMEOUT (11s) must be"},
		{name: "no moves", set: map[string]string{"SWEEP_MAX_MOVES": "0"}, err: "SWEEP_MAX_MOVES (0) must be"},
		{name: "annotations without a cluster", set: map[string]string{"SWEEP_ANNOTATE": "true"}, err: "SWEEP_ANNOTATE (true) must be false"},
		{name: "a folder without a file", set: map[string]string{"SWEEP_TARGETS_FILE": "", "SWEEP_SECRETS_DIR": "/x"}, err: "SWEEP_SECRETS_DIR (/x) must be empty"},
		{name: "a file that is not there", set: map[string]string{"SWEEP_TARGETS_FILE": "/none.yaml"}, err: "SWEEP_TARGETS_FILE (/none.yaml) must be a readable file"},
		{name: "a folder of Secrets that is not there", set: map[string]string{"SWEEP_SECRETS_DIR": "/none"}, err: "SWEEP_SECRETS_DIR (/none) must be a readable folder"},
		{name: "no store", set: map[string]string{"REDIS_ADDR": ""}, err: "REDIS_ADDR is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, env := range []map[string]string{good, tt.set} {
				for name, value := range env {
					t.Setenv(name, value)
				}
			}
			h, err := FromEnv()
			if tt.err == "" {
				if err != nil || h == nil {
					t.Errorf("error %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error %v, want %s…", err, tt.err)
			}
		})
	}
}

func TestTheReadmeListsEverySetting(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := settings.Table(&Config{})
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(name, "SWEEP_") && !strings.HasPrefix(name, "K_") {
			continue
		}
		listed++
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("the README does not list %s", name)
		}
	}
	if listed < 12 {
		t.Errorf("only %d settings in the table:\n%s", listed, table)
	}
}
