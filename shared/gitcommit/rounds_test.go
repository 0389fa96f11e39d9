package gitcommit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

// intent is what a writer stores before it pushes, as watchcommit does: whoever comes later can tell from the branch
// whether the push happened.
type intent struct {
	old, new gitcommit.ObjectID
	round    int
}

// rounds is a repository that goes through one accident a round, and what should come of it.
type rounds struct {
	t      *testing.T
	server *gittest.Server
	repo   *gittest.Repository
	memory *memory
	random *rand.Rand

	mu      sync.Mutex
	files   map[string]string // what the branch should hold
	foreign int
	intents []intent
	passed  int // the rounds up to here are on the branch: the cursor
}

// round is one change and its accident.
type round struct {
	number  int
	changes []gitcommit.Change
}

// accidents are what may happen to a round. Each returns what to do with the writer: when to kill it, or whether a
// second copy works at the same time.
var accidents = []struct {
	name string
	set  func(*rounds)
}{
	{"none", func(*rounds) {}},
	{"answer lost", func(r *rounds) { r.server.Inject(gittest.Pushes, 1+r.random.IntN(2), gittest.LoseAnswer) }},
	{"request lost", func(r *rounds) { r.server.Inject(gittest.Pushes, 1+r.random.IntN(2), gittest.LoseRequest) }},
	{"answer cut", func(r *rounds) { r.server.Inject(gittest.Pushes, 1, gittest.CutAnswer(r.random.IntN(40))) }},
	{"pushed late", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1, gittest.ActLate(time.Duration(r.random.IntN(80))*time.Millisecond))
	}},
	{"answer delayed", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1, gittest.DelayAnswer(time.Duration(r.random.IntN(60))*time.Millisecond))
	}},
	{"busy", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1+r.random.IntN(2), gittest.Refuse(http.StatusServiceUnavailable, ""))
	}},
	{"failing inside", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1, gittest.Refuse(http.StatusBadGateway, ""))
	}},
	{"lock held", func(r *rounds) { r.server.Inject(gittest.Pushes, 1+r.random.IntN(2), r.repo.HoldLock("main")) }},
	{"tip moved", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1+r.random.IntN(2), gittest.Before(func() { r.commitForeign() }))
	}},
	{"tip moved after the answer was lost", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1, func(w http.ResponseWriter, req *http.Request, git http.Handler) {
			gittest.LoseAnswer(w, req, gittest.After(git, func() { r.commitForeign() }))
		})
	}},
	{"merged after the answer was lost", func(r *rounds) {
		r.server.Inject(gittest.Pushes, 1, func(w http.ResponseWriter, req *http.Request, git http.Handler) {
			gittest.LoseAnswer(w, req, gittest.After(git, func() { r.mergeForeign() }))
		})
	}},
	{"reading fails", func(r *rounds) {
		r.server.Inject(gittest.Reads, 1, gittest.LoseAnswer)
		r.server.Inject(gittest.Reads, 1, gittest.Refuse(http.StatusInternalServerError, ""))
	}},
	{"cache poisoned", func(r *rounds) { r.memory.set(func(m *memory) { m.poison = true }) }},
	{"cache evicted", func(r *rounds) { r.memory.set(func(m *memory) { m.evict = true }) }},
	{"cache emptied", func(r *rounds) { r.memory.set(func(m *memory) { clear(m.objects) }) }},
	{"store down", func(r *rounds) { r.memory.set(func(m *memory) { m.down = true }) }},
	{"tip memory stale", func(r *rounds) {
		if r.passed < 0 {
			return // no branch yet, so nothing to remember of it
		}
		first := r.repo.Git("rev-list", "--max-parents=0", "main")
		r.memory.set(func(m *memory) {
			for key := range m.tips {
				m.tips[key] = first
			}
		})
	}},
}

// TestRoundsOfAccidents pushes change after change while the network, the server, the cache and the writer itself
// fail in turn. Whatever happens, each change is in history exactly once and in order, and the files are right.
func TestRoundsOfAccidents(t *testing.T) {
	server := gittest.NewServer(t)
	repo := server.Repository("cfg.git")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := &rounds{t: t, server: server, repo: repo, memory: newMemory(), random: rand.New(rand.NewPCG(seed, 0)), files: map[string]string{}, passed: -1}
	total := soak(60, 500)
	for number := range total {
		r.play(round{number: number, changes: r.changes(number)})
		if t.Failed() {
			t.Fatalf("after round %d", number)
		}
	}
	r.verify(total)
}

