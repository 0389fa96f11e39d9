package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/settings"
)

// ManagedSecrets reads Secrets from AWS Secrets Manager, through its Lambda extension: Secret NAMESPACE/NAME is the secret
// called prefix + NAMESPACE/NAME. Its text is a JSON object with the keys and values that the Secret would have.
// No error holds any of them.
func ManagedSecrets(prefix string) ReadSecret {
	return func(ctx context.Context, ref SecretReference) (map[string][]byte, error) {
		name := prefix + ref.Namespace + "/" + ref.Name
		text, err := settings.AWSSecret(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read AWS secret %s: %w", name, err)
		}
		var values map[string]string
		if err := json.Unmarshal([]byte(text), &values); err != nil || len(values) == 0 {
			return nil, fmt.Errorf("%w: AWS secret %s must be a JSON object of texts", ErrSecretNotReadable, name)
		}
		data := make(map[string][]byte, len(values))
		for key, value := range values {
			data[key] = []byte(value)
		}
		return data, nil
	}
}
