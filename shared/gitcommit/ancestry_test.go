package gitcommit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestFindsACommitAmongAncestors(t *testing.T) {
	eachFormat(t, func(t *testing.T, server *gittest.Server, repo *gittest.Repository) {
		var line []string
		for i := range 200 {
			line = append(line, fmt.Sprintf("commit refs/heads/main\ncommitter bob <bob@example.com> %d +0000\ndata 1\nm\nM 100644 inline f\ndata 3\n%03d\n", 1700000000+i, i))
		}
		repo.FastImport(strings.NewReader(strings.Join(line, "") + "done\n"))
		side := repo.Git("commit-tree", "-p", "main", "-m", "side", "main^{tree}")
		merge := repo.Git("commit-tree", "-p", "main", "-p", side, "-m", "merge", "main^{tree}")
		repo.Git("update-ref", "refs/heads/main", merge)
		ids := strings.Fields(repo.Git("rev-list", "--first-parent", "main"))
		id := gitobject.MustParseID
		cases := []struct {
			name     string
			stop, id gitcommit.ObjectID
			want     bool
			requests int
		}{
			{"the branch was rewritten and does not lead to the stop", id(side), id(ids[3]), false, 2},
			{"the branch was rewritten, and then ours came", id(ids[1]), id(ids[0]), true, 0},
			{"the tip itself", id(ids[5]), id(ids[0]), true, 0},
			{"the tip is the stop", id(ids[0]), id(ids[3]), false, 0},
			{"a little back", id(ids[7]), id(ids[5]), true, 1},
			{"beyond the stop", id(ids[7]), id(ids[9]), false, 1},
			{"far back", gitcommit.ObjectID{}, id(ids[180]), true, 2},
			{"not there, back to the first commit", gitcommit.ObjectID{}, r256(id(ids[0])), false, 2},
			{"a second parent", id(ids[7]), id(side), true, 1},
			{"no commit at all", id(ids[7]), gitcommit.ObjectID{}, false, 0},
		}
		for _, c := range cases {
			r := open(t, repo, gitcommit.Options{})
			server.Records()
			got, err := r.Contains(timeout(t), gitcommit.Tip{Branch: "main", ID: id(ids[0])}, c.stop, c.id)
			if err != nil || got != c.want {
				t.Errorf("%s: got %v, %v; want %v", c.name, got, err, c.want)
			}
			if n := len(server.Records()); n != c.requests {
				t.Errorf("%s: %d requests, want %d", c.name, n, c.requests)
			}
		}
	})
}

func TestWalksAsGitLogDoes(t *testing.T) {
	eachFormat(t, func(t *testing.T, server *gittest.Server, repo *gittest.Repository) {
		var history strings.Builder
		commit := func(mark int, parents ...int) {
			fmt.Fprintf(&history, "commit refs/heads/main\nmark :%d\ncommitter bob <bob@example.com> %d +0000\ndata 1\nm\n", mark, 1700000000+mark)
			for i, parent := range parents {
				fmt.Fprintf(&history, "%s :%d\n", []string{"from", "merge"}[i], parent)
			}
		}
		commit(1)
		for mark := 2; mark < 400; mark += 3 { // a person's commit, ours, and the person pulls: ours is the second parent
			commit(mark, mark-1)
			commit(mark+1, mark-1)
			commit(mark+2, mark, mark+1)
		}
		repo.FastImport(strings.NewReader(history.String() + "done\n"))
		want := strings.Fields(repo.Git("log", "--format=%H", "main"))
		for _, most := range []int{1, 300, 1000} {
			r := open(t, repo, gitcommit.Options{})
			server.Records()
			var got []string
			err := r.Walk(timeout(t), gitcommit.Tip{Branch: "main", ID: gitobject.MustParseID(want[0])}, most, func(id gitcommit.ObjectID, _ gitobject.Commit) bool {
				got = append(got, id.String())
				return true
			})
			if diff := cmp.Diff(want[:min(most, len(want))], got); err != nil || diff != "" {
				t.Errorf("the first %d: %v (-want +got):\n%s", most, err, diff)
			}
			if n := len(server.Records()); n > 2 {
				t.Errorf("the first %d: %d requests", most, n)
			}
		}
	})
}

// r256 is an id that no repository has.
func r256(like gitcommit.ObjectID) gitcommit.ObjectID {
	return gitobject.New(like.Format(), gitobject.BlobType, []byte("nowhere")).ID
}
