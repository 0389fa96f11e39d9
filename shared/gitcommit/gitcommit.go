// Package gitcommit commits to a branch without a clone: it reads the branch's tip and the trees on the paths
// that change, builds blobs, trees and commits in memory, and pushes them as one small pack in one request. Its
// cost does not grow with the repository.
//
// The push names the tip it was built on, and the server compares and swaps: that, and nothing else, keeps
// concurrent writers right. Leases and caches only save work.
//
// It never reads or writes a working tree: no filter, attribute or line-end rule of the repository touches what it writes.
package gitcommit

import (
	"context"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// The object model's types, under the names that callers of this package use.
type (
	// ObjectID names an object of a SHA-1 or SHA-256 repository; it is comparable, and zero for "no object".
	ObjectID = gitobject.ID
	// Signature is a name, an e-mail address and a time.
	Signature = gitobject.Signature
	// Mode is the mode of a tree's entry.
	Mode = gitobject.Mode
)

// Change is what one commit does to one file.
type Change struct {
	// Path is relative to the repository's root, with slashes: apps/shop/web.yaml.
	Path string
	// Content is the file's whole new content; it is written as it is.
	Content []byte
	// Delete removes the file instead. Removing a file that is not there changes nothing.
	Delete bool
}

// Commit is a commit to be made. Of several changes to one path the last one counts.
type Commit struct {
	Author    Signature
	Committer Signature
	Message   string
	Changes   []Change
	// Under, when set, is a directory that every change must lie in; Build refuses one outside.
	Under string
	// Signer signs the commit; nil leaves it unsigned.
	Signer Signer
}

// Signer signs commits.
type Signer interface {
	// Sign returns the armored signature of a commit's content.
	Sign(content []byte) (string, error)
}

// Tip is where a branch stood when it was read.
type Tip struct {
	Branch string   // without refs/heads/
	ID     ObjectID // zero: the branch does not exist yet
	// Remembered says that the tip was not read from the server but remembered; the branch may have moved since.
	Remembered bool
}

// Entry is a file in the repository.
type Entry struct {
	ID   ObjectID
	Mode Mode
}

// ObjectCache keeps commits and trees between runs, by the object's id in hexadecimal. It may lose anything at any
// time: a miss costs one request. Values are git's own form of an object ("type size\0content") and are verified by
// hashing when they come back, so a cache can be wrong but not lie. repository is an opaque name without secrets; an
// object is only ever asked for under the name it was put under.
type ObjectCache interface {
	// Get returns those of the objects that the cache has.
	Get(ctx context.Context, repository string, ids []string) (map[string][]byte, error)
	Put(ctx context.Context, repository string, objects map[string][]byte) error
}

// TipMemory remembers where a branch was last seen, so that a push can be tried without asking first. A stale or
// lost tip costs one request: the push's compare-and-swap fails, and the tip is read.
type TipMemory interface {
	// RememberedTip is the tip's id in hexadecimal, and empty when nothing is remembered.
	RememberedTip(ctx context.Context, repository, branch string) (string, error)
	RememberTip(ctx context.Context, repository, branch, tip string) error
}

// Built is a chain of commits on a tip, ready to be pushed. Pushing it twice is harmless: its ids do not change.
type Built struct {
	Branch string
	Old    ObjectID // the tip it stands on; zero creates the branch
	New    ObjectID // equal to Old when no commit changed anything
	// Commits are the ids of the commits asked for, in order; zero for one that was left out because it changes nothing.
	Commits []ObjectID

	pack   []gitobject.Object
	unsure bool // an earlier push of it ended without an answer
}

// Empty says that there is nothing to push.
func (b *Built) Empty() bool { return b.New == b.Old }

// Class is what the answer to a push means for whoever pushed.
type Class string

// The classes of outcomes.
const (
	Landed         Class = "landed"          // the branch is at, or has passed, the new commit
	LostRace       Class = "lost-race"       // the branch moved: rebuild on its tip
	RetrySameTip   Class = "retry-same-tip"  // the branch did not move: wait, push the same again
	ReResolve      Class = "re-resolve"      // refused without a reason that tells the two apart: read the tip
	Policy         Class = "policy"          // a rule of the server refuses; repeating it does not help
	MissingObjects Class = "missing-objects" // the server lacks a tree we took for known: rebuild without the cache
	Damaged        Class = "damaged"         // the pack arrived damaged: push the same once more
	ServerTrouble  Class = "server-trouble"  // the server's disk or process failed: later
	Auth           Class = "auth"            // the credentials do not open it
	Configuration  Class = "configuration"   // no repository there, or not one for pushing
	TooLarge       Class = "too-large"       // the server takes no request this large
	Throttled      Class = "throttled"       // come back after RetryAfter
	Unknown        Class = "unknown"         // no answer, and the tip could not be read either
)

// Outcome is what came of a push.
type Outcome struct {
	Class Class
	// Words are the server's, for people: printable, bounded, without secrets.
	Words string
	// TipHint is the branch's tip where the server's refusal names it.
	TipHint ObjectID
	// RetryAfter is how long the server asks to be left alone.
	RetryAfter time.Duration
	// Settled says that no answer came and the tip decided.
	Settled bool
	// Unsure says that an earlier push of the same commits got no answer: they may land yet, whatever this one came to.
	Unsure bool
}
