package queue_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authnv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func TestFactsOfTheSeedAreUnderstood(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx := context.Background()
		index, client := newStore(t, server).AttributionIndex(0), rawClient(t, server)
		root := server.Prefix + ":author:v1:audit:route:r:configmaps:object:"
		seed := func(author, verb, rv, stage string) string {
			value, err := json.Marshal(map[string]string{"author": author, "verb": verb, "resourceVersion": rv, "stageTimestamp": stage})
			if err != nil {
				t.Fatal(err)
			}
			return string(value)
		}
		for _, c := range []struct {
			name, uid   string
			there       string
			in          request
			exact, last string
		}{
			{"it is later", "u1", seed("bob", "patch", "7", "2026-03-01T12:00:00.02Z"), request{user: "alice", verb: "update", staged: 10, answer: object("u1", "7")}, "alice exact_user", "bob weak"},
			{"it is earlier", "u2", seed("bob", "patch", "7", "2026-03-01T12:00:00.002Z"), request{user: "alice", verb: "update", staged: 10, answer: object("u2", "7")}, "bob exact_user", "alice weak"},
			{"it is a delete of a held object", "u3", seed("bob", "delete", "7", "2026-03-01T12:00:00.02Z"), request{user: "alice", verb: "update", staged: 10, answer: ending("u3", "7")}, "bob exact_user", "bob weak"},
			{"it has no time", "u4", seed("bob", "patch", "7", ""), request{user: "alice", verb: "update", staged: 10, answer: object("u4", "7")}, "alice exact_user", "alice weak"},
			{"it is no JSON", "u5", "{", request{user: "alice", verb: "update", staged: 10, answer: object("u5", "7")}, "alice exact_user", "alice weak"},
			{"it has no author", "u6", `{"author":"","stageTimestamp":"2026-03-01T11:00:00Z"}`, request{user: "alice", verb: "update", staged: 10, answer: object("u6", "7")}, "alice exact_user", "alice weak"},
		} {
			for _, leaf := range []string{":7", ":last"} {
				if err := client.Set(ctx, root+c.uid+leaf, c.there, time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if err := index.RecordFact(ctx, "r", c.in.event()); err != nil {
				t.Fatal(err)
			}
			if got := answer(index.LookupAuthorResolution(ctx, "r", configmaps, types.UID(c.uid), "7", true)); got != c.exact {
				t.Errorf("%s: the version is %q's, want %q", c.name, got, c.exact)
			}
			if got := answer(index.LookupAuthorResolution(ctx, "r", configmaps, types.UID(c.uid), "8", false)); got != c.last {
				t.Errorf("%s: the removal is %q's, want %q", c.name, got, c.last)
			}
		}
		if err := client.Set(ctx, root+"u7:7", seed("system:serviceaccount:shop:bot", "patch", "7", ""), time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if got := answer(index.LookupAuthorResolution(ctx, "r", configmaps, "u7", "7", true)); got != "system:serviceaccount:shop:bot exact_serviceaccount" {
			t.Errorf("a service account is known by its name too: got %q", got)
		}
		for key, value := range map[string]string{"bad:1": "{", "bad:last": `{"verb":"patch"}`} {
			if err := client.Set(ctx, root+key, value, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if fact, ok := index.LookupAuthor(ctx, "r", configmaps, "bad", "1", false); ok || !cmp.Equal(fact, queue.AuthorFact{}) {
			t.Errorf("unreadable values are a miss: got %+v", fact)
		}
	})
}

func TestAnswersWithoutASightingHoldWhatTheSeedsHold(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx := context.Background()
		index := newStore(t, server).AttributionIndex(0)
		event := request{user: "portal", verb: "update", staged: 120, answer: object("u1", "7")}.event()
		event.ImpersonatedUser = &authnv1.UserInfo{Username: "carol"}
		if err := index.RecordFact(ctx, "r", event); err != nil {
			t.Fatal(err)
		}
		fact := queue.AuthorFact{
			GroupResource: "configmaps", Namespace: "shop", Name: "prices", UID: "u1", Author: "carol", Verb: "update",
			AuditID: "audit-portal", ResourceVersion: "7", StageTimestamp: "2026-03-01T12:00:00.12Z",
		}
		queries := []queue.AuthorQuery{
			{AuditRoute: "r", GVR: configmaps, UID: "u1", RV: "7", ExactCapable: true},
			{AuditRoute: "r", GVR: configmaps, UID: "u1", RV: "8"},
			{AuditRoute: "r", GVR: configmaps, UID: "u2", RV: "8"},
		}
		want := []queue.AuthorResolution{
			{Fact: fact, Result: queue.AttributionExactUser}, {Fact: fact, Result: queue.AttributionWeak}, {Result: queue.AttributionAbsent},
		}
		got, err := index.LookupAuthors(ctx, queries)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
		for i, q := range queries {
			if diff := cmp.Diff(want[i], index.LookupAuthorResolution(ctx, q.AuditRoute, q.GVR, q.UID, q.RV, q.ExactCapable)); diff != "" {
				t.Errorf("query %d alone (-want +got)\n%s", i, diff)
			}
		}
	})
}
