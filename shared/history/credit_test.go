package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

func TestCredit(t *testing.T) {
	fact := attribution.Fact{
		Author: "u-h9vkf", DisplayName: "carol", Email: "carol@example.com", ImpersonatedBy: "system:serviceaccount:proxy:gateway",
		AuditID: "a-61", Tier: "replaced-version", StageTimestamp: "2026-03-01T10:00:00.01Z",
	}
	stamp := time.Date(2026, 3, 1, 10, 0, 0, 10_000_000, time.UTC)
	carol := &Actor{Username: "u-h9vkf", DisplayName: "carol", Email: "carol@example.com", ImpersonatedBy: "system:serviceaccount:proxy:gateway"}
	cases := []struct {
		name string
		in   attribution.Resolution
		at   time.Time
		want Change
	}{
		{"evidence and time come from the fact", attribution.Resolution{Fact: fact, Result: attribution.Weak}, time.Time{},
			Change{Actor: carol, Evidence: Evidence{Class: "weak", Tier: "replaced-version", AuditID: "a-61"}, Time: stamp}},
		{"a known time stays", attribution.Resolution{Fact: fact, Result: attribution.ExactUser}, now,
			Change{Actor: carol, Evidence: Evidence{Class: "exact_user", Tier: "replaced-version", AuditID: "a-61"}, Time: now}},
		{"absent is nobody, whatever else is there", attribution.Resolution{Fact: fact, Result: attribution.Absent}, time.Time{},
			Change{Evidence: Evidence{Class: "absent"}}},
		{"no author is nobody", attribution.Resolution{Result: attribution.ExactUser}, time.Time{}, Change{Evidence: Evidence{Class: "absent"}}},
	}
	for _, c := range cases {
		got := Change{Actor: &Actor{Username: "earlier"}, Time: c.at}
		got.Credit(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}
