package host

import (
	"os"
	"runtime"
)

// OneProcessor lets the process run Go code on one processor at a time, unless GOMAXPROCS is set. It is for functions
// whose requests are a little work around a wait for Redis, of which the platform starts more instances under load: with
// more processors the runtime wakes threads that find nothing to do, which was about a fifth of the processor time of a
// post of one event. To be called first in main.
func OneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
