package gitcommit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Limits of Land. They bound work, not time: the context's deadline does that.
const (
	maxRebuilds = 32               // lost races and the like
	maxRepeats  = 8                // of the same push
	maxPause    = 2 * time.Second  // between attempts
	maxObeyed   = 30 * time.Second // of a server's Retry-After; asked for longer, Land gives up and says so
)

// Land gets commits onto a branch: prepare builds them on the tip it is given, Land pushes them, and on a lost race it
// starts anew on the new tip, with pauses that grow and vary. prepare is called once for each tip, so it is the place to
// settle what is unsettled, to leave out what is done, and to store what is about to be pushed. When it returns nil or
// an empty Built, there is nothing to do.
//
// The first tip may be a remembered one (see Tip.Remembered). Land never repeats a push that a rule of the server
// refused. It returns what it pushed last, nil if nothing was to be done.
func (r *Repository) Land(ctx context.Context, branch string, prepare func(context.Context, Tip) (*Built, error)) (*Built, Outcome, error) {
	tip, known := r.RememberedTip(ctx, branch)
	var err error
	anew := false // everything was read anew, because the server misses or misread something
	for attempt := 0; attempt < maxRebuilds; attempt++ {
		if !known {
			if tip, err = r.Tip(ctx, branch); err != nil {
				return nil, Outcome{}, err
			}
		}
		known = false
		built, err := prepare(ctx, tip)
		switch {
		case errors.Is(err, ErrGone):
			continue // the branch was rewritten since its tip was read
		case err != nil:
			return nil, Outcome{}, err
		case (built == nil || built.Empty()) && tip.Remembered:
			continue // nothing to do on a tip that may be stale says nothing
		case built == nil || built.Empty():
			return nil, Outcome{Class: Landed}, nil
		}
		outcome, err := r.pushUntilAnswered(ctx, built)
		if err != nil || outcome.Class == Landed {
			return built, outcome, err
		}
		if outcome.Class == MissingObjects || outcome.Class == Damaged {
			if anew {
				return built, outcome, r.refused(built, outcome, "even with everything read anew")
			}
			anew = true
			r.forget()
			continue
		}
		if err := pause(ctx, attempt, 0); err != nil {
			return built, outcome, err
		}
		if tip, err = r.Tip(ctx, branch); err != nil {
			return built, outcome, err
		}
		known = true
		// A race that was lost to our own push, which something on the way sent twice, was won.
		landed, err := r.Contains(ctx, tip, built.Old, built.New)
		if err != nil {
			return built, outcome, err
		}
		if landed {
			return built, Outcome{Class: Landed, Settled: true}, nil
		}
	}
	return nil, Outcome{Class: LostRace}, fmt.Errorf("push refs/heads/%s to %s: the branch moved each of %d times", branch, r.endpoint.HostLabel(), maxRebuilds)
}

// pushUntilAnswered repeats a push for as long as repeating the same bytes may help.
func (r *Repository) pushUntilAnswered(ctx context.Context, built *Built) (Outcome, error) {
	for attempt := 0; ; attempt++ {
		outcome, err := r.Push(ctx, built)
		switch outcome.Class {
		case RetrySameTip:
		case Damaged:
			if attempt > 0 {
				return outcome, err
			}
		case Throttled, ServerTrouble, Unknown:
			if outcome.RetryAfter > maxObeyed {
				return outcome, err
			}
		default:
			return outcome, err
		}
		if attempt+1 == maxRepeats {
			if err == nil {
				err = r.refused(built, outcome, "again and again")
			}
			return outcome, err
		}
		if cause := pause(ctx, attempt, outcome.RetryAfter); cause != nil {
			return outcome, errors.Join(err, cause)
		}
	}
}

// pause waits before an attempt: at least what the server asked for, else a random part of a time that doubles.
func pause(ctx context.Context, attempt int, atLeast time.Duration) error {
	most := min(maxPause, 25*time.Millisecond<<min(attempt, 10))
	timer := time.NewTimer(atLeast + rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
