package allinone

import (
	"strings"
	"testing"
)

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"FUNCTIONS", "auditingest,kitchen", "FUNCTIONS (kitchen) must be some of auditingest,"},
		{"DRAIN_EVERY", "0s", "DRAIN_EVERY (0s) must be more than 0s"},
		{"DRAIN_EVERY", "soon", "DRAIN_EVERY"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
