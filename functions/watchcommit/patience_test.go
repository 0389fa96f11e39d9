package watchcommit

import (
	"context"
	"testing"
	"time"
)

func TestADrainRestsWhileAllThatWaitsIsAskedForLater(t *testing.T) {
	now := time.Now()
	of := &target{grace: 45 * time.Second}
	s := &shard{target: of}
	s.pending = []*change{
		{shard: s, seenAt: now, askAfter: now.Add(45 * time.Second)}, // its author can only change
		{shard: s, seenAt: now, nothing: true},
	}
	of.shards = []*shard{s}
	d := &drain{Function: &Function{now: func() time.Time { return now }, cfg: Config{TargetsFile: "targets.yaml"}}, branch: &branch{targets: []*target{of}}}
	// What comes meanwhile, and is nothing, lets authors be looked up at once.
	if err := d.lookUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest := d.nextWork().Sub(now); rest < 45*time.Second {
		t.Errorf("the drain rests for %v, want until the grace is over", rest)
	}
}

func TestADrainThatCanTakeNoMoreLeavesWhenItsProcessEnds(t *testing.T) {
	of := &target{blocked: true}
	s := &shard{target: of}
	for range maxPending {
		s.pending = append(s.pending, &change{shard: s})
	}
	of.shards = []*shard{s}
	d := &drain{Function: &Function{now: time.Now, cfg: Config{TargetsFile: "targets.yaml"}}, branch: &branch{targets: []*target{of}}}
	ends := make(chan struct{})
	close(ends)
	c := &collector{drain: d, watching: t.Context(), draining: ends, running: 1}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if more, err := c.collect(ctx); more || err != nil {
		t.Errorf("it goes on: %t %v", more, err)
	}
}
