// Package awslambda runs a function on AWS Lambda: it translates an invocation into a request to the function's
// http.Handler and the answer back, and decides nothing.
//
//	function URL, API Gateway v2   the request itself, text or base64
//	SQS                            one POST a record to LAMBDA_EVENT_PATH; records that failed are named to SQS
//	CloudWatch Logs subscription   one POST of an audit EventList to LAMBDA_LOGS_PATH
//	anything else (Scheduler, …)   one POST of the payload to LAMBDA_EVENT_PATH
//
// Requests of the last three are marked as authenticated by the platform (host.Trusted). Lambda retries an asynchronous
// invocation for every error, so only what a retry can mend (5xx, 429) is one; anything else is logged and acknowledged.
// The answer's body is the invocation's result, which a Lambda destination passes on.
package awslambda

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

// Config is what the host itself reads.
type Config struct {
	host.Logging
	EventPath string `envconfig:"LAMBDA_EVENT_PATH" default:"/" desc:"path that schedules, queue records and direct invocations are posted to"`
	LogsPath  string `envconfig:"LAMBDA_LOGS_PATH" default:"/audit-webhook/default" desc:"path that CloudWatch Logs subscriptions are posted to; {cluster} becomes the EKS cluster of the log group"`
}

// Validate checks the paths.
func (c *Config) Validate() error {
	for _, p := range []struct{ name, path string }{{"LAMBDA_EVENT_PATH", c.EventPath}, {"LAMBDA_LOGS_PATH", c.LogsPath}} {
		if !strings.HasPrefix(p.path, "/") {
			return settings.Invalid(p.name, p.path, "must begin with /")
		}
	}
	return nil
}

// Main runs the function until Lambda ends the execution environment.
func Main(function string, fromEnv host.FromEnv) {
	host.Exit(run(function, fromEnv))
}

func run(function string, fromEnv host.FromEnv) error {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("function", function)
	if fromExtension() && !settings.HelpWanted() {
		made := fromEnv
		fromEnv = func() (http.Handler, error) { return &deferred{fromEnv: made, log: log}, nil }
	}
	var cfg Config
	handler, err := host.Prepare(function, &cfg, fromEnv, os.Stdout)
	if err != nil || handler == nil {
		return err
	}
	draining := make(chan struct{})
	adapter := New(cfg, handler, log)
	adapter.draining = draining
	// Lambda sends SIGTERM only between invocations and kills half a second later; the library leaves the exit to us.
	lambda.StartWithOptions(adapter, lambda.WithEnableSIGTERM(func() {
		close(draining)
		if err := host.Stop(context.Background(), handler); err != nil {
			log.Error("stop", "error", err)
		}
		os.Exit(0)
	}))
	return nil
}

// Adapter is the lambda.Handler around a function. It is safe for concurrent invocations.
type Adapter struct {
	cfg      Config
	handler  http.Handler
	log      *slog.Logger
	draining <-chan struct{}
}

// New is an Adapter that posts events where cfg says.
func New(cfg Config, handler http.Handler, log *slog.Logger) *Adapter {
	return &Adapter{cfg: cfg, handler: handler, log: log}
}

// payload holds just enough of every kind of invocation to tell them apart.
type payload struct {
	RequestContext *struct {
		HTTP *struct{} `json:"http"`
	} `json:"requestContext"`
	Records []struct {
		EventSource string `json:"eventSource"`
	} `json:"Records"`
	AWSLogs *struct {
		Data string `json:"data"`
	} `json:"awslogs"`
}

// Invoke handles one invocation; lambda calls it.
func (a *Adapter) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	if a.draining != nil {
		ctx = host.WithDraining(ctx, a.draining)
	}
	var p payload
	// A payload of any other shape, also one that is no object, is an event all the same.
	_ = json.Unmarshal(raw, &p)
	switch {
	case p.RequestContext != nil && p.RequestContext.HTTP != nil:
		return a.serveHTTPRequest(ctx, raw)
	case len(p.Records) > 0 && p.Records[0].EventSource == "aws:sqs":
		return a.serveQueue(ctx, raw)
	case p.AWSLogs != nil:
		return a.serveLogs(ctx, p.AWSLogs.Data)
	default:
		return a.result(a.post(ctx, a.cfg.EventPath, raw))
	}
}

// result is what an asynchronous invocation returns for the function's answer: its body for a destination, or an error
// when a retry can mend it.
func (a *Adapter) result(answer *answer) ([]byte, error) {
	if answer.retryable() {
		return nil, fmt.Errorf("the function answered %d %s", answer.status, http.StatusText(answer.status))
	}
	if answer.status >= http.StatusBadRequest {
		a.log.Error("event refused, not retried", "status", answer.status, "answer", answer.excerpt())
	}
	return answer.json(), nil
}
