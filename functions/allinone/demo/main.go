// Command demo shows Tidemark at work on a machine with git and nothing else: it plays a recorded session of a
// cluster as its API server, serves an empty repository with git's own server, lets the all-in-one work between the
// two, and prints the history that comes of it, checked against what really happened.
//
//	demo -program bin/allinone [-session DIR] [-within 25s] [-all] [-keep]
//
// It ends with status 1 when a name is wrong, or a change is missing, twice or out of order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
)

type options struct {
	program string
	session string
	within  time.Duration
	all     bool
	keep    bool
	guard   func(git http.Handler) http.Handler // stands before the repositories; nil lets everybody in
}

func main() {
	var o options
	flag.StringVar(&o.program, "program", "bin/allinone", "the all-in-one to run")
	flag.StringVar(&o.session, "session", "events/samples/sessions/story", "folder of a recorded session")
	flag.DurationVar(&o.within, "within", 25*time.Second, "play a longer session faster, so that it takes this long")
	flag.BoolVar(&o.all, "all", false, "mirror also what only controllers write (Pods, ReplicaSets, …)")
	flag.BoolVar(&o.keep, "keep", false, "keep the working folder, with the repository and the program's log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	session, err := replay.Load(o.session)
	if err != nil {
		return err
	}
	s, err := newStage(session, o)
	if err != nil {
		return err
	}
	defer func() { s.close(err != nil || o.keep) }()
	return s.perform(ctx)
}

// perform is the demonstration, from the first line to the verdict.
func (s *stage) perform(ctx context.Context) error {
	fmt.Printf("A recorded cluster session, %s: %d requests by people and robots in %s.\n", s.session.Name, len(s.session.Steps), s.session.End().Round(time.Second))
	fmt.Printf("No cluster, no Redis: %s plays its API server, and %s is an empty repository.\n\n", s.apiURL, s.repositoryURL)
	if err := s.start(ctx); err != nil {
		return err
	}
	v, err := s.play(ctx)
	if err != nil {
		return err
	}
	if err := s.printHistory(ctx); err != nil {
		return err
	}
	asked := s.askWho(ctx)
	if s.beforeEnd != nil {
		s.beforeEnd()
	}
	if err := s.stop(); err != nil {
		return err
	}
	return errors.Join(conclude(v), asked)
}

// conclude prints the verdict; an unsound one is an error.
func conclude(v *verdict.Verdict) error {
	for _, open := range v.Open {
		fmt.Println("nobody is named: " + open)
	}
	for _, fault := range v.Faults() {
		fmt.Println(fault)
	}
	fmt.Printf("%d changes, %d authors, %d wrong\n", v.Changes, len(v.Authors), len(v.Wrong))
	if !v.Sound() {
		return fmt.Errorf("the history is not what happened: %d faults", len(v.Faults()))
	}
	if v.Unchecked > 0 {
		fmt.Printf("%d more changes are in the history; the session does not tell whose they were.\n", v.Unchecked)
	}
	fmt.Printf("Checked against what really happened: %s. And one of three watched repositories moved: one notification.\n", strings.Join(v.Authors, ", "))
	return nil
}
