package main

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/accuracy"
)

const samples = "../../../events/samples/sessions"

func recorded(t *testing.T) (*stage, []*replay.Session) {
	t.Helper()
	sessions, err := find([]string{samples})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := newStage(0)
	if err != nil {
		t.Fatal(err)
	}
	return stage, sessions
}

// check fails for every wrong name, and for every one that is missing though the request that made the change is
// told by its version or its uid.
func check(t *testing.T, outcomes []accuracy.Outcome) {
	t.Helper()
	for i := range outcomes {
		o := &outcomes[i]
		sure := o.Truth.Knowable == "exact" || o.Truth.Knowable == "by-uid"
		if v := o.Verdict(); v == accuracy.Wrong || sure && v != accuracy.Right {
			t.Error(o)
		}
	}
}

func TestRecordedSessions(t *testing.T) {
	stage, sessions := recorded(t)
	var all []accuracy.Outcome
	for n, session := range sessions {
		stage.options.Grace, stage.options.Route = 45*time.Second, fmt.Sprintf("recorded-%d", n)
		outcomes, err := accuracy.Replay(context.Background(), session, stage.options)
		if err != nil {
			t.Fatal(err)
		}
		check(t, outcomes)
		all = append(all, outcomes...)
	}
	// One patch at the Metadata level has a second one beside it that changed nothing: same name, same second, same
	// field manager. A generated name leaves nothing at that level.
	if got, want := accuracy.Total(all), (accuracy.Tally{117, 1, 0, 1}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDisorderNeverNamesAnybodyWrong(t *testing.T) {
	stage, sessions := recorded(t)
	const seeds = 200
	var unresolved int
	for seed := range seeds {
		for n, session := range sessions {
			disordered, err := accuracy.Disorder(session, rand.New(rand.NewSource(int64(seed))), 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			// Batches may arrive 30 s late, and up to 1 s of waiting had been in them.
			stage.options.Grace, stage.options.Route = 45*time.Second, fmt.Sprintf("disorder-%d-%d", seed, n)
			outcomes, err := accuracy.Replay(context.Background(), disordered, stage.options)
			if err != nil {
				t.Fatal(err)
			}
			check(t, outcomes)
			unresolved += accuracy.Total(outcomes)[accuracy.Unresolved]
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if unresolved != seeds {
		t.Errorf("%d changes are unresolved, want one for each of %d seeds", unresolved, seeds)
	}
}

// The measure itself must be able to tell.
func TestVerdicts(t *testing.T) {
	named := func(author string) accuracy.Outcome {
		return accuracy.Outcome{
			Truth: replay.Truth{Actor: "bob", Initiator: "alice", Knowable: "by-uid"},
			Found: attribution.Resolution{Result: attribution.Weak, Fact: attribution.Fact{Author: author}},
		}
	}
	absent := named("")
	absent.Found.Result = attribution.Absent
	unknowable := absent
	unknowable.Truth.Knowable = "no"
	nobodys := named("bob")
	nobodys.Truth.Actor, nobodys.Truth.Initiator = "", ""
	for _, c := range []struct {
		name string
		in   accuracy.Outcome
		want accuracy.Verdict
	}{
		{"a removal's name is the initiator's", named("alice"), accuracy.Right},
		{"not that of who completed it", named("bob"), accuracy.Wrong},
		{"nobody, though an event leads there", absent, accuracy.Unresolved},
		{"nobody, and no event leads there", unknowable, accuracy.RightlyUnresolved},
		{"somebody, where nobody's request did it", nobodys, accuracy.Wrong},
	} {
		if got := c.in.Verdict(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
