package awslambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

type stoppable struct{ stopped int }

func (s *stoppable) ServeHTTP(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "made") }
func (s *stoppable) Stop(context.Context) error                       { s.stopped++; return nil }

func TestAFunctionWhoseSecretsAreNotThereYetIsMadeByALaterRequest(t *testing.T) {
	calls, inner := 0, &stoppable{}
	d := &deferred{log: slog.New(slog.NewJSONHandler(io.Discard, nil)), fromEnv: func() (http.Handler, error) {
		if calls++; calls == 1 {
			return nil, errors.New("the secrets extension answered 400 Bad Request")
		}
		return inner, nil
	}}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("Stop before the function is made: %v", err)
	}
	for i, want := range []struct {
		status int
		body   string
	}{{http.StatusServiceUnavailable, "not configured\n"}, {http.StatusOK, "made"}, {http.StatusOK, "made"}} {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		if w.Code != want.status || w.Body.String() != want.body {
			t.Errorf("request %d is answered %d %q, want %d %q", i+1, w.Code, w.Body, want.status, want.body)
		}
	}
	if calls != 2 {
		t.Errorf("the function was made %d times, want twice: once in vain", calls)
	}
	if err := d.Stop(t.Context()); err != nil || inner.stopped != 1 {
		t.Errorf("Stop reached the function %d times (%v), want once", inner.stopped, err)
	}
}

func TestOnlyASettingThatTheExtensionHoldsDefersTheFunction(t *testing.T) {
	t.Setenv("AUDIT_TOKENS_SECRET_ARN", "")
	if fromExtension() {
		t.Error("deferred without a secret")
	}
	t.Setenv("AUDIT_TOKENS_SECRET_ARN", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:audit-AbCdEf")
	if !fromExtension() {
		t.Error("not deferred with a secret")
	}
}
