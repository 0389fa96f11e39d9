// Command knative runs authorcapture on Knative.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
)

func main() {
	host.OneProcessor()
	knative.Main("authorcapture", authorcapture.FromEnv)
}
