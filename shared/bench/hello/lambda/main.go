// Command lambda is what cold starts are measured beside: aws-lambda-go's hello with a connection to Redis.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	lambda.Start(func(ctx context.Context) (string, error) { return client.Ping(ctx).Result() })
}
