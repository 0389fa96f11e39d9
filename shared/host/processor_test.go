package host_test

import (
	"runtime"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/host"
)

func TestOneProcessorUnlessTheEnvironmentSays(t *testing.T) {
	for _, tt := range []struct {
		gomaxprocs string
		want       int
	}{{"", 1}, {"3", 3}} {
		t.Run("GOMAXPROCS="+tt.gomaxprocs, func(t *testing.T) {
			before := runtime.GOMAXPROCS(3) // what the runtime would have taken
			t.Cleanup(func() { runtime.GOMAXPROCS(before) })
			t.Setenv("GOMAXPROCS", tt.gomaxprocs)
			host.OneProcessor()
			if got := runtime.GOMAXPROCS(0); got != tt.want {
				t.Errorf("got %d processors, want %d", got, tt.want)
			}
		})
	}
}
