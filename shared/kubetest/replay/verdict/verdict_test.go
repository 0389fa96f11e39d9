package verdict

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

var resources = []schema.GroupResource{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}, {Group: "shop.example", Resource: "features"}, {Resource: "secrets"}}

func expect(t *testing.T) *Expectation {
	t.Helper()
	session, err := replay.Load("../../../../events/samples/sessions/story")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Expect(session, "c", resources)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExpect(t *testing.T) {
	x := expect(t)
	var got []string
	for _, c := range x.Changes {
		if c.Resource != "configmaps" {
			got = append(got, fmt.Sprintf("%s %s", c, c.Truth.Owner()))
		}
	}
	want := []string{ // status, revision counters and field ownership are no changes of a file
		"create deployments.apps shop/web rv=276 system:serviceaccount:shop:deployer",
		"update deployments.apps shop/web rv=289 bob",
		"create features.shop.example shop/dark-mode rv=312 alice",
		"update features.shop.example shop/dark-mode rv=313 carol",
		"create features.shop.example shop/free-shipping rv=314 bob",
		"update deployments.apps shop/web rv=316 carol",
		"create deployments.apps shop/canary rv=351 alice",
		"update deployments.apps shop/web rv=362 bob",
		"delete deployments.apps shop/canary rv=374 bob",
		"delete features.shop.example shop/free-shipping rv=379 carol",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, path := range []string{"c/shop/configmaps/banner.yaml", "c/shop/configmaps/ledger.yaml", "c/shop/secrets/payment-api.yaml"} {
		if x.Files[path] != nil {
			t.Errorf("%s is expected at the end", path)
		}
	}
	if !strings.Contains(string(x.Files["c/shop/configmaps/prices.yaml"]), "kind: ConfigMap") {
		t.Error("c/shop/configmaps/prices.yaml is not expected at the end")
	}
}

// entries writes the history that was expected, one commit a change.
func entries(x *Expectation) []Entry {
	var out []Entry
	for _, c := range x.Changes {
		ch := history.Change{
			Verb: history.Verb(c.Verb), GroupResource: c.GroupResource, Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.RV, Path: "p",
			Actor: &history.Actor{Username: c.Truth.Owner()}, Evidence: history.Evidence{Class: "exact_user"},
		}
		commit := history.Commits([]history.Change{ch}, history.Policy{CommitterName: "T", CommitterEmail: "t@example.com"}, time.Now())[0]
		e := Entry{ID: fmt.Sprintf("%040d", len(out)), Author: commit.Author.Name, Message: commit.Message}
		e.Parsed, e.Ours = history.ParseMessage(e.Message)
		out = append(out, e)
	}
	return out
}

func TestJudge(t *testing.T) {
	all := func(string) bool { return true }
	x := expect(t)
	files := func() map[string][]byte {
		m := map[string][]byte{}
		for k, v := range x.Files {
			m[k] = v
		}
		return m
	}
	good := Judge(x, entries(x), files(), all)
	if !good.Sound() || good.Changes != len(x.Changes) || len(good.Faults()) != 0 {
		t.Errorf("the history as expected: %v", good.Faults())
	}
	if diff := cmp.Diff([]string{"alice", "bob", "carol", "system:serviceaccount:shop:deployer"}, good.Authors); diff != "" {
		t.Errorf("authors (-want +got)\n%s", diff)
	}
	cases := []struct {
		name  string
		spoil func([]Entry, map[string][]byte) []Entry
		want  string
	}{
		{"another name", func(e []Entry, _ map[string][]byte) []Entry { e[0].Parsed.Actor = "mallory"; return e }, "wrong name: create configmaps shop/storefront"},
		{"no name", func(e []Entry, _ map[string][]byte) []Entry { e[0].Parsed.Changes[0].By = "absent"; return e }, "unresolved though knowable: create configmaps shop/storefront"},
		{"a change left out", func(e []Entry, _ map[string][]byte) []Entry { return e[1:] }, "missing: create configmaps shop/storefront"},
		{"a change in a reconcile commit", func(e []Entry, _ map[string][]byte) []Entry { e[0].Parsed.Changes[0].By = "replay"; return e }, "only in a reconcile commit"},
		{"a change twice", func(e []Entry, _ map[string][]byte) []Entry { return append(e, e[0]) }, "twice: create configmaps shop/storefront"},
		{"a change that did not happen", func(e []Entry, _ map[string][]byte) []Entry { e[0].Parsed.Changes[0].ResourceVersion = "9"; return e }, "did not happen: create configmaps shop/storefront rv=9"},
		{"two changes of an object swapped", func(e []Entry, _ map[string][]byte) []Entry {
			for i := range e { // prices is created by the second entry and changed by a later one
				if r := e[i].Parsed.Changes[0]; r.Name == "prices" && r.ResourceVersion == "288" {
					e[1], e[i] = e[i], e[1]
				}
			}
			return e
		}, "out of order: create configmaps shop/prices rv=273 comes after update configmaps shop/prices rv=288"},
		{"a file too many", func(e []Entry, f map[string][]byte) []Entry { f["c/x.yaml"] = nil; return e }, "file: c/x.yaml should not be there"},
		{"a file too few", func(e []Entry, f map[string][]byte) []Entry { delete(f, "c/shop/configmaps/prices.yaml"); return e }, "file: c/shop/configmaps/prices.yaml is not there"},
		{"another content", func(e []Entry, f map[string][]byte) []Entry { f["c/shop/configmaps/prices.yaml"] = nil; return e }, "has another content"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := files()
			v := Judge(x, c.spoil(entries(x), f), f, all)
			if v.Sound() || !strings.Contains(strings.Join(v.Faults(), "\n"), c.want) {
				t.Errorf("got %q, want %q", v.Faults(), c.want)
			}
		})
	}
}

func TestWithoutATruthNamesAreNotJudged(t *testing.T) {
	x := expect(t)
	for i := range x.Changes {
		x.Changes[i].Known = false
	}
	v := Judge(x, entries(x), nil, nil)
	if !v.Sound() || v.Unchecked != len(x.Changes) || v.Changes != 0 {
		t.Errorf("%d unchecked, %d judged: %v", v.Unchecked, v.Changes, v.Faults())
	}
	if v := Judge(x, entries(x)[1:], nil, nil); v.Sound() {
		t.Error("a missing change is no fault")
	}
}

func TestReadingARepository(t *testing.T) {
	dir := t.TempDir()
	script := `git init -q -b main . && printf 'a: 1\n' > a.yaml && git add . &&
		git -c user.name=Tidemark -c user.email=t@example.com commit -q --author='alice <alice@example.com>' -m 's' -m "$(printf 'Actor: alice\nChange: create configmaps shop/a rv=1 by=exact_user')" &&
		git -c user.name=bob -c user.email=b@example.com commit -q --allow-empty -m 'by hand'`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	log, err := Log(t.Context(), dir, "main")
	if err != nil || len(log) != 2 {
		t.Fatalf("got %+v %v", log, err)
	}
	if e := log[0]; !e.Ours || e.Author != "alice <alice@example.com>" || e.Committer != "Tidemark <t@example.com>" || e.Parsed.Actor != "alice" || len(e.ID) != 40 {
		t.Errorf("got %+v", e)
	}
	if log[1].Ours {
		t.Errorf("got %+v", log[1])
	}
	files, err := Files(t.Context(), dir, log[1].ID)
	if err != nil || string(files["a.yaml"]) != "a: 1\n" || len(files) != 1 {
		t.Errorf("got %q %v", files, err)
	}
	if _, err := Log(t.Context(), dir, "other"); err == nil {
		t.Error("a branch that is not there is no error")
	}
}
