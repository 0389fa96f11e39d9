package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// The AWS Parameters and Secrets Lambda extension answers over HTTP on loopback and keeps its own cache; the token that
// it wants is the execution environment's session token.
const (
	extensionPortVariable = "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"
	extensionDefaultPort  = "2773"
	extensionTokenHeader  = "X-Aws-Parameters-Secrets-Token"
	extensionTimeout      = 3 * time.Second
	extensionMaxBytes     = 256 << 10
)

// AWSSecret returns the SecretString of an AWS secret, by its ARN or name, through the Parameters and Secrets extension,
// which keeps it for some minutes. It takes 3 s at most. Errors carry neither the secret nor the session token.
func AWSSecret(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, extensionTimeout)
	defer cancel()
	port := cmp.Or(os.Getenv(extensionPortVariable), extensionDefaultPort)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:"+port+"/secretsmanager/get?secretId="+url.QueryEscape(id), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set(extensionTokenHeader, os.Getenv("AWS_SESSION_TOKEN"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return "", fmt.Errorf("ask the secrets extension on port %s: %w", port, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, extensionMaxBytes))
	if err != nil {
		return "", fmt.Errorf("read the secrets extension's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the secrets extension answered %s", resp.Status)
	}
	var answer struct{ SecretString *string }
	if json.Unmarshal(body, &answer) != nil || answer.SecretString == nil {
		return "", errors.New("the secrets extension's answer has no SecretString")
	}
	return *answer.SecretString, nil
}
