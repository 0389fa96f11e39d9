// Command knative runs auditingest on Knative.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
)

func main() {
	host.OneProcessor()
	knative.Main("auditingest", auditingest.FromEnv)
}
