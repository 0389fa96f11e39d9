package gitcommit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// TestCostDoesNotGrow counts requests and bytes, which are exact on any machine, of a commit of one file four directories deep.
func TestCostDoesNotGrow(t *testing.T) {
	for _, files := range []int{100, 10_000, 50_000} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			server := gittest.NewServer(t)
			repo := server.Repository("cfg.git")
			paths := repo.Fill("main", files)
			m := newMemory()
			options := gitcommit.Options{Cache: m, Tips: m}

			server.Records()
			land(t, open(t, repo, options), "main", commitOf("cold", write(paths[files/2], "cold: 1\n")))
			requests, _, down := sum(server.Records())
			if requests > 8 || down > 10_000 {
				t.Errorf("cold: %d requests and %d bytes down, want at most 8 and 10 kB", requests, down)
			}
			t.Logf("cold: %d requests, %d bytes down", requests, down)

			requests, up, down := warm(t, server, open(t, repo, options), paths[files/2])
			if requests != 1 || down >= 1000 {
				t.Errorf("trees known: %d requests and %d bytes down, want 1 and less than 1 kB", requests, down)
			}
			t.Logf("trees known: %d request, %d bytes up, %d down", requests, up, down)

			// A foreign commit beside our files makes the walk repeat only where it changed something.
			repo.Commit("main", "foreign", map[string]string{"elsewhere/file": "x\n"})
			requests, _, down = warm(t, server, open(t, repo, options), paths[files/2])
			if requests != 5 || down >= 2000 {
				t.Errorf("after a foreign commit: %d requests and %d bytes down, want 5 (lost race, tip, commits, root tree, push) and less than 2 kB", requests, down)
			}
		})
	}
}

// warm lands one change from the remembered tip.
func warm(t *testing.T, server *gittest.Server, r *gitcommit.Repository, path string) (requests int, up, down int64) {
	t.Helper()
	server.Records()
	landing(t, r, "warm", path, fmt.Sprintf("warm: %s\n", t.Name())+strings.Repeat("x", warmed))
	warmed++
	return sum(server.Records())
}

var warmed int // each warm change differs from the one before

func sum(records []gittest.Record) (requests int, up, down int64) {
	for _, r := range records {
		up, down = up+r.Up, down+r.Down
	}
	return len(records), up, down
}

// TestManyPathsTakeFewRequests: the requests of a cold build depend on how deep the paths are, not on how many.
func TestManyPathsTakeFewRequests(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	paths := repo.Fill("main", 5000)
	var changes []gitcommit.Change
	for i := 0; i < len(paths); i += 7 {
		changes = append(changes, write(paths[i], "many\n"))
	}
	r := open(t, repo, gitcommit.Options{})
	server.Records()
	land(t, r, "main", commitOf("many", changes...))
	requests, _, down := sum(server.Records())
	if requests > 7 {
		t.Errorf("%d paths took %d requests, want at most 7", len(changes), requests)
	}
	t.Logf("%d paths: %d requests, %d bytes down", len(changes), requests, down)
}

// TestListingReusesWhatIsKnown: of a listing whose trees are cached only what changed is fetched.
func TestListingReusesWhatIsKnown(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	paths := repo.Fill("main", 5000)
	m := newMemory()
	list := func() (requests int, down int64, files int) {
		r := open(t, repo, gitcommit.Options{Cache: m})
		server.Records()
		tip, err := r.Tip(timeout(t), "main")
		if err != nil {
			t.Fatal(err)
		}
		listed, err := r.Files(timeout(t), tip, "clusters/prod")
		if err != nil {
			t.Fatal(err)
		}
		requests, _, down = sum(server.Records())
		return requests, down, len(listed)
	}
	cold, _, files := list()
	if cold > 6 || files != len(paths) {
		t.Errorf("cold: %d requests for %d files, want at most 6 for %d", cold, files, len(paths))
	}
	if again, down, _ := list(); again != 1 || down > 1000 {
		t.Errorf("again: %d requests and %d bytes down, want only the tip's", again, down)
	}
	repo.Commit("main", "foreign", map[string]string{paths[777]: "x\n"})
	if after, down, _ := list(); after > 6 || down > 10_000 {
		t.Errorf("after one foreign change: %d requests and %d bytes down, want at most 6 and 10 kB", after, down)
	}
}
