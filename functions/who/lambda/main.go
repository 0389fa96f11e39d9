// Command lambda runs who on AWS Lambda.
package main

import (
	"github.com/tidemark-dev/tidemark/functions/who"
	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

func main() { awslambda.Main("who", who.FromEnv) }
