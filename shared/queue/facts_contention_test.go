package queue_test

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// traffic makes requests to a few objects that crowd each other: everybody claims the same versions.
func traffic(rng *rand.Rand, objects int) []request {
	var out []request
	for o := range objects {
		uid, deleted := "u"+strconv.Itoa(o), o%3
		stamps, receipts := rng.Perm(400), map[int]bool{} // nobody's request is received with another's
		for i := range 24 {
			r := request{
				user: string(rune('a' + rng.Intn(4))), verb: "patch",
				staged: 1 + stamps[i], answer: object(uid, strconv.Itoa(i%3)),
			}
			switch {
			case deleted > 0 && i%3 == 2:
				r.answer = ending(uid, "2")
				if rng.Intn(2) == 0 {
					r.verb = "delete"
				}
			case deleted == 2 && i%8 == 0:
				r.verb, r.answer, r.request = "delete", status(uid), `{"kind":"DeleteOptions"}`
			}
			r.received = r.staged - rng.Intn(20)
			for receipts[r.received] {
				r.received--
			}
			receipts[r.received] = true
			if rng.Intn(5) == 0 {
				r.received = 0
			}
			out = append(out, r)
		}
	}
	return out
}

// started is when the request was received as far as the rules know.
func (r request) started() int {
	if r.received == 0 {
		return r.staged
	}
	return r.received
}

func (r request) claims(uid, rv string) bool {
	return r.answer == object(uid, rv) || r.answer == ending(uid, rv)
}

// expected are the rules, over all requests at once: who has the version, and whose a removal is.
func expected(all []request, uid, rv string) (exact, last string) {
	var version, writes, starts, ends []request
	for _, r := range all {
		final := r.answer == status(uid)
		if !final && !strings.Contains(r.answer, `"`+uid+`"`) {
			continue
		}
		switch {
		case final:
			ends = append(ends, r)
		case r.verb == "delete":
			starts = append(starts, r)
		default:
			writes = append(writes, r)
		}
		if r.claims(uid, rv) {
			version = append(version, r)
		}
	}
	var deletes []request
	for _, r := range version {
		if r.verb == "delete" {
			deletes = append(deletes, r)
		}
	}
	if len(deletes) > 0 {
		version = deletes
	}
	newest := func(of []request) string {
		best := of[0]
		for _, r := range of {
			if r.staged > best.staged {
				best = r
			}
		}
		return best.user
	}
	first := func(of []request) string {
		best := of[0]
		for _, r := range of {
			if r.staged < best.staged {
				best = r
			}
		}
		for _, r := range of {
			if r.user != best.user && r.started() < best.staged {
				return ""
			}
		}
		return best.user
	}
	if len(version) > 0 {
		exact = first(version)
	}
	switch {
	case len(ends) > 0:
		last = newest(ends)
	case len(starts) > 0:
		last = first(starts)
	default:
		last = newest(writes)
	}
	return exact, last
}

