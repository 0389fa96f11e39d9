// Command local runs every function in one process. With the argument who it asks one question and ends.
package main

import (
	"os"

	"github.com/tidemark-dev/tidemark/functions/allinone"
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/host/local"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "who" {
		host.Exit(who.Command(os.Args[2:], os.Stdout))
		return
	}
	local.Main("allinone", allinone.FromEnv)
}
