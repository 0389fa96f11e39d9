// Command lambda runs authorcapture on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() {
	host.OneProcessor()
	awslambda.Main("authorcapture", authorcapture.FromEnv)
}
