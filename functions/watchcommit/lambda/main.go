// Command watchcommit is the function on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/watchcommit"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() { awslambda.Main("watchcommit", watchcommit.FromEnv) }
