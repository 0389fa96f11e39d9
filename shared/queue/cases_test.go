package queue_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// joinCase is a hand-made post and the watch events that it explains.
type joinCase struct {
	Route  string `json:"route"`
	Config struct {
		RouteAnnotationKey   string   `json:"routeAnnotationKey"`
		DisplayNameExtraKeys []string `json:"displayNameExtraKeys"`
		EmailExtraKeys       []string `json:"emailExtraKeys"`
	} `json:"config"`
	Post  auditv1.EventList `json:"post"`
	Watch []struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	} `json:"watch"`
	Lookups []struct{ Route, UID, RV string } `json:"lookups"`
}

func loadCase(t *testing.T, name string) joinCase {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../events/samples/cases/join", name, "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c joinCase
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *joinCase) events() []attribution.Event {
	keys := attribution.DefaultExtraKeys()
	if c.Config.DisplayNameExtraKeys != nil {
		keys = attribution.ExtraKeys{DisplayName: c.Config.DisplayNameExtraKeys, Email: c.Config.EmailExtraKeys}
	}
	var out []attribution.Event
	for i := range c.Post.Items {
		out = append(out, kubeaudit.Event(&c.Post.Items[i], keys, c.Config.RouteAnnotationKey))
	}
	return out
}

// named tells an answer in words: "alice exact_user", "alice weak deleted-uid" or "absent contested".
func named(r queue.AuthorResolution) string {
	switch {
	case r.Result == attribution.Absent:
		return strings.TrimSpace("absent " + string(r.Why))
	case r.Fact.Tier != "":
		return r.Fact.Author + " " + string(r.Result) + " " + string(r.Fact.Tier)
	}
	return r.Fact.Author + " " + string(r.Result)
}

func TestJoinCases(t *testing.T) {
	const stored, none, missing = attribution.ReasonStored, attribution.ReasonNoFact, attribution.ReasonMissingRoute
	for _, c := range []struct {
		name    string
		reasons []attribution.Reason
		want    []string // for each watch event or lookup
		names   []string // display names, where there are any
	}{
		{
			name:    "01-plain-delete-uid-in-status",
			reasons: []attribution.Reason{stored, stored},
			want:    []string{"ben@example.test weak deleted-uid"},
		},
		{
			// Both were received at the very same microsecond, so that is not when they were.
			name:    "02-noop-apply-does-not-steal",
			reasons: []attribution.Reason{stored, stored},
			want:    []string{"ana@example.test exact_user"},
		},
		{
			name:    "03-finalizer-delete-actor",
			reasons: []attribution.Reason{stored, stored},
			want:    []string{"ana@example.test exact_user", "ana@example.test weak deleted-uid"},
		},
		{
			name:    "04-generate-name-create",
			reasons: []attribution.Reason{stored, none},
			want:    []string{"ana@example.test exact_user"},
		},
		{
			name:    "05-json-patch-array-body",
			reasons: []attribution.Reason{stored, none},
			want:    []string{"ana@example.test exact_user"},
		},
		{
			name:    "07-impersonation-and-extras",
			reasons: []attribution.Reason{stored, stored, stored},
			want:    []string{"u-h9vkf exact_user", "dave exact_user", "erin exact_user"},
			names:   []string{"carol", "Dave <dave@evil.test>\nCo-authored-by: x", ""},
		},
		{
			name:    "09-collection-delete-without-body",
			reasons: []attribution.Reason{none, stored},
			want:    []string{"ana@example.test weak collection-scope", "ben@example.test weak deleted-uid", "absent no-fact", "absent no-fact"},
		},
		{
			name:    "12-shared-stream-routing",
			reasons: []attribution.Reason{stored, stored, missing},
			want:    []string{"ana@example.test exact_user", "ben@example.test exact_user", "absent"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
				ctx, in := context.Background(), loadCase(t, c.name)
				index := newStore(t, server).AttributionIndex(0)
				reasons, err := index.RecordEvents(ctx, in.Route, in.events())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.reasons, reasons); diff != "" {
					t.Errorf("reasons (-want +got)\n%s", diff)
				}
				var queries []queue.AuthorQuery
				observer := attribution.NewObserver("configmaps", attribution.NewFamily())
				for _, e := range in.Watch {
					seen := observer.See(e.Type, e.Object)
					queries = append(queries, queue.AuthorQuery{
						AuditRoute: in.Route, GVR: configmaps, UID: types.UID(seen.UID), RV: seen.ResourceVersion, ExactCapable: e.Type != attribution.Deleted, Sighting: seen,
					})
				}
				for _, l := range in.Lookups {
					queries = append(queries, queue.AuthorQuery{AuditRoute: l.Route, GVR: configmaps, UID: types.UID(l.UID), RV: l.RV, ExactCapable: true})
				}
				answers, err := index.LookupAuthors(ctx, queries)
				if err != nil {
					t.Fatal(err)
				}
				var got, names []string
				for _, a := range answers {
					got, names = append(got, named(a)), append(names, a.Fact.DisplayName)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(c.names, names); c.names != nil && diff != "" {
					t.Errorf("display names (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestNoOpDoesNotSteal(t *testing.T) {
	valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
		ctx, in := context.Background(), loadCase(t, "02-noop-apply-does-not-steal")
		index := newStore(t, server).AttributionIndex(0)
		events := in.events()
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			route := in.Route + string(rune('0'+order[0]))
			for _, i := range order {
				if _, err := index.RecordEvents(ctx, route, events[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
			if got := named(index.LookupAuthorResolution(ctx, route, configmaps, "u-100", "150", true)); got != "ana@example.test exact_user" {
				t.Errorf("in order %v: got %s, want ana's", order, got)
			}
		}
	})
}
