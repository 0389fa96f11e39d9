// accuracy replays recorded sessions into the functions over a real Redis and prints how well authors were named. It
// fails when a single name is wrong.
//
//	accuracy [-grace 45s] [-skew 0s] [-disorder 0] [-cut 0] [-v] DIR…
//
// A DIR is a session or holds sessions. With -disorder each is replayed that many times more, its audit batches split,
// merged, doubled and up to 30 s early or late. With -cut each is replayed without the bodies of this share of its audit
// events, 1 being all.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/tidemark-dev/tidemark/functions/auditingest"
	"github.com/tidemark-dev/tidemark/functions/authorcapture"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/accuracy"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

func main() {
	grace := flag.Duration("grace", 45*time.Second, "how long a change waits for its author, in the session's time")
	skew := flag.Duration("skew", fromEnvironment("AUDIT_CLOCK_SKEW"), "what the clocks of the sessions' API servers may differ by; AUDIT_CLOCK_SKEW says the same")
	disorder := flag.Int("disorder", 0, "how many times to replay each session in disorder as well")
	cut := flag.Float64("cut", 0, "the share of audit events whose bodies to leave out")
	verbose := flag.Bool("v", false, "print every change")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), *grace, *skew, *disorder, *cut, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// fromEnvironment is a duration that the functions read too.
func fromEnvironment(name string) time.Duration {
	d, err := time.ParseDuration(os.Getenv(name))
	if err != nil {
		return 0
	}
	return d
}

func run(ctx context.Context, dirs []string, grace, skew time.Duration, disorder int, cut float64, verbose bool) error {
	sessions, err := find(dirs)
	if err != nil {
		return err
	}
	stage, err := newStage(skew)
	if err != nil {
		return err
	}
	var all []accuracy.Outcome
	for n, session := range sessions {
		for seed := range disorder + 1 {
			rng := rand.New(rand.NewSource(int64(seed)))
			replayed := session
			if cut > 0 {
				if replayed, err = accuracy.Cut(session, rng, cut); err != nil {
					return err
				}
			}
			if seed > 0 {
				if replayed, err = accuracy.Disorder(replayed, rng, lateness); err != nil {
					return err
				}
			}
			stage.options.Grace, stage.options.Route = grace, fmt.Sprintf("session-%d-%d", n, seed)
			outcomes, err := accuracy.Replay(ctx, replayed, stage.options)
			if err != nil {
				return err
			}
			total := accuracy.Total(outcomes)
			if seed == 0 || total[accuracy.Wrong] > 0 {
				fmt.Printf("%s: %d changes, %d right, %d wrong\n", session.Name, len(outcomes), total[accuracy.Right], total[accuracy.Wrong])
			}
			if verbose {
				for i := range outcomes {
					fmt.Println(outcomes[i].String())
				}
			}
			all = append(all, outcomes...)
		}
	}
	fmt.Println()
	if err := accuracy.Write(os.Stdout, all); err != nil {
		return err
	}
	total := accuracy.Total(all)
	fmt.Printf("\n%s\n", total)
	if wrong := total[accuracy.Wrong]; wrong > 0 {
		return fmt.Errorf("%d wrong", wrong)
	}
	return nil
}

// lateness is how much earlier or later than recorded a batch comes in disorder.
const lateness = 30 * time.Second

// find loads the sessions of the folders, in order.
func find(dirs []string) ([]*replay.Session, error) {
	var out []*replay.Session
	for _, dir := range dirs {
		inside, err := filepath.Glob(filepath.Join(dir, "*", "watch"))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, "watch")); err == nil {
			inside = []string{filepath.Join(dir, "watch")}
		}
		sort.Strings(inside)
		for _, watch := range inside {
			session, err := replay.Load(filepath.Dir(watch))
			if err != nil {
				return nil, err
			}
			if len(session.Truth) == 0 {
				return nil, fmt.Errorf("session %s has no truth.jsonl", session.Name)
			}
			out = append(out, session)
		}
		if len(inside) == 0 {
			return nil, fmt.Errorf("%s is no session and holds none: no watch folder", dir)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no sessions were given")
	}
	return out, nil
}

// stage is what sessions are replayed into.
type stage struct{ options accuracy.Options }

func newStage(skew time.Duration) (*stage, error) {
	addr, err := valkeytest.Start()
	if err != nil {
		return nil, fmt.Errorf("a real redis is needed: %w", err)
	}
	prefix := fmt.Sprintf("accuracy-%d-%d", os.Getpid(), time.Now().UnixNano())
	for name, value := range map[string]string{
		"REDIS_ADDR": addr, "REDIS_KEY_PREFIX": prefix, "AUDIT_ALLOW_ANONYMOUS": "true", "AUDIT_TOKENS": "", "AUDIT_CLOCK_SKEW": skew.String(),
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	ingest, err := auditingest.FromEnv()
	if err != nil {
		return nil, err
	}
	admission, err := authorcapture.FromEnv()
	if err != nil {
		return nil, err
	}
	store, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: addr, AuthValue: os.Getenv("REDIS_PASSWORD"), KeyPrefix: prefix})
	if err != nil {
		return nil, err
	}
	return &stage{accuracy.Options{Ingest: ingest, Admission: admission, Index: store.AttributionIndex(0).WithClockSkew(skew)}}, nil
}
