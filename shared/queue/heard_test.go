package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestRoutesHeard(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx, store := context.Background(), newStore(t, server)
		if got, err := store.RoutesHeard(ctx, []string{"edge"}); err != nil || len(got) != 0 {
			t.Errorf("before any fact: %v, %v", got, err)
		}
		index := store.AttributionIndex(0)
		for route, event := range map[string]attribution.Event{"silent": {Verb: "get"}, "edge": created()} {
			if _, err := index.RecordEvents(ctx, route, []attribution.Event{event}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := store.RoutesHeard(ctx, []string{"silent", "edge", "never"})
		if err != nil || len(got) != 1 || time.Since(got["edge"]) > 2*time.Minute {
			t.Errorf("got %v, %v, want edge, just now", got, err)
		}
	})
}

func TestARouteIsNotedOnceAMinuteInTheSameRoundTrip(t *testing.T) {
	server := valkeytest.Mini(t)
	store, counter := newStore(t, server), &valkeytest.Counter{}
	store.AddHook(counter)
	index := store.AttributionIndex(0)
	for i, want := range []int{1, 0} {
		counter.Reset()
		if _, err := index.RecordEvents(context.Background(), "edge", []attribution.Event{created(), created()}); err != nil {
			t.Fatal(err)
		}
		sets := 0
		for _, command := range counter.Commands() {
			if command == "set" {
				sets++
			}
		}
		if sets != want {
			t.Errorf("post %d noted the route %d times, want %d", i+1, sets, want)
		}
		if trips := counter.Trips(); i > 0 && trips != 1 {
			t.Errorf("post %d took %d round trips, want 1", i+1, trips)
		}
	}
}

// created is an event that proves who created an object.
func created() attribution.Event {
	event := request{user: "alice", verb: "create", staged: 1, answer: object("u1", "7")}.event()
	return kubeaudit.Event(&event, attribution.DefaultExtraKeys(), "")
}
