// Command lambda runs auditingest on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() {
	host.OneProcessor()
	awslambda.Main("auditingest", auditingest.FromEnv)
}
