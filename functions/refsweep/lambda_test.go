package refsweep

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/host/awslambda"
)

// The invocation's result is the notification where a Lambda destination takes it.
func TestAScheduleOnLambda(t *testing.T) {
	w := newWorld(t)
	w.cfg.Sink = ""
	w.cfg.ReadToken = token("s3cr3t") // which a schedule does not have, and does not need
	w.start()
	r := w.git.Repository("a.git")
	commit(r, "1")
	w.targets(document("a", r.URL, onMain))
	adapter := awslambda.New(awslambda.Config{EventPath: "/", LogsPath: "/x"}, w.h, slog.New(slog.NewTextHandler(w.log, nil)))
	invoke := func() Summary {
		t.Helper()
		result, err := adapter.Invoke(t.Context(), []byte(`{"version":"0","detail-type":"Scheduled Event","source":"aws.scheduler","detail":"{}"}`))
		var s Summary
		if err != nil || json.Unmarshal(result, &s) != nil {
			t.Fatalf("%s, %v", result, err)
		}
		return s
	}
	if s := invoke(); names(s.Appeared) != "a" || !s.Notified {
		t.Errorf("the first result: %+v", s)
	}
	second := commit(r, "2")
	if s := invoke(); names(s.Moved) != "a" || s.Moved[0].SHA != second {
		t.Errorf("the result after it moved: %+v", s)
	}
	if s := invoke(); len(s.Moved) != 0 {
		t.Errorf("the result after that: %+v", s)
	}
	// A failure that the next schedule makes good is an error of the invocation, so that it shows.
	_ = w.store.Close()
	if result, err := adapter.Invoke(t.Context(), []byte(`{}`)); err == nil {
		t.Errorf("a store that is down: %s", result)
	}
}