// changes are what a round does: mostly one file, of few, so that files are written, rewritten, removed and made again.
func (r *rounds) changes(number int) []gitcommit.Change {
	r.mu.Lock() // the accident of the round before may not be over
	defer r.mu.Unlock()
	changes := []gitcommit.Change{write("count.yaml", fmt.Sprintf("round: %d\n", number))} // so that no round is nothing
	for range 1 + r.random.IntN(3) {
		path := fmt.Sprintf("apps/%c/file-%d.yaml", 'a'+rune(r.random.IntN(3)), r.random.IntN(4))
		if _, there := r.files[path]; there && r.random.IntN(3) == 0 {
			changes = append(changes, remove(path))
			continue
		}
		changes = append(changes, write(path, fmt.Sprintf("round: %d\n", number)))
	}
	for _, c := range changes {
		if c.Delete {
			delete(r.files, c.Path)
		} else {
			r.files[c.Path] = string(c.Content)
		}
	}
	return changes
}

// play gets a round onto the branch, with writers that are started anew as often as they die.
func (r *rounds) play(round round) {
	accident := accidents[r.random.IntN(len(accidents))]
	accident.set(r)
	killed, twice, refusing := r.random.IntN(4) == 0, r.random.IntN(6) == 0, r.random.IntN(12) == 0
	if refusing {
		r.refused(round)
	}
	for attempt := 0; r.due(round); attempt++ {
		if attempt == 25 {
			r.t.Errorf("round %d, %s: not there after %d writers", round.number, accident.name, attempt)
			return
		}
		var copies sync.WaitGroup
		for range 1 + map[bool]int{true: 1}[twice && attempt == 0] {
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
			if killed && attempt == 0 {
				ctx, cancel = context.WithTimeout(r.t.Context(), time.Duration(r.random.IntN(60))*time.Millisecond)
			}
			copies.Go(func() {
				defer cancel()
				if _, err := r.write(ctx, round); err != nil && ctx.Err() == nil && !expected(err) {
					r.t.Errorf("round %d, %s: %v", round.number, accident.name, err)
				}
			})
		}
		copies.Wait()
		if attempt > 1 { // the accident is over
			r.calm()
		}
	}
	r.calm()
}

func (r *rounds) calm() {
	r.server.ClearFaults()
	r.memory.set(func(m *memory) { m.down, m.poison, m.evict = false, false, false })
}

// expected are the errors that a writer may end with when a server fails: it starts again.
func expected(err error) bool {
	var push *gitcommit.PushError
	return errors.As(err, &push) && push.Outcome.Class == gitcommit.Unknown || strings.HasPrefix(err.Error(), "read refs/heads/main") ||
		strings.HasPrefix(err.Error(), "build on refs/heads/main") || strings.HasPrefix(err.Error(), "look for ")
}

// refused sets a hook that refuses, and wants it to be seen as what it is.
func (r *rounds) refused(round round) {
	r.calm()
	r.repo.Hook("pre-receive", "echo 'frozen' >&2; exit 1")
	defer r.repo.RemoveHook("pre-receive")
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	outcome, err := r.write(ctx, round)
	if outcome.Class != gitcommit.Policy || err == nil || !strings.Contains(err.Error(), "frozen") {
		r.t.Errorf("round %d: a hook refuses: got %+v, %v", round.number, outcome, err)
	}
}

