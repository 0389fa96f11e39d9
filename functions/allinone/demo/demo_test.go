package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
)

// The whole spine, as `make demo` runs it and faster: the all-in-one as a process between a recorded cluster and a
// repository. run fails when the history is not what happened.
func TestTheDemonstration(t *testing.T) {
	program := build(t)
	for _, c := range []struct {
		name string
		all  bool
	}{{"story", false}, {"story", true}, {"small-metadata", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			o := options{program: program, session: "../../../events/samples/sessions/" + c.name, within: 12 * time.Second, all: c.all}
			if err := run(ctx, o); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProgramThatEndsIsReportedWithItsLastWords(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // what is kept for looking into
	program, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), options{program: program, session: "../../../events/samples/sessions/story", within: time.Second})
	if err == nil || !strings.Contains(err.Error(), "the all-in-one ended") {
		t.Errorf("got %v", err)
	}
}

func TestAnUnsoundHistoryFails(t *testing.T) {
	if err := conclude(&verdict.Verdict{Changes: 3, Authors: []string{"alice"}}); err != nil {
		t.Errorf("a sound history: %v", err)
	}
	for name, v := range map[string]*verdict.Verdict{
		"a wrong name":     {Wrong: []string{"x"}},
		"a missing change": {Missing: []string{"x"}},
		"a wrong file":     {Files: []string{"x"}},
	} {
		if err := conclude(v); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestLateness(t *testing.T) {
	post := func(at time.Duration, stamps ...string) replay.AuditPost {
		var items []string
		for _, s := range stamps {
			id, stamp, _ := strings.Cut(s, " ")
			items = append(items, `{"auditID":"`+id+`","stageTimestamp":"`+stamp+`"}`)
		}
		return replay.AuditPost{At: at, Body: []byte(`{"items":[` + strings.Join(items, ",") + `]}`)}
	}
	session := &replay.Session{Audit: []replay.AuditPost{
		post(2*time.Second, "a 2026-03-01T10:00:01Z"), // one second on its way, from the recording's zero at 10:00:00
		post(9*time.Second, "b 2026-03-01T10:00:02Z", "c 2026-03-01T10:00:08.5Z"),
		post(30*time.Second, "a 2026-03-01T10:00:01Z"), // came before
		{At: time.Second, Body: []byte("damaged")},
		post(time.Hour, "d 0001-01-01T00:00:00Z"),
	}}
	if got := lateness(session); got != 6500*time.Millisecond {
		t.Errorf("got %v, want 6.5s: b took 7 s and c half a second", got)
	}
	if got := lateness(&replay.Session{}); got != 0 {
		t.Errorf("without audit events: got %v", got)
	}
}
