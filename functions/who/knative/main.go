// Command knative runs who on Knative.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/host/knative"
)

func main() { knative.Main("who", who.FromEnv) }
