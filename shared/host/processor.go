package host

import (
	"os"
	"runtime"
)

// OneProcessor lets the process run Go code on one processor at a time, unless GOMAXPROCS is set. It is for functions
// whose requests are microseconds of work around a wait for Redis: one processor serves more of them than one Redis
// does, the platform adds instances, and with more processors the runtime wakes threads that find nothing to do, which
// costs such a request a fifth of its processor time. To be called first in main.
func OneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
