// Command lambda runs refsweep on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/refsweep"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() { awslambda.Main("refsweep", refsweep.FromEnv) }
