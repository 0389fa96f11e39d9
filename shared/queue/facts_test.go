package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// noon is when the requests of these tests are answered, give or take milliseconds.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// request is one audit event of these tests, in milliseconds around noon.
type request struct {
	user             string
	verb             string
	resource         string // empty: configmaps
	group            string
	subresource      string
	refUID, refRV    string
	received, staged int // received 0: the event does not tell
	request, answer  string
	statusUID        string
	uri              string
}

func (r request) event() auditv1.Event {
	at := func(ms int) metav1.MicroTime {
		return metav1.NewMicroTime(noon.Add(time.Duration(ms) * time.Millisecond))
	}
	e := auditv1.Event{
		Level: auditv1.LevelRequestResponse, AuditID: types.UID("audit-" + r.user), Stage: auditv1.StageResponseComplete, Verb: r.verb, RequestURI: r.uri,
		User:           authnv1.UserInfo{Username: r.user},
		ObjectRef:      &auditv1.ObjectReference{Resource: "configmaps", Namespace: "shop", Name: "prices", UID: types.UID(r.refUID), ResourceVersion: r.refRV, Subresource: r.subresource},
		ResponseStatus: &metav1.Status{Code: 200},
		StageTimestamp: at(r.staged),
	}
	if r.resource != "" {
		e.ObjectRef.Resource, e.ObjectRef.APIGroup = r.resource, r.group
	}
	if r.received != 0 {
		e.RequestReceivedTimestamp = at(r.received)
	}
	if r.statusUID != "" {
		e.ResponseStatus.Details = &metav1.StatusDetails{UID: types.UID(r.statusUID)}
	}
	if r.request != "" {
		e.RequestObject = &runtime.Unknown{Raw: []byte(r.request)}
	}
	if r.answer != "" {
		e.ResponseObject = &runtime.Unknown{Raw: []byte(r.answer)}
	}
	return e
}

// object is the answer to a write: the object with its uid and version.
func object(uid, rv string) string {
	return `{"kind":"ConfigMap","metadata":{"name":"prices","namespace":"shop","uid":"` + uid + `","resourceVersion":"` + rv + `"}}`
}

// ending is the answer to a write of an object whose deletion has begun.
func ending(uid, rv string) string {
	return strings.Replace(object(uid, rv), `"name"`, `"deletionTimestamp":"2026-03-01T12:00:00Z","name"`, 1)
}

func status(uid string) string {
	return `{"kind":"Status","metadata":{},"status":"Success","details":{"name":"prices","uid":"` + uid + `"}}`
}

