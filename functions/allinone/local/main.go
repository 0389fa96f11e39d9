// Command local runs every function in one process.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/allinone"
	"github.com/tidemark-dev/tidemark/shared/host/local"
)

func main() { local.Main("allinone", allinone.FromEnv) }
