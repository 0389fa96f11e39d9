// Command watchcommit is the function as a Knative service.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/watchcommit"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
)

func main() { knative.Main("watchcommit", watchcommit.FromEnv) }