func TestFactsAreStoredAsTheSeedStoresThem(t *testing.T) {
	const route = "eu:1%"
	for _, c := range []struct {
		name string
		in   request
		want map[string]string // key below the route to value
	}{
		{
			"uid and version: exact and last",
			request{user: "alice", verb: "update", staged: 120, answer: object("u:1", "7")},
			map[string]string{
				":configmaps:object:u%3A1:7":    `{"groupResource":"configmaps","namespace":"shop","name":"prices","uid":"u:1","author":"alice","verb":"update","auditID":"audit-alice","resourceVersion":"7","stageTimestamp":"2026-03-01T12:00:00.12Z"}`,
				":configmaps:object:u%3A1:last": `{"groupResource":"configmaps","namespace":"shop","name":"prices","uid":"u:1","author":"alice","verb":"update","auditID":"audit-alice","resourceVersion":"7","stageTimestamp":"2026-03-01T12:00:00.12Z"}`,
			},
		},
		{
			"uid only: last",
			request{user: "alice", verb: "patch", refUID: "u1"},
			map[string]string{":configmaps:object:u1:last": `{"groupResource":"configmaps","namespace":"shop","name":"prices","uid":"u1","author":"alice","verb":"patch","auditID":"audit-alice","stageTimestamp":"2026-03-01T12:00:00Z"}`},
		},
		{
			"version only: rv",
			request{user: "system:serviceaccount:shop:bot", verb: "patch", resource: "deployments", group: "apps", answer: `{"metadata":{"resourceVersion":"8"}}`},
			map[string]string{":apps/deployments:rv:8": `{"groupResource":"apps/deployments","namespace":"shop","name":"prices","author":"system:serviceaccount:shop:bot","verb":"patch","auditID":"audit-system:serviceaccount:shop:bot","resourceVersion":"8","stageTimestamp":"2026-03-01T12:00:00Z","isServiceAccount":true}`},
		},
		{
			"scale goes under its parent",
			request{user: "bob", verb: "patch", resource: "deployments", group: "apps", subresource: "scale", answer: `{"kind":"Scale","metadata":{"name":"prices","namespace":"shop","uid":"u2","resourceVersion":"9"}}`},
			map[string]string{
				":apps/deployments:object:u2:9":    `{"groupResource":"apps/deployments","namespace":"shop","name":"prices","uid":"u2","author":"bob","verb":"patch","subresource":"scale","auditID":"audit-bob","resourceVersion":"9","stageTimestamp":"2026-03-01T12:00:00Z"}`,
				":apps/deployments:object:u2:last": `{"groupResource":"apps/deployments","namespace":"shop","name":"prices","uid":"u2","author":"bob","verb":"patch","subresource":"scale","auditID":"audit-bob","resourceVersion":"9","stageTimestamp":"2026-03-01T12:00:00Z"}`,
			},
		},
		{
			"also where the answer shows the version only",
			request{user: "bob", verb: "patch", resource: "deployments", group: "apps", subresource: "scale", answer: `{"kind":"Scale","metadata":{"resourceVersion":"9"}}`},
			map[string]string{":apps/deployments:rv:9": `{"groupResource":"apps/deployments","namespace":"shop","name":"prices","author":"bob","verb":"patch","subresource":"scale","auditID":"audit-bob","resourceVersion":"9","stageTimestamp":"2026-03-01T12:00:00Z"}`},
		},
		{
			"a plain delete's uid is in the Status",
			request{user: "bob", verb: "delete", received: -5, request: `{"kind":"DeleteOptions"}`, answer: status("u3")},
			map[string]string{":configmaps:object:u3:last": `{"groupResource":"configmaps","namespace":"shop","name":"prices","uid":"u3","author":"bob","verb":"delete","auditID":"audit-bob","stageTimestamp":"2026-03-01T12:00:00Z","received":"2026-03-01T11:59:59.995Z","deletion":"final"}`},
		},
		{
			"or in the status of the response, where bodies are not recorded",
			request{user: "bob", verb: "delete", statusUID: "u3"},
			map[string]string{":configmaps:object:u3:last": `{"groupResource":"configmaps","namespace":"shop","name":"prices","uid":"u3","author":"bob","verb":"delete","auditID":"audit-bob","stageTimestamp":"2026-03-01T12:00:00Z","deletion":"final","unverified":true}`},
		},
		{
			"a collection delete: last of each item with a name and a uid",
			request{user: "bob", verb: "deletecollection", answer: `{"kind":"ConfigMapList","metadata":{"resourceVersion":"99"},"items":[{"metadata":{"namespace":"shop","name":"a","uid":"ua","resourceVersion":"1"}},{"metadata":{"name":"b"}},{"metadata":{"uid":"c"}}]}`},
			map[string]string{":configmaps:object:ua:last": `{"groupResource":"configmaps","namespace":"shop","name":"a","uid":"ua","author":"bob","verb":"deletecollection","auditID":"audit-bob","stageTimestamp":"2026-03-01T12:00:00Z","deletion":"started"}`},
		},
		{
			"a verb is known in any case",
			request{user: "bob", verb: "DeleteCollection", answer: `{"items":[{"metadata":{"namespace":"shop","name":"a","uid":"ua"}}]}`},
			map[string]string{":configmaps:object:ua:last": `{"groupResource":"configmaps","namespace":"shop","name":"a","uid":"ua","author":"bob","verb":"deletecollection","auditID":"audit-bob","stageTimestamp":"2026-03-01T12:00:00Z","deletion":"started"}`},
		},
		{"a collection delete answered with a Status", request{user: "bob", verb: "deletecollection", answer: status("")}, nil},
		{"a collection delete with a broken body", request{user: "bob", verb: "deletecollection", answer: `{"items":[`}, nil},
		{"objectRef's version is the one replaced, never the one written", request{user: "alice", verb: "update", refUID: "", refRV: "6"}, nil},
		{"a dry run in the body", request{user: "alice", verb: "delete", request: `{"kind":"DeleteOptions","dryRun":["All"]}`, answer: status("u4")}, nil},
		{"a dry run in the URI", request{user: "alice", verb: "patch", uri: "/api/v1/x?dryRun=All", answer: object("u4", "1")}, nil},
		{"nobody", request{verb: "patch", answer: object("u4", "1")}, nil},
		{"no object", request{user: "alice", verb: "create"}, nil},
		{"a token of a service account is not a write of it", request{user: "alice", verb: "create", subresource: "token", answer: `{"kind":"TokenRequest","metadata":{"name":"prices","uid":"u5"}}`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
				ctx := context.Background()
				index := newStore(t, server).AttributionIndex(90 * time.Second)
				if err := index.RecordFact(ctx, route, c.in.event()); err != nil {
					t.Fatal(err)
				}
				client, root := rawClient(t, server), server.Prefix+":author:v1:audit:route:eu%3A1%25"
				keys, err := client.Keys(ctx, server.Prefix+"*").Result()
				if err != nil {
					t.Fatal(err)
				}
				if len(keys) != len(c.want) {
					t.Errorf("stored %q, want %d keys", keys, len(c.want))
				}
				for key, want := range c.want {
					got, err := client.Get(ctx, root+key).Result()
					if err != nil || got != want {
						t.Errorf("%s:\n got %s (%v)\nwant %s", key, got, err, want)
					}
					if ttl := client.PTTL(ctx, root+key).Val(); ttl <= 80*time.Second || ttl > 90*time.Second {
						t.Errorf("%s lives for %v, want 90s", key, ttl)
					}
				}
			})
		})
	}
}

