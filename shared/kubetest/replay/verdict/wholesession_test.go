package verdict

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/manifest"
)

// What happened in a session, credited as its truth says, is grouped, committed and pushed to a real repository, and
// reads back sound: with one commit an author and with one a change.
func TestASessionBecomesASoundHistory(t *testing.T) {
	for _, name := range []string{"story", "small-metadata"} {
		for _, grouping := range []history.Grouping{history.PerAuthor, history.PerChange} {
			t.Run(name+" "+string(grouping), func(t *testing.T) {
				session, err := replay.Load("../../../../events/samples/sessions/" + name)
				if err != nil {
					t.Fatal(err)
				}
				var all []schema.GroupResource
				for _, w := range session.Watches {
					all = append(all, w.GroupResource())
				}
				x, err := Expect(session, "cluster", all)
				if err != nil {
					t.Fatal(err)
				}
				policy := history.Policy{Grouping: grouping, CommitterName: "Tidemark", CommitterEmail: "tidemark@example.com"}
				var commits []gitcommit.Commit
				for _, c := range history.Commits(settled(t, session, x), policy, time.Now()) {
					commits = append(commits, c.Commit)
				}
				server := gittest.NewServer(t)
				onDisk := server.Repository("cfg")
				repo, err := gitcommit.Open(gitcommit.Remote{URL: onDisk.URL}, gitcommit.Options{})
				if err != nil {
					t.Fatal(err)
				}
				tip, err := repo.Tip(t.Context(), "main")
				if err != nil {
					t.Fatal(err)
				}
				built, err := repo.Build(t.Context(), tip, commits)
				if err != nil {
					t.Fatal(err)
				}
				if outcome, err := repo.Push(t.Context(), built); err != nil || outcome.Class != gitcommit.Landed {
					t.Fatalf("push: %+v %v", outcome, err)
				}
				log, err := Log(t.Context(), onDisk.Dir, "main")
				if err != nil {
					t.Fatal(err)
				}
				files, err := Files(t.Context(), onDisk.Dir, log[len(log)-1].ID)
				if err != nil {
					t.Fatal(err)
				}
				v := Judge(x, log, files, func(string) bool { return true })
				if !v.Sound() || v.Changes != len(x.Changes) {
					t.Errorf("%d of %d changes: %v", v.Changes, len(x.Changes), v.Faults())
				}
			})
		}
	}
}

// settled is the reconcile of the initial objects and then every expected change, as the truth has it.
func settled(t *testing.T, session *replay.Session, x *Expectation) []history.Change {
	t.Helper()
	var out []history.Change
	for _, w := range session.Watches {
		for _, ev := range w.Initial {
			if content, err := render(ev.Object); err != nil {
				t.Fatal(err)
			} else if content != nil {
				gr, ns, name := w.GroupResource(), ev.Object.GetNamespace(), ev.Object.GetName()
				out = append(out, history.Change{
					Verb: history.Create, GroupResource: gr, Namespace: ns, Name: name, ResourceVersion: ev.Object.GetResourceVersion(),
					Path: manifest.Path("cluster", gr, ns, name), Content: content, Replayed: true,
				})
			}
		}
	}
	for _, c := range x.Changes {
		ch := history.Change{
			Verb: history.Verb(c.Verb), GroupResource: c.GroupResource, Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.RV,
			Path: manifest.Path("cluster", c.GroupResource, c.Namespace, c.Name), Time: time.Unix(1_800_000_000, 0).Add(c.At),
			Actor: &history.Actor{Username: c.Truth.Owner()}, Evidence: history.Evidence{Class: "exact_user"},
		}
		for _, w := range session.Watches {
			for _, ev := range w.Live {
				if w.GroupResource() == c.GroupResource && ev.Type != "BOOKMARK" && c.Verb != "delete" && ev.Object.GetResourceVersion() == c.RV {
					var err error
					if ch.Content, err = render(ev.Object); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		out = append(out, ch)
	}
	return out
}
