// Command knative runs refsweep on Knative.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/refsweep"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
)

func main() { knative.Main("refsweep", refsweep.FromEnv) }
