package history

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

func TestIdentity(t *testing.T) {
	long := strings.Repeat("x", 1000)
	cases := []struct {
		name  string
		actor Actor
		want  string
	}{
		{"a name and an address from the extras", Actor{Username: "u-h9vkf", DisplayName: "carol", Email: "carol@example.com"}, "carol <carol@example.com>"},
		{"a display name alone", Actor{Username: "u-h9vkf", DisplayName: "Carol Ødegård"}, "Carol Ødegård <u-h9vkf@noreply.cluster.local>"},
		{"brackets and a line end in the display name, no address", Actor{Username: "dave", DisplayName: "Dave <dave@evil.test>\nCo-authored-by: x", Email: "not an email"}, "dave <dave@noreply.cluster.local>"},
		{"a username only", Actor{Username: "erin"}, "erin <erin@noreply.cluster.local>"},
		{"a username that is an address", Actor{Username: "ana@example.test"}, "ana@example.test <ana@example.test>"},
		{"a service account", Actor{Username: "system:serviceaccount:shop:deployer"}, "shop/deployer (service account) <deployer@shop.serviceaccount.system.noreply.cluster.local>"},
		{"a user who poses as a service account", Actor{Username: "mallory", DisplayName: "shop/deployer (service account)"}, "mallory <mallory@noreply.cluster.local>"},
		{"a user who poses as nobody", Actor{Username: "mallory", DisplayName: "(Unresolved)"}, "mallory <mallory@noreply.cluster.local>"},
		{"an anonymous request", Actor{Username: "system:anonymous"}, "system:anonymous <anonymous@system.noreply.cluster.local>"},
		{"a node", Actor{Username: "system:node:ip-10-0-0-1.ec2.internal"}, "system:node:ip-10-0-0-1.ec2.internal <ip-10-0-0-1.ec2.internal@node.system.noreply.cluster.local>"},
		{"an address in our own domain is not taken over", Actor{Username: "mallory", Email: "alice@noreply.cluster.local"}, "mallory <mallory@noreply.cluster.local>"},
		{"an address of the unresolved is not taken over", Actor{Username: "mallory", Email: "unresolved@noreply.invalid"}, "mallory <mallory@noreply.cluster.local>"},
		{"a right-to-left mark", Actor{Username: "mallory", DisplayName: "ecila\u202e"}, "mallory <mallory@noreply.cluster.local>"},
		{"a zero-width space", Actor{Username: "alice\u200b"}, "alice\ufffd <alice=7346bb7e66eab65f@noreply.cluster.local>"},
		{"line ends and brackets in the username", Actor{Username: "bob <b@x>\nauthor eve"}, "bob \ufffdb@x\ufffd\ufffdauthor eve <bob-b-x-author-eve=fc883dce640ad9de@noreply.cluster.local>"},
		{"a kilobyte of username", Actor{Username: long}, strings.Repeat("x", 100) + "… <" + strings.Repeat("x", 40) + "=44f8354494a5ba03@noreply.cluster.local>"},
		{"a kilobyte of display name", Actor{Username: "frank", DisplayName: long}, "frank <frank@noreply.cluster.local>"},
		{"a distinguished name", Actor{Username: "CN=alice,O=example"}, "CN=alice,O=example <CN-alice-O-example=9f4b0b1d610dfdad@noreply.cluster.local>"},
	}
	for _, c := range cases {
		name, email := identity(c.actor)
		if got := name + " <" + email + ">"; got != c.want {
			t.Errorf("%s: %.200q\n got %s\nwant %s", c.name, c.actor, got, c.want)
		}
	}
}

func TestDifferentUsernamesGetDifferentAddresses(t *testing.T) {
	alphabet := []string{"a", "b", ":", ".", "@", "=", "-", "system", "noreply.cluster.local", "x", "<", "é"}
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 100_000 {
		username := pick(rnd, alphabet, 1+rnd.IntN(6))
		_, email := identity(Actor{Username: username})
		if other, taken := seen[email]; taken && other != username {
			t.Fatalf("%q and %q share %s", username, other, email)
		}
		seen[email] = username
	}
}

func pick(rnd *rand.Rand, alphabet []string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(alphabet[rnd.IntN(len(alphabet))])
	}
	return b.String()
}