// want is an author and a class, as in "alice exact_user".
func answer(r queue.AuthorResolution) string {
	if r.Result == queue.AttributionAbsent {
		return "absent"
	}
	return r.Fact.Author + " " + string(r.Result)
}

func TestOrderOfFacts(t *testing.T) {
	const bot = "system:serviceaccount:shop:bot"
	for _, c := range []struct {
		name        string
		skew        time.Duration
		in          []request
		exact, last string // of uid u and version 7; what a removal that no version explains finds
		rv          string
		inOrderOnly bool
	}{
		{
			name:  "a later request that changed nothing does not take the version",
			in:    []request{{user: "alice", verb: "update", received: 1, staged: 10, answer: object("u", "7")}, {user: bot, verb: "patch", received: 20, staged: 30, answer: object("u", "7")}},
			exact: "alice exact_user", last: bot + " weak",
		},
		{
			name:  "nor does it when the request times are unknown",
			in:    []request{{user: bot, verb: "update", staged: 10, answer: object("u", "7")}, {user: "alice", verb: "patch", staged: 30, answer: object("u", "7")}},
			exact: bot + " exact_serviceaccount", last: "alice weak",
		},
		{
			name:  "instants are compared, not texts: .1Z is before .12Z and after .09Z",
			in:    []request{{user: "alice", verb: "update", staged: 100, answer: object("u", "7")}, {user: "bob", verb: "patch", staged: 120, answer: object("u", "7")}, {user: "carol", verb: "patch", staged: 90, answer: object("u", "7")}},
			exact: "carol exact_user", last: "bob weak",
		},
		{
			name:  "overlapping requests of two users leave the version to nobody",
			in:    []request{{user: "alice", verb: "patch", received: 1, staged: 50, answer: object("u", "7")}, {user: "bob", verb: "patch", received: 10, staged: 20, answer: object("u", "7")}},
			exact: "absent", last: "alice weak",
		},
		{
			name: "also where one is proven to have written it: that counts with what the watch saw",
			in: []request{
				{user: "alice", verb: "update", received: 1, staged: 50, request: object("u", "6"), answer: object("u", "7")},
				{user: "bob", verb: "patch", received: 10, staged: 20, answer: object("u", "7")}, {user: "carol", verb: "patch", received: 30, staged: 60, answer: object("u", "7")},
			},
			exact: "absent", last: "carol weak",
		},
		{
			name: "the earliest has it, whatever a later one shows",
			in: []request{
				{user: "alice", verb: "patch", received: 1, staged: 10, answer: object("u", "7")},
				{user: "bob", verb: "update", received: 20, staged: 30, request: object("u", "6"), answer: object("u", "7")},
			},
			exact: "alice exact_user", last: "bob weak",
		},
		{
			name:  "overlapping requests of one user do not contest each other",
			in:    []request{{user: "alice", verb: "patch", received: 1, staged: 50, answer: object("u", "7")}, {user: "alice", verb: "patch", received: 10, staged: 20, answer: object("u", "7")}},
			exact: "alice exact_user", last: "alice weak",
		},
		{
			name:  "a request that began when the author's was answered does not overlap it",
			in:    []request{{user: "alice", verb: "patch", received: 1, staged: 20, answer: object("u", "7")}, {user: "bob", verb: "patch", received: 20, staged: 30, answer: object("u", "7")}},
			exact: "alice exact_user", last: "bob weak",
		},
		{
			name: "with clocks that differ it may have", skew: 5 * time.Millisecond,
			in:    []request{{user: "alice", verb: "patch", received: 1, staged: 20, answer: object("u", "7")}, {user: "bob", verb: "patch", received: 24, staged: 30, answer: object("u", "7")}},
			exact: "absent", last: "bob weak",
		},
		{
			name: "but not beyond what they may differ by", skew: 4 * time.Millisecond,
			in:    []request{{user: "alice", verb: "patch", received: 1, staged: 20, answer: object("u", "7")}, {user: "bob", verb: "patch", received: 24, staged: 30, answer: object("u", "7")}},
			exact: "alice exact_user", last: "bob weak",
		},
		{
			name: "a third user's early request contests whoever wins",
			in: []request{
				{user: "alice", verb: "patch", received: 40, staged: 50, answer: object("u", "7")}, {user: "bob", verb: "patch", received: 30, staged: 39, answer: object("u", "7")},
				{user: "carol", verb: "patch", received: 5, staged: 90, answer: object("u", "7")}, {user: "dave", verb: "patch", received: 10, staged: 20, answer: object("u", "7")},
			},
			exact: "absent", last: "carol weak",
		},
		{
			name:        "equal stamps: the version stays, last takes the newcomer",
			in:          []request{{user: "alice", verb: "patch", staged: 10, answer: object("u", "7")}, {user: "bob", verb: "patch", staged: 10, answer: object("u", "7")}},
			inOrderOnly: true,
			exact:       "alice exact_user", last: "bob weak",
		},
		{
			name: "a started deletion is the first one's, and not that of who removes the finalizer",
			in: []request{
				{user: "alice", verb: "delete", received: 1, staged: 10, answer: ending("u", "7")}, {user: "bob", verb: "delete", received: 20, staged: 30, answer: ending("u", "7")},
				{user: bot, verb: "patch", received: 2, staged: 40, answer: ending("u", "7")}, {user: bot, verb: "patch", received: 1, staged: 5, answer: ending("u", "7")},
			},
			exact: "alice exact_user", last: "alice weak",
		},
		{
			name:  "two overlapping deletes of a held object leave it to nobody",
			in:    []request{{user: "alice", verb: "delete", received: 1, staged: 10, answer: ending("u", "7")}, {user: "bob", verb: "delete", received: 5, staged: 30, answer: ending("u", "7")}},
			exact: "absent", last: "absent",
		},
		{
			name:  "of finished deletions the newest counts: the others were dry runs that did not look so",
			in:    []request{{user: "bob", verb: "delete", received: 1, staged: 10, statusUID: "u"}, {user: "alice", verb: "delete", received: 20, staged: 30, statusUID: "u"}, {user: "carol", verb: "patch", received: 40, staged: 50, refUID: "u"}},
			exact: "absent", last: "alice weak",
		},
		{
			name:  "but not when a dry run may have been the slower one",
			in:    []request{{user: "bob", verb: "delete", received: 1, staged: 40, statusUID: "u"}, {user: "alice", verb: "delete", received: 20, staged: 30, statusUID: "u"}},
			exact: "absent", last: "absent",
		},
		{
			name:  "a delete that may have been a dry run does not outdo one that started the removal",
			in:    []request{{user: "alice", verb: "delete", received: 1, staged: 10, answer: ending("u", "7")}, {user: "bob", verb: "delete", received: 20, staged: 30, statusUID: "u"}},
			exact: "alice exact_user", last: "alice weak",
		},
		{
			name:  "nor one that finished it",
			in:    []request{{user: "alice", verb: "delete", received: 1, staged: 10, answer: status("u")}, {user: "bob", verb: "delete", received: 20, staged: 30, statusUID: "u"}},
			exact: "absent", last: "alice weak",
		},
		{
			name:  "a member of a deleted collection",
			in:    []request{{user: "alice", verb: "update", staged: 90, answer: object("u", "7")}, {user: "bob", verb: "deletecollection", staged: 30, answer: `{"items":[` + object("u", "7") + `]}`}},
			exact: "alice exact_user", last: "bob exact_deletecollection_item",
		},
		{
			name:  "a specific delete goes before a collection's",
			in:    []request{{user: "bob", verb: "deletecollection", staged: 30, answer: `{"items":[` + object("u", "7") + `]}`}, {user: "alice", verb: "delete", staged: 20, answer: status("u")}},
			exact: "absent", last: "alice weak",
		},
		{
			name:  "a version without a uid is found by the version alone",
			in:    []request{{user: "alice", verb: "patch", staged: 20, answer: `{"kind":"Table","metadata":{"resourceVersion":"7"}}`}, {user: "bob", verb: "patch", staged: 30, answer: `{"kind":"Table","metadata":{"resourceVersion":"7"}}`}},
			exact: "alice weak", last: "absent", rv: "alice weak",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			valkeytest.Each(t, func(t *testing.T, server valkeytest.Server) {
				ctx := context.Background()
				index := newStore(t, server).AttributionIndex(0).WithClockSkew(c.skew)
				orders, times := permutations(len(c.in)), 2 // each event comes twice, in any order
				if c.inOrderOnly {
					orders, times = orders[:1], 1
				}
				for n, order := range orders {
					route := string(rune('a' + n))
					for range times {
						for _, i := range order {
							if err := index.RecordFact(ctx, route, c.in[i].event()); err != nil {
								t.Fatal(err)
							}
						}
					}
					index := newStore(t, server).AttributionIndex(0) // the record itself tells of the skew
					look := func(uid types.UID, rv string, exactCapable bool) string {
						return answer(index.LookupAuthorResolution(ctx, route, configmaps, uid, rv, exactCapable))
					}
					if got := look("u", "7", true); got != c.exact {
						t.Errorf("order %v: the version is %q's, want %q", order, got, c.exact)
					}
					if got := look("u", "8", false); got != c.last {
						t.Errorf("order %v: the removal is %q's, want %q", order, got, c.last)
					}
					if got := look("", "7", true); c.rv != "" && got != c.rv {
						t.Errorf("order %v: by version alone it is %q's, want %q", order, got, c.rv)
					}
				}
			})
		})
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, shorter := range permutations(n - 1) {
		for at := n - 1; at >= 0; at-- {
			longer := append(append(append([]int{}, shorter[:at]...), n-1), shorter[at:]...)
			out = append(out, longer)
		}
	}
	return out
}
