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

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
)

// play lets the session happen, shows it, and judges the history when it is complete, or does not become so.
func (s *stage) play(ctx context.Context) (*verdict.Verdict, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	player := &replay.Player{
		Session: s.session, Clock: s.clock, Client: &http.Client{Timeout: 10 * time.Second},
		AuditURL: s.programURL + "/audit-webhook", AuditToken: token, Route: route,
		AdmissionURL: s.programURL + "/validate-operator-types", AdmissionToken: token,
	}
	s.clock.Run(s.speed)
	played := make(chan error, 1)
	go func() { played <- player.Play(ctx) }()
	go s.holdForNewTypes(ctx)

	show := &progress{stage: s}
	var verdict *verdict.Verdict
	playing := true
	deadline := time.Time{}
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
		if !playing && s.clock.Now() >= s.session.End() && deadline.IsZero() {
			deadline = time.Now().Add(grace + 15*time.Second)
		}
		entries, err := s.log(ctx)
		if err != nil {
			return false, err
		}
		show.upTo(s.clock.Now(), entries)
		if deadline.IsZero() {
			return false, nil
		}
		verdict, err = s.judge(ctx, entries)
		return err != nil || verdict.Sound() || time.Now().After(deadline), err
	})
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
		for patience := time.Now().Add(10 * time.Second); time.Now().Before(patience) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if s.api.Requests()["watch "+w.GroupResource().String()] > 0 {
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
		if files, err = verdict.Files(ctx, s.repository, branch); err != nil {
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
}

// printHistory lets git itself show the history, with authors, committer and evidence.
func (s *stage) printHistory(ctx context.Context) error {
	format := "%C(auto)%h%C(reset) %an <%ae>, committed by %cn%n        %s%n%w(0,8,8)%(trailers:only)"
	color := "--color=never"
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		color = "--color=always"
	}
	fmt.Printf("\n$ git log --first-parent %s\n\n", branch)
	cmd := exec.CommandContext(ctx, "git", "-C", s.repository, "--no-pager", "log", "--first-parent", color, "--format="+format, branch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	fmt.Println()
	return nil
}