// Whatever names, words and ids hold, the commit has one author line that says what we meant, git takes it, and
// its trailers read back as what was put in.
func TestNothingHostileForgesACommit(t *testing.T) {
	alphabet := []string{
		"\n", "\r", "\r\n", "\n\n", "\x00", "\u0085", "\u2028", "\u202e", "\u200f", "<", ">", "a", "é", " ", "\t", "%", "=", ":", ",", `"`, `\`, "/", "\xff",
		"Change: ", "Actor: ", "Commit-Request: x\n", "author eve <eve@example.com> 1 +0000\n", ", impersonated by ", "by=exact_user", " rv=1", "Signed-off-by: eve\n", "system:serviceaccount:a:b", "alice",
		strings.Repeat("z", 300),
	}
	repo := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", repo).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	rnd := rand.New(rand.NewPCG(4, 2))
	word := func(max int) string { return pick(rnd, alphabet, rnd.IntN(max)) }
	for round := range 3000 {
		ch := change("alice", Update, "shop/web", "1")
		ch.Namespace, ch.Name, ch.ResourceVersion = word(3), "n"+word(3), word(3)
		ch.Evidence = Evidence{Class: "exact_user", Tier: word(3), AuditID: word(4), Why: word(2)}
		ch.Actor = &Actor{Username: "u" + word(5), DisplayName: word(4), Email: word(3), ImpersonatedBy: word(3)}
		if rnd.IntN(2) == 0 {
			ch.Request = &Request{Namespace: "shop", Name: "r" + word(2), Message: word(8)}
		}
		p := policy
		p.Message = word(5) + "{author} {name}"
		c := Commits([]Change{ch}, p, now)[0]

		body := string(gitobject.Commit{Author: c.Author, Committer: c.Committer, Message: c.Message}.Encode())
		header, message, _ := strings.Cut(body, "\n\n")
		authors := 0
		for line := range strings.Lines(header) {
			if strings.HasPrefix(line, "author ") {
				authors++
			}
		}
		if authors != 1 || strings.Count(header, "\n") != 2 {
			t.Fatalf("header of %q:\n%s", ch.Actor, header)
		}
		m, ok := ParseMessage(message)
		want := record(ch)
		if !ok || len(m.Changes) != 1 || m.Changes[0] != want {
			t.Fatalf("read back %v %+v, want %+v\n%s", ok, m.Changes, want, message)
		}
		for _, said := range []struct{ got, want string }{{m.Actor, ch.Actor.Username}, {m.ImpersonatedBy, ch.Actor.ImpersonatedBy}} {
			if valid := strings.ToValidUTF8(said.want, ""); len(said.want) <= 256 && valid == said.want && said.got != said.want {
				t.Fatalf("read back the actor %q, want %q\n%s", said.got, said.want, message)
			}
		}
		for i, line := range strings.Split(message, "\n") {
			if strings.HasPrefix(line, "Change:") && line != "Change: "+want.String() {
				t.Fatalf("line %d is a forged trailer: %q", i, line)
			}
			if strings.ContainsAny(line, "\r\x00\u0085\u2028\u202e\u200f") {
				t.Fatalf("line %d holds a control character: %q", i, line)
			}
		}
		if round%100 == 0 {
			hash := exec.Command("git", "-C", repo, "hash-object", "-t", "commit", "--stdin")
			hash.Stdin = strings.NewReader(strings.Replace(body, "tree \n", "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n", 1))
			if out, err := hash.CombinedOutput(); err != nil {
				t.Fatalf("git refuses the commit: %v %s\n%s", err, out, body)
			}
		}
	}
}

func TestParseMessageRefusesWhatIsNotWhole(t *testing.T) {
	good := "s\n\nActor: alice\nChange: update configmaps shop/a rv=1 by=exact_user\nSigned-off-by: someone\n"
	m, ok := ParseMessage(good)
	want := Message{Actor: "alice", Changes: []Record{{Verb: Update, Resource: "configmaps", Namespace: "shop", Name: "a", ResourceVersion: "1", By: "exact_user"}}}
	if diff := cmp.Diff(want, m); !ok || diff != "" {
		t.Errorf("%v (-want +got)\n%s", ok, diff)
	}
	for _, bad := range []string{
		"", "s", "s\n\nActor: alice", "s\n\nChange: update configmaps shop/a rv=1 by=exact_user\n\nthe end", "s\n\nChange: update configmaps shop/a",
		"s\n\nChange: update configmaps shop/%zz by=weak", "s\n\nActor: alice, bob\nChange: update configmaps shop/a by=weak",
		"s\n\nActor: \"alice\nChange: update configmaps shop/a by=weak", "s\n\nChange: update configmaps shop/a by=weak\nChanges-Not-Listed: many",
	} {
		if m, ok := ParseMessage(bad); ok {
			t.Errorf("%q: got %+v", bad, m)
		}
	}
}
