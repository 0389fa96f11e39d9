// Command lambda runs authorcapture on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() { awslambda.Main("authorcapture", authorcapture.FromEnv) }
