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