func TestFactsUnderContention(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		const writers, objects = 4, 40
		seed := time.Now().UnixNano()
		all := traffic(rand.New(rand.NewSource(seed)), objects)
		var wg sync.WaitGroup
		failed := make(chan error, writers)
		for w := range writers {
			index := newStore(t, server).AttributionIndex(0)
			wg.Add(1)
			go func() {
				defer wg.Done()
				rng := rand.New(rand.NewSource(seed + int64(w)))
				mine := append([]request{}, all...) // everyone sends everything, in an order of their own
				rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
				for len(mine) > 0 {
					n := min(len(mine), 1+rng.Intn(60))
					events := make([]auditv1.Event, n)
					for i := range events {
						events[i] = mine[i].event()
					}
					mine = mine[n:]
					if err := index.RecordFacts(context.Background(), "r", events); err != nil {
						failed <- err
						return
					}
				}
			}()
		}
		wg.Wait()
		close(failed)
		for err := range failed {
			t.Fatal(err)
		}
		index := newStore(t, server).AttributionIndex(0)
		var queries []queue.AuthorQuery
		var want []string
		for o := range objects {
			uid := "u" + strconv.Itoa(o)
			for v := range 3 {
				exact, last := expected(all, uid, strconv.Itoa(v))
				queries = append(queries, queue.AuthorQuery{AuditRoute: "r", GVR: configmaps, UID: types.UID(uid), RV: strconv.Itoa(v), ExactCapable: true})
				want = append(want, exact)
				if v == 0 {
					queries = append(queries, queue.AuthorQuery{AuditRoute: "r", GVR: configmaps, UID: types.UID(uid), RV: "none"})
					want = append(want, last)
				}
			}
		}
		got, err := index.LookupAuthors(context.Background(), queries)
		if err != nil {
			t.Fatal(err)
		}
		var wrong, absent int
		for i := range got {
			if got[i].Fact.Author != want[i] {
				wrong++
				t.Logf("%s %s exact=%v: got %q, want %q", queries[i].UID, queries[i].RV, queries[i].ExactCapable, got[i].Fact.Author, want[i])
			}
			if want[i] == "" {
				absent++
			}
		}
		if wrong > 0 || absent == 0 || absent == len(want) {
			t.Errorf("seed %d: %d of %d answers differ from the rules (%d of them nobody)", seed, wrong, len(want), absent)
		}
	})
}

func TestRoundTripsOfFacts(t *testing.T) {
	valkeytest.EachAndCluster(t, func(t *testing.T, server valkeytest.Server) {
		ctx := context.Background()
		store := newStore(t, server)
		if err := store.Ping(ctx); err != nil {
			t.Fatal(err)
		}
		counter := &valkeytest.Counter{}
		store.AddHook(counter)
		index := store.AttributionIndex(0)
		var events []auditv1.Event
		var queries []queue.AuthorQuery
		for i := range 400 {
			uid := fmt.Sprintf("u%d", i)
			events = append(events, request{user: "alice", verb: "patch", staged: i, answer: object(uid, "7")}.event())
			queries = append(queries, queue.AuthorQuery{AuditRoute: "r", GVR: configmaps, UID: types.UID(uid), RV: "7", ExactCapable: i%2 == 0})
		}
		record := func(name string, limit int) {
			t.Helper()
			counter.Reset()
			if err := index.RecordFacts(ctx, "r", events); err != nil {
				t.Fatal(err)
			}
			if counter.Trips() != limit {
				t.Errorf("%s took %d round trips, want %d", name, counter.Trips(), limit)
			}
		}
		// A Cluster's client sends one pipeline to each node and shows its hook that as one.
		record("the first POST", 1)
		record("the next POST", 1)
		counter.Reset()
		got, err := index.LookupAuthors(ctx, queries)
		if err != nil {
			t.Fatal(err)
		}
		if counter.Trips() != 1 {
			t.Errorf("a lookup of %d took %d round trips, want 1", len(queries), counter.Trips())
		}
		for i := range got {
			if got[i].Fact.Author != "alice" {
				t.Errorf("lookup %d: got %+v", i, got[i])
			}
		}
		for _, command := range counter.Commands() {
			if command != "get" && command != "mget" {
				t.Errorf("a lookup sent %s", command)
			}
		}
		counter.Reset()
		if err := index.RecordFacts(ctx, "r", nil); err != nil || counter.Trips() != 0 {
			t.Errorf("an empty POST: %v and %d round trips, want none", err, counter.Trips())
		}
		if got, err := index.LookupAuthors(ctx, nil); err != nil || len(got) != 0 || counter.Trips() != 0 {
			t.Errorf("an empty lookup: %v, %v and %d round trips, want none", got, err, counter.Trips())
		}
	})
}

