package gitcommit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

// Push moves the branch from Built.Old to Built.New with one request, if it still is at Built.Old.
//
// The outcome tells what became of it; the error is not nil exactly when the class is neither Landed nor one that a
// rebuild cures (LostRace, RetrySameTip, ReResolve, MissingObjects, Damaged). When no answer comes, the branch's
// tip decides: Landed if the commit is on the branch, LostRace if the branch went elsewhere, RetrySameTip if it
// did not move. Only when the tip cannot be read either is the class Unknown.
func (r *Repository) Push(ctx context.Context, built *Built) (Outcome, error) {
	if built.Empty() {
		return Outcome{Class: Landed}, nil
	}
	earlier := built.unsure
	outcome, err := r.send(ctx, built)
	settle := earlier && (outcome.Class == LostRace || outcome.Class == ReResolve)
	// Who was throttled by something in front of the server cannot be sure either.
	built.unsure = earlier || outcome.Class == Unknown || outcome.Class == Throttled
	switch {
	case outcome.Class == LostRace && outcome.TipHint == built.New:
		outcome.Class = Landed // the very same push got there before, and its answer was lost
	case settle || outcome.Class == Unknown:
		outcome, err = r.settle(ctx, built, outcome, err)
	}
	outcome.Unsure = earlier
	r.learn(ctx, built, outcome)
	if err == nil && !outcome.curable() {
		err = errors.New("refused")
	}
	if err != nil {
		err = &PushError{Outcome: outcome, Branch: built.Branch, Host: r.endpoint.HostLabel(), err: err}
	}
	return outcome, err
}

func (r *Repository) refused(built *Built, outcome Outcome, why string) error {
	return &PushError{Outcome: outcome, Branch: built.Branch, Host: r.endpoint.HostLabel(), err: errors.New(why)}
}

// PushError is a push that a rebuild does not cure.
type PushError struct {
	Outcome Outcome
	Branch  string
	Host    string
	err     error
}

func (e *PushError) Error() string {
	text := fmt.Sprintf("push refs/heads/%s to %s: %s: %v", e.Branch, e.Host, e.Outcome.Class, e.err)
	if e.Outcome.Words != "" {
		text += ": " + e.Outcome.Words
	}
	return text
}

func (e *PushError) Unwrap() error { return e.err }

func (o Outcome) curable() bool {
	switch o.Class {
	case Landed, LostRace, RetrySameTip, ReResolve, MissingObjects, Damaged:
		return true
	}
	return false
}

func (r *Repository) send(ctx context.Context, built *Built) (Outcome, error) {
	format := built.New.Format()
	pack, err := gitobject.EncodePack(format, built.pack)
	if err != nil {
		return Outcome{Class: Configuration}, err
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	report, err := r.pool.Push(ctx, r.endpoint, r.credentials, gitwire.PushRequest{Format: format,
		Ref: "refs/heads/" + built.Branch, Old: built.Old, New: built.New, Pack: pack})
	return classify(report, err, time.Now()), err
}

// settleTimeout is how long the tip is asked for when a push got no answer; the caller's own context may already be over.
const settleTimeout = 10 * time.Second

// settle decides by the branch what a push without an answer came to.
func (r *Repository) settle(ctx context.Context, built *Built, outcome Outcome, cause error) (Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	tip, err := r.Tip(ctx, built.Branch)
	if err != nil {
		return Outcome{Class: Unknown, Words: outcome.Words}, errors.Join(cause, err)
	}
	settled := Outcome{Words: outcome.Words, TipHint: tip.ID, Settled: true}
	switch tip.ID {
	case built.New:
		settled.Class = Landed
		return settled, nil
	case built.Old:
		settled.Class = RetrySameTip // it may still land; pushing the same again is harmless then
		return settled, nil
	}
	contains, err := r.Contains(ctx, tip, built.Old, built.New)
	switch {
	case err != nil:
		return Outcome{Class: Unknown, Words: outcome.Words}, errors.Join(cause, err)
	case contains:
		settled.Class = Landed
	default:
		settled.Class = LostRace
	}
	return settled, nil
}

// learn keeps what a push taught: its objects are on the server now, or something that was taken for known is not.
func (r *Repository) learn(ctx context.Context, built *Built, outcome Outcome) {
	switch outcome.Class {
	case Landed:
		kept := map[ObjectID]gitobject.Object{}
		for _, o := range built.pack {
			if o.Type != gitobject.BlobType {
				kept[o.ID] = o
			}
		}
		r.remember(kept)
		r.toCache(ctx, kept)
		if !outcome.Settled { // who settles has read the tip, which may be further
			r.rememberTip(ctx, built.Branch, built.New)
		}
	case LostRace:
		r.rememberTip(ctx, built.Branch, outcome.TipHint)
	case MissingObjects:
		r.forget()
	}
}

// forget makes the next Build read everything from the server.
func (r *Repository) forget() {
	r.distrust.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = map[ObjectID]gitobject.Object{}
}