// write is one writer: it settles what earlier ones left, and lands the round unless that settled it.
func (r *rounds) write(ctx context.Context, round round) (gitcommit.Outcome, error) {
	repo, err := gitcommit.Open(gitcommit.Remote{URL: r.repo.URL}, gitcommit.Options{Cache: r.memory, Tips: r.memory})
	if err != nil {
		return gitcommit.Outcome{}, err
	}
	built, outcome, err := repo.Land(ctx, "main", func(ctx context.Context, tip gitcommit.Tip) (*gitcommit.Built, error) {
		if err := r.settle(ctx, repo, tip); err != nil || !r.due(round) {
			return nil, err
		}
		commit := commitOf(fmt.Sprintf("round %d", round.number), round.changes...)
		commit.Committer.When = time.Now().Add(time.Duration(rand.IntN(1e6)) * time.Second) // two copies never make the same commit
		built, err := repo.Build(ctx, tip, []gitcommit.Commit{commit})
		if err == nil {
			r.mu.Lock()
			r.intents = append(r.intents, intent{built.Old, built.New, round.number})
			r.mu.Unlock()
		}
		return built, err
	})
	if err == nil && built != nil && outcome.Class == gitcommit.Landed {
		r.pass(built.New)
	}
	return outcome, err
}

// settle looks for what earlier writers meant to push. An intent whose tip the branch has left without it is dropped;
// while the branch still is at that tip, the push may yet arrive.
func (r *rounds) settle(ctx context.Context, repo *gitcommit.Repository, tip gitcommit.Tip) error {
	r.mu.Lock()
	open := slices.Clone(r.intents)
	r.mu.Unlock()
	for _, i := range open {
		landed, err := repo.Contains(ctx, tip, i.old, i.new)
		switch {
		case err != nil:
			return err
		case landed:
			r.pass(i.new)
		case !tip.Remembered && tip.ID != i.old:
			r.mu.Lock()
			r.intents = slices.DeleteFunc(r.intents, func(each intent) bool { return each == i })
			r.mu.Unlock()
		}
	}
	return nil
}

// pass moves the cursor past the round that a commit was made for.
func (r *rounds) pass(id gitcommit.ObjectID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.intents {
		if i.new == id {
			r.passed = max(r.passed, i.round)
		}
	}
	r.intents = slices.DeleteFunc(r.intents, func(each intent) bool { return each.round <= r.passed })
}

func (r *rounds) due(round round) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed < round.number
}

// commitForeign is another tool's commit; it must stay.
func (r *rounds) commitForeign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foreign++
	path := fmt.Sprintf("foreign/%d", r.foreign%5)
	r.repo.Commit("main", fmt.Sprintf("foreign %d", r.foreign), map[string]string{path: fmt.Sprintln(r.foreign)})
	r.files[path] = fmt.Sprintln(r.foreign)
}

// mergeForeign is a person who pulls before a push: what we have pushed becomes the second parent of a merge.
func (r *rounds) mergeForeign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := r.repo.Tip("main")
	before, err := r.repo.TryGit("rev-parse", "--verify", "--quiet", ours+"~1")
	if err != nil || !strings.HasPrefix(r.repo.Git("log", "-1", "--format=%s", ours), "round ") {
		return // there is nothing of ours to pull, or nothing before it
	}
	theirs := r.repo.Git("commit-tree", "-p", before, "-m", fmt.Sprintf("foreign %d", r.foreign+1), before+"^{tree}")
	merge := r.repo.Git("commit-tree", "-p", theirs, "-p", ours, "-m", fmt.Sprintf("foreign %d", r.foreign+2), ours+"^{tree}")
	if _, err := r.repo.TryGit("update-ref", "refs/heads/main", merge, ours); err == nil { // else another copy was faster
		r.foreign += 2
	}
}

func (r *rounds) verify(total int) {
	r.server.Rest()
	var ours, theirs []string
	for subject := range strings.SplitSeq(r.repo.Git("log", "--topo-order", "--reverse", "--format=%s", "main"), "\n") {
		if strings.HasPrefix(subject, "round ") {
			ours = append(ours, subject)
		} else {
			theirs = append(theirs, subject)
		}
	}
	var want, wantTheirs []string
	for i := range total {
		want = append(want, fmt.Sprintf("round %d", i))
	}
	for i := range r.foreign {
		wantTheirs = append(wantTheirs, fmt.Sprintf("foreign %d", i+1))
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		r.t.Errorf("our commits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTheirs, theirs); diff != "" {
		r.t.Errorf("foreign commits (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(r.repo.Files("main"))) {
		got[path] = r.repo.Read("main", path)
	}
	if diff := cmp.Diff(r.files, got); diff != "" {
		r.t.Errorf("files (-want +got):\n%s", diff)
	}
	r.t.Logf("%d rounds, %d foreign commits", total, r.foreign)
}