func TestScriptsThatTheServerLostAreSentAgain(t *testing.T) {
	server, _ := valkeytest.Own(t)
	ctx := context.Background()
	index, raw := newStore(t, server).AttributionIndex(0), rawClient(t, server)
	for i, uid := range []string{"u0", "u1"} {
		if i == 1 {
			if err := raw.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := index.RecordFact(ctx, "r", request{user: "alice", verb: "patch", answer: object(uid, "7")}.event()); err != nil {
			t.Fatal(err)
		}
		if fact, ok := index.LookupAuthor(ctx, "r", configmaps, types.UID(uid), "7", true); !ok || fact.Author != "alice" {
			t.Errorf("%s: got %+v", uid, fact)
		}
	}
}

func TestAFailingStoreIsNotAbsence(t *testing.T) {
	server := valkeytest.Real(t)
	outage := valkeytest.NewOutage(t, server.Addr)
	behind := server
	behind.Addr = outage.Addr
	store := newStore(t, behind)
	index, commands := store.AttributionIndex(0), store.CommandAuthorStore()
	event := request{user: "alice", verb: "patch", answer: object("u", "7")}.event()
	query := []queue.AuthorQuery{{AuditRoute: "r", GVR: configmaps, UID: "u", RV: "7", ExactCapable: true}}
	for _, weather := range []valkeytest.Weather{valkeytest.Down, valkeytest.Hanging, valkeytest.LoseAnswers} {
		outage.Set(weather)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		if err := index.RecordFact(ctx, "r", event); err == nil {
			t.Errorf("weather %v: recording a fact gave no error", weather)
		}
		if err := commands.RecordCommandAuthor(ctx, "cr", queue.CommandAuthor{Author: "alice"}); err == nil {
			t.Errorf("weather %v: recording a command's author gave no error", weather)
		}
		if got, err := index.LookupAuthors(ctx, query); err == nil {
			t.Errorf("weather %v: the lookup answered %+v", weather, got)
		}
		if got := index.LookupAuthorResolution(ctx, "r", configmaps, "u", "7", true); got.Result != queue.AttributionAbsent {
			t.Errorf("weather %v: the plain lookup answered %+v", weather, got)
		}
		cancel()
	}
	outage.Set(valkeytest.Fair)
	if err := index.RecordFact(context.Background(), "r", event); err != nil {
		t.Fatal(err)
	}
	if got, err := index.LookupAuthors(context.Background(), query); err != nil || got[0].Fact.Author != "alice" {
		t.Errorf("after the outage: got %+v, %v", got, err)
	}
}

func TestCommandAuthors(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx := context.Background()
		commands, raw := newStore(t, server).CommandAuthorStore(), rawClient(t, server)
		alice := queue.CommandAuthor{Author: "alice", DisplayName: "Alice", Email: "alice@example.com", RequestedAt: "2026-03-01T12:00:00Z"}
		for _, author := range []queue.CommandAuthor{alice, {Author: "bob"}, alice} {
			if err := commands.RecordCommandAuthor(ctx, "cr:1", author); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := commands.LookupCommandAuthor(ctx, "cr:1"); !ok || got != alice {
			t.Errorf("got %+v, want the first author", got)
		}
		key := server.Prefix + ":author:v1:command:cr%3A1"
		if value := raw.Get(ctx, key).Val(); value != `{"author":"alice","displayName":"Alice","email":"alice@example.com","requestedAt":"2026-03-01T12:00:00Z"}` {
			t.Errorf("stored %s", value)
		}
		if ttl := raw.TTL(ctx, key).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
			t.Errorf("it lives for %v, want 1h", ttl)
		}
		for uid, value := range map[string]string{"bad": "{", "nobody": `{"displayName":"Alice"}`} {
			if err := raw.Set(ctx, server.Prefix+":author:v1:command:"+uid, value, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, uid := range []types.UID{"unknown", "bad", "nobody"} {
			if got, ok := commands.LookupCommandAuthor(ctx, uid); ok || got != (queue.CommandAuthor{}) {
				t.Errorf("%s: got %+v, want none", uid, got)
			}
		}
	})
}
