package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	fileSuffix = "_FILE"
	arnSuffix  = "_SECRET_ARN"
	redacted   = "secret"
	// rereadAfter is how long a secret that may change is served from memory.
	rereadAfter = 30 * time.Second
)

// Secret is a setting whose value must never be shown and may be rotated while the process runs. Its variable NAME holds
// the value itself, NAME_FILE the path of a file with it, or NAME_SECRET_ARN the AWS secret with it. Get reads the latter
// two again after 30 s. Printing a Secret in any way prints "secret".
type Secret struct{ from *source }

// NewSecret is a Secret that always has the given value.
func NewSecret(value string) Secret { return Secret{from: &source{value: value}} }

// Decode takes the value of the variable itself; envconfig calls it.
func (s *Secret) Decode(value string) error {
	*s = NewSecret(value)
	return nil
}

// Get returns the present value, without surrounding white space when it came from a file; empty when none was configured.
// When a value that was read before cannot be read again, the old one is kept: a secret store that is down must not take us with it.
func (s Secret) Get(ctx context.Context) (string, error) {
	if s.from == nil {
		return "", nil
	}
	return s.from.current(ctx, time.Now())
}

// Configured reports whether the variable, its file or its ARN is set.
func (s Secret) Configured() bool {
	return s.from != nil && (s.from.value != "" || s.from.file != "" || s.from.arn != "")
}

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// source is where a secret comes from, and the value that was read last.
type source struct {
	name, value, file, arn string

	mu     sync.Mutex
	cached string
	readAt time.Time
}

// locate finds the one place that holds the value.
func (s *source) locate() error {
	s.file, s.arn = os.Getenv(s.name+fileSuffix), os.Getenv(s.name+arnSuffix)
	var set []string
	for _, p := range []struct{ variable, value string }{{s.name, s.value}, {s.name + fileSuffix, s.file}, {s.name + arnSuffix, s.arn}} {
		if p.value != "" {
			set = append(set, p.variable)
		}
	}
	if len(set) > 1 {
		return fmt.Errorf("%s are all set: keep one", strings.Join(set, ", "))
	}
	return nil
}

func (s *source) current(ctx context.Context, now time.Time) (string, error) {
	if s.file == "" && s.arn == "" {
		return s.value, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.readAt.IsZero() && now.Sub(s.readAt) < rereadAfter {
		return s.cached, nil
	}
	value, err := s.read(ctx)
	if err != nil {
		if s.readAt.IsZero() {
			return "", err
		}
		value = s.cached
	}
	s.cached, s.readAt = value, now
	return value, nil
}

func (s *source) read(ctx context.Context) (string, error) {
	switch {
	case s.file != "":
		b, err := os.ReadFile(s.file)
		if err != nil {
			var path *os.PathError
			if errors.As(err, &path) {
				err = path.Err
			}
			return "", Invalid(s.name+fileSuffix, s.file, "must be a readable file: %v", err)
		}
		return strings.TrimSpace(string(b)), nil
	case s.arn != "":
		value, err := AWSSecret(ctx, s.arn)
		if err != nil {
			return "", Invalid(s.name+arnSuffix, s.arn, "must be a readable secret: %v", err)
		}
		return value, nil
	default:
		return s.value, nil
	}
}
