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

const (
	samples = "../../../events/samples/sessions"
	own     = "testdata"
)

func recorded(t *testing.T, dir string) (*stage, []*replay.Session) {
	t.Helper()
	sessions, err := find([]string{dir})
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
	for _, c := range []struct {
		dir  string
		want accuracy.Tally
	}{
		// One patch at the Metadata level has a second one beside it that changed nothing: same name, same second, same
		// field manager. A generated name leaves nothing at that level.
		{samples, accuracy.Tally{117, 1, 0, 1}},
		// A patch and a delete of two people within a second, and the objects of a type that went.
		{own, accuracy.Tally{121, 2, 0, 2}},
	} {
		stage, sessions := recorded(t, c.dir)
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
		if got := accuracy.Total(all); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.dir, got, c.want)
		}
	}
}

func TestDisorderNeverNamesAnybodyWrong(t *testing.T) {
	for _, c := range []struct {
		dir        string
		seeds      int
		unresolved int // in each
	}{
		{samples, 200, 1},
		{own, 10, 2},
	} {
		stage, sessions := recorded(t, c.dir)
		unresolved := 0
		for seed := range c.seeds {
			for n, session := range sessions {
				disordered, err := accuracy.Disorder(session, rand.New(rand.NewSource(int64(seed))), lateness)
				if err != nil {
					t.Fatal(err)
				}
				// Batches come up to 30 s late, and events had waited in them for up to 4 s.
				stage.options.Grace, stage.options.Route = 45*time.Second, fmt.Sprintf("disorder-%d-%d", seed, n)
				outcomes, err := accuracy.Replay(context.Background(), disordered, stage.options)
				if err != nil {
					t.Fatal(err)
				}
				check(t, outcomes)
				unresolved += accuracy.Total(outcomes)[accuracy.Unresolved]
			}
			if t.Failed() {
				t.Fatalf("%s, seed %d", c.dir, seed)
			}
		}
		if want := c.seeds * c.unresolved; unresolved != want {
			t.Errorf("%s: %d changes are unresolved, want %d", c.dir, unresolved, want)
		}
	}
}

// Without its bodies an event tells little of what it is about. What other events tell must not be taken for it.
func TestCutEventsNeverNameAnybodyWrong(t *testing.T) {
	for _, dir := range []string{samples, own} {
		stage, sessions := recorded(t, dir)
		for n, session := range sessions {
			for seed, share := range []float64{1, 0.9, 0.7, 0.5, 0.3, 0.1, 0.7, 0.5, 0.3} {
				cut, err := accuracy.Cut(session, rand.New(rand.NewSource(int64(seed))), share)
				if err != nil {
					t.Fatal(err)
				}
				stage.options.Grace, stage.options.Route = 45*time.Second, fmt.Sprintf("cut-%d-%d", n, seed)
				outcomes, err := accuracy.Replay(context.Background(), cut, stage.options)
				if err != nil {
					t.Fatal(err)
				}
				right := 0
				for i := range outcomes {
					switch o := &outcomes[i]; o.Verdict() {
					case accuracy.Wrong:
						t.Errorf("%s, %v cut, seed %d: %s", session.Name, share, seed, o)
					case accuracy.Right:
						right++
					}
				}
				if right < len(outcomes)*4/5 {
					t.Errorf("%s, %v cut, seed %d: %d of %d are right, want four fifths", session.Name, share, seed, right, len(outcomes))
				}
			}
		}
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
