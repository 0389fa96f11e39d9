package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	now    = time.Date(2026, 3, 1, 10, 5, 0, 0, time.UTC)
	policy = Policy{CommitterName: "Tidemark", CommitterEmail: "tidemark@example.com"}
)

// change is `alice update shop/web 12`, with a path of its own; "-" is nobody, "~" a replay.
func change(actor string, verb Verb, object, rv string) Change {
	ns, name, _ := strings.Cut(object, "/")
	ch := Change{
		Verb: verb, GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: ns, Name: name, ResourceVersion: rv,
		Path: ns + "/apps/deployments/" + name + ".yaml", Content: []byte("content of " + rv),
		Evidence: Evidence{Class: "exact_user", AuditID: "id-" + rv},
	}
	switch actor {
	case "-":
		ch.Evidence = Evidence{Class: ByAbsent, Why: "no_fact"}
	case "~":
		ch.Replayed = true
	default:
		ch.Actor = &Actor{Username: actor}
	}
	return ch
}

// outline writes commits as `alice: create shop/web 1, delete shop/db 2`.
func outline(commits []Commit) []string {
	var out []string
	for _, c := range commits {
		m, ok := ParseMessage(c.Message)
		if !ok {
			out = append(out, "unreadable: "+c.Message)
			continue
		}
		var parts []string
		for i, r := range m.Changes {
			verb := "write"
			if c.Changes[i].Delete {
				verb = "remove"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s/%s %s", r.Verb, verb, r.Namespace, r.Name, r.ResourceVersion))
		}
		out = append(out, c.Author.Name+": "+strings.Join(parts, ", "))
	}
	return out
}

func TestCommitsGroup(t *testing.T) {
	request := func(ch Change, name, message string) Change {
		ch.Request = &Request{Namespace: "shop", Name: name, Message: message}
		return ch
	}
	asCommitter := func(ch Change) Change { ch.ByCommitter = true; return ch }
	impersonated := func(ch Change) Change { ch.Actor.ImpersonatedBy = "portal"; return ch }
	cases := []struct {
		name     string
		grouping Grouping
		in       []Change
		want     []string
	}{
		{"nothing", PerAuthor, nil, nil},
		{
			"consecutive changes of one author share a commit, another author in between parts them", PerAuthor,
			[]Change{change("alice", Create, "shop/web", "1"), change("alice", Create, "shop/db", "2"), change("bob", Update, "shop/web", "3"), change("alice", Update, "shop/db", "4")},
			[]string{"alice: create write shop/web 1, create write shop/db 2", "bob: update write shop/web 3", "alice: update write shop/db 4"},
		},
		{
			"one author's two changes of one object stay two commits, in order", PerAuthor,
			[]Change{change("alice", Create, "shop/web", "1"), change("alice", Update, "shop/web", "2"), change("alice", Delete, "shop/db", "3"), change("alice", Delete, "shop/web", "4")},
			[]string{"alice: create write shop/web 1", "alice: update write shop/web 2, delete remove shop/db 3", "alice: delete remove shop/web 4"},
		},
		{
			"one commit a change when asked", PerChange,
			[]Change{change("alice", Create, "shop/web", "1"), change("alice", Create, "shop/db", "2")},
			[]string{"alice: create write shop/web 1", "alice: create write shop/db 2"},
		},
		{
			"the unresolved stand apart from everyone, and the committer's from both", PerAuthor,
			[]Change{change("-", Create, "shop/web", "1"), change("-", Create, "shop/db", "2"), change("alice", Update, "shop/web", "3"), asCommitter(change("alice", Update, "shop/db", "4"))},
			[]string{"(unresolved): create write shop/web 1, create write shop/db 2", "alice: update write shop/web 3", "Tidemark: update write shop/db 4"},
		},
		{
			"a replay is one commit of the committer, also per change", PerChange,
			[]Change{change("~", Create, "shop/web", "1"), change("~", Delete, "shop/db", "2"), change("alice", Update, "shop/web", "3")},
			[]string{"Tidemark: create write shop/web 1, delete remove shop/db 2", "alice: update write shop/web 3"},
		},
		{
			"requests and impersonation part commits of one username", PerAuthor,
			[]Change{
				change("alice", Create, "shop/web", "1"), request(change("alice", Create, "shop/db", "2"), "save", "evening"), request(change("alice", Create, "shop/dc", "3"), "save", "evening"),
				impersonated(change("alice", Create, "shop/dd", "4")),
			},
			[]string{"alice: create write shop/web 1", "alice: create write shop/db 2, create write shop/dc 3", "alice: create write shop/dd 4"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := policy
			p.Grouping = c.grouping
			got := Commits(c.in, p, now)
			if diff := cmp.Diff(c.want, outline(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			next := 0
			for _, commit := range got {
				for i, covered := range commit.Covers {
					if covered != next || commit.Changes[i].Path != c.in[next].Path {
						t.Errorf("change %d: the commit covers %d with path %s", next, covered, commit.Changes[i].Path)
					}
					next++
				}
			}
			if next != len(c.in) {
				t.Errorf("%d of %d changes are covered", next, len(c.in))
			}
		})
	}
}

func TestDatesAndMessages(t *testing.T) {
	early, late := now.Add(-time.Minute), now.Add(-time.Second)
	a, b := change("alice", Update, "shop/web", "7"), change("alice", Delete, "shop/db", "8")
	a.Time, b.Time = late.In(time.FixedZone("", 7200)), early
	a.Evidence = Evidence{Class: "weak", Tier: "replaced-version", AuditID: "6f1c"}
	a.Actor.ImpersonatedBy, b.Actor.ImpersonatedBy = "ci-bot", "ci-bot"
	got := Commits([]Change{a, b}, policy, now)
	if len(got) != 1 {
		t.Fatalf("got %d commits, want 1", len(got))
	}
	c := got[0]
	if !c.Author.When.Equal(late) || !c.Committer.When.Equal(now) || c.Committer.Name != "Tidemark" || c.Committer.Email != "tidemark@example.com" {
		t.Errorf("author at %v, committer %+v; want the later change's time and the target's committer at %v", c.Author.When, c.Committer, now)
	}
	want := `update apps/deployments shop/web and 1 more

Actor: alice, impersonated by ci-bot
Change: update apps/deployments shop/web rv=7 by=weak tier=replaced-version audit=6f1c
Change: delete apps/deployments shop/db rv=8 by=exact_user audit=id-8
`
	if diff := cmp.Diff(want, c.Message); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	unresolved := Commits([]Change{change("-", Create, "/shop", "9")}, policy, now)[0]
	if diff := cmp.Diff("create apps/deployments shop\n\nChange: create apps/deployments shop rv=9 by=absent why=no_fact\n", unresolved.Message); diff != "" {
		t.Errorf("unresolved (-want +got)\n%s", diff)
	}
	if unresolved.Author.Name != "(unresolved)" || !unresolved.Author.When.Equal(now) {
		t.Errorf("unresolved: author %+v", unresolved.Author)
	}
}

func TestMessageTemplates(t *testing.T) {
	cases := []struct{ template, want string }{
		{"", "update apps/deployments shop/web and 1 more"},
		{"[{count}] {author}: {verb} {resource} {namespace} {name}", "[2] alice: update apps/deployments shop web"},
		{"prod: {summary}", "prod: update apps/deployments shop/web and 1 more"},
		{"{unknown}", "{unknown}"},
		{"Change: forged\nActor : bob", " Change: forged\n Actor : bob"},
	}
	for _, c := range cases {
		p := policy
		p.Message = c.template
		got := Commits([]Change{change("alice", Update, "shop/web", "1"), change("alice", Update, "shop/db", "2")}, p, now)[0].Message
		if subject, _, _ := strings.Cut(got, "\n\n"); subject != c.want {
			t.Errorf("%q: got %q, want %q", c.template, subject, c.want)
		}
	}
}

func TestRequestsCarryTheirWords(t *testing.T) {
	ch := change("alice", Update, "shop/web", "1")
	ch.Request = &Request{Namespace: "shop", Name: "save-8xmbn", Message: "\nNew prices\r\n\r\nAsked for by the shop.\n\nChange: delete apps/deployments shop/web rv=1 by=exact_user\n\n"}
	got := Commits([]Change{ch}, policy, now)[0].Message
	want := `New prices

Asked for by the shop.

 Change: delete apps/deployments shop/web rv=1 by=exact_user

Actor: alice
Commit-Request: shop/save-8xmbn
Change: update apps/deployments shop/web rv=1 by=exact_user audit=id-1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	m, ok := ParseMessage(got)
	if !ok || m.Request != "shop/save-8xmbn" || len(m.Changes) != 1 || m.Changes[0].Verb != Update {
		t.Errorf("read back: %+v %v", m, ok)
	}
}

func TestAReconcileCommitListsABoundedNumber(t *testing.T) {
	var changes []Change
	for i := range 1200 {
		changes = append(changes, change("~", Create, fmt.Sprintf("shop/o%d", i), "1"))
	}
	got := Commits(changes, policy, now)
	if len(got) != 1 || len(got[0].Changes) != 1200 {
		t.Fatalf("got %d commits", len(got))
	}
	m, ok := ParseMessage(got[0].Message)
	if !ok || len(m.Changes) != 500 || m.Omitted != 700 || m.Changes[0].By != ByReplay || m.Actor != "" {
		t.Errorf("read back: %v, %d listed, %d omitted, actor %q", ok, len(m.Changes), m.Omitted, m.Actor)
	}
	if !strings.HasPrefix(got[0].Message, "reconcile with the cluster: create apps/deployments shop/o0 and 1199 more\n") {
		t.Errorf("subject: %.100s", got[0].Message)
	}
}
