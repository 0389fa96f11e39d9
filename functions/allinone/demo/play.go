package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
)

// play lets the session happen, shows it, and judges the history when it is complete, or does not become so.
func (s *stage) play(ctx context.Context) (*verdict.Verdict, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	player := &replay.Player{
		Session: s.session, Clock: s.clock, Client: &http.Client{Timeout: 10 * time.Second},
		AuditURL: s.programURL + "/audit-webhook", AuditToken: s.token, Route: route,
		AdmissionURL: s.programURL + "/validate-operator-types", AdmissionToken: s.token,
	}
	s.clock.Run(s.speed)
	played := make(chan error, 1)
	go func() { played <- player.Play(ctx) }()
	go s.holdForNewTypes(ctx)

	show := &progress{stage: s}
	var verdict *verdict.Verdict
	playing, pushed := true, false
	deadline, judged := time.Time{}, 0
	err := s.until(ctx, 10*time.Minute, "the history is complete", func(ctx context.Context) (bool, error) {
		if playing {
			select {
			case err := <-played:
				if err != nil {
					return false, err
				}
				playing = false
			default:
			}
		}
		entries, err := s.log(ctx)
		if err != nil {
			return false, err
		}
		if over := !playing && s.clock.Now() >= s.session.End(); over && (deadline.IsZero() || len(entries) > judged) {
			deadline = time.Now().Add(s.grace + 20*time.Second) // from the newest commit
		}
		show.upTo(s.clock.Now(), entries)
		if !pushed && s.clock.Now() > s.session.End()/2 {
			pushed = true
			fmt.Printf("%5.1fs  somebody pushes to the %s repository\n", s.clock.Now().Seconds(), s.fleet.moved)
			if err := s.fleet.commit(s.fleet.moved, "second"); err != nil {
				return false, err
			}
		}
		if deadline.IsZero() {
			return false, nil
		}
		told, err := s.fleet.told()
		if err != nil {
			return false, err
		}
		if verdict == nil || len(entries) > judged {
			judged = len(entries)
			if verdict, err = s.judge(ctx, entries); err != nil {
				return false, err
			}
		}
		return verdict.Sound() && told || time.Now().After(deadline), nil
	})
	if told, _ := s.fleet.told(); err == nil && !told {
		err = fmt.Errorf("refsweep did not tell that %s moved", s.fleet.moved)
	}
	return verdict, err
}

// holdForNewTypes stops the clock when a custom type begins to be served, until the program watches it. People leave
// seconds between a type and its first object; with time compressed there would be none.
func (s *stage) holdForNewTypes(ctx context.Context) {
	for _, w := range s.session.Watches {
		if w.ServedFrom == 0 || !slices.Contains(s.resources, w.GroupResource()) || s.clock.Wait(ctx, w.ServedFrom) != nil {
			continue
		}
		s.clock.Run(0)
		for patience := time.Now().Add(30 * time.Second); time.Now().Before(patience) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if s.api.Resumed(w.GroupResource().String()) {
				break
			}
		}
		s.clock.Run(s.speed)
	}
}

// log is the history so far; before the first push there is none.
func (s *stage) log(ctx context.Context) ([]verdict.Entry, error) {
	if _, err := os.Stat(s.repository + "/refs/heads/" + branch); err != nil {
		return nil, nil
	}
	return verdict.Log(ctx, s.repository, branch)
}

func (s *stage) judge(ctx context.Context, entries []verdict.Entry) (*verdict.Verdict, error) {
	files := map[string][]byte{}
	if len(entries) > 0 {
		var err error
		if files, err = verdict.Files(ctx, s.repository, entries[len(entries)-1].ID); err != nil {
			return nil, err
		}
	}
	return verdict.Judge(s.expected, entries, files, func(file string) bool { return file != path+"/.tidemark" }), nil
}

// progress prints what people do in the session, and the commits that come of it.
type progress struct {
	*stage
	steps, commits int
}

func (p *progress) upTo(now time.Duration, entries []verdict.Entry) {
	for ; p.steps < len(p.session.Steps); p.steps++ {
		step := p.session.Steps[p.steps]
		at := time.Duration(step.At) * time.Millisecond
		if at > now {
			break
		}
		fmt.Printf("%5.1fs  %s\n", at.Seconds(), step.Say)
	}
	for ; p.commits < len(entries); p.commits++ {
		e := entries[p.commits]
		name, _, _ := strings.Cut(e.Author, " <")
		subject, _, _ := strings.Cut(e.Message, "\n")
		fmt.Printf("            %.7s  %-16s %s\n", e.ID, name, subject)
	}
	p.fleet.show()
}

// printHistory lets git itself show the history, with authors, committer and evidence. The long list of what was
// there before the session is cut.
func (s *stage) printHistory(ctx context.Context) error {
	if entries, err := s.log(ctx); err != nil || len(entries) == 0 {
		fmt.Println("\nNothing was committed.")
		return err
	}
	args := []string{"--no-pager", "log", "--first-parent", "--date=iso", "--format=commit %h%nAuthor: %an <%ae>, %ad%nCommit: %cn <%ce>%n%n    %s%n%n%w(0,4,4)%(trailers:only)", branch}
	fmt.Printf("\n$ git log --first-parent %s\n\n", branch)
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.repository}, args...)...)
	cmd.Env = append(os.Environ(), backend.Environment()...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	listed := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasSuffix(line, " by="+history.ByReplay+"\n") {
			if listed > maxListed {
				fmt.Printf("    … and %d more\n", listed-maxListed)
			}
			listed = 0
		} else if listed++; listed > maxListed {
			continue
		}
		fmt.Print(line)
	}
	return nil
}

// maxListed is how many changes of a reconcile commit are printed.
const maxListed = 3
