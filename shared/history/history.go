// Package history turns changes whose author is settled into commits: which changes share one, whose name is on
// it, what its message says, and how that message is read back. It is pure; committing is gitcommit's.
//
// Every change leaves one trailer with its evidence, in the message's last paragraph:
//
//	Actor: alice, impersonated by ci-bot
//	Change: update apps/deployments shop/web rv=1234 by=exact_user audit=6f1c…
//
// Trailers are for readers. Nothing that Tidemark does depends on them, as anyone who may push can write them.
package history

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gitcommit"
)

// Verb is what happened to the object, and so to its file.
type Verb string

// The verbs of a change.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Change is one settled change of one object.
type Change struct {
	Verb Verb
	schema.GroupResource
	Namespace, Name string
	ResourceVersion string

	Path    string // the object's file, relative to the root of the repository
	Content []byte // the file's new content; not looked at when Verb is Delete

	Time     time.Time // when it happened; zero where nothing tells
	Actor    *Actor    // nil: nobody could be named
	Evidence Evidence
	// Replayed marks a difference between cluster and git that no watch delivered. It is the committer's.
	Replayed bool
	// ByCommitter gives the commit the committer's name though the actor is known (ignoreActors).
	ByCommitter bool
	// Request is the CommitRequest that asked for this change to be committed.
	Request *Request
}

// Actor is who made a change, as the API server knew them.
type Actor struct {
	Username       string
	DisplayName    string // from the identity's extras; used when it is safe to
	Email          string // the same
	ImpersonatedBy string // the real caller, when there was impersonation
}

// Evidence is why the actor is believed to be the one.
type Evidence struct {
	Class   string // exact_user, exact_serviceaccount, exact_deletecollection_item, weak, absent
	Tier    string // which weaker evidence it was
	AuditID string
	Why     string // for absent: what was missing, in one word
}

// Request is a CommitRequest: the author's own words for a commit.
type Request struct {
	Namespace, Name string
	Message         string
}

// Grouping is which changes share a commit.
type Grouping string

// The groupings of a GitTarget.
const (
	// PerAuthor puts consecutive changes of one author into one commit, with at most one change per object.
	PerAuthor Grouping = "PerAuthor"
	// PerChange makes a commit of each change.
	PerChange Grouping = "PerChange"
)

// Policy is what a GitTarget says about commits.
type Policy struct {
	Grouping       Grouping // empty means PerAuthor
	CommitterName  string
	CommitterEmail string
	// Message is the template of the first line; empty means "{summary}", which is `update configmaps shop/prices and 2 more`.
	// It may also hold {count}, {author} and, of the first change, {verb}, {resource}, {namespace} and {name}; anything else
	// stays as it is. A CommitRequest's message goes before it.
	Message string
}

// Commit is a commit to be made of some of the changes.
type Commit struct {
	gitcommit.Commit
	Covers []int // the changes it holds, as indices into what was given
}

// Commits makes commits of settled changes, in their order. Replayed changes are put into one reconcile commit
// wherever they stand side by side, whatever the grouping. now is the time of committing.
func Commits(changes []Change, policy Policy, now time.Time) []Commit {
	var out []Commit
	for start := 0; start < len(changes); {
		end := start + 1
		paths := map[string]bool{changes[start].Path: true}
		for end < len(changes) && together(changes[start], changes[end], policy) && !paths[changes[end].Path] {
			paths[changes[end].Path] = true
			end++
		}
		out = append(out, commit(changes[start:end], start, policy, now))
		start = end
	}
	return out
}

// together says whether two changes may share a commit.
func together(a, b Change, policy Policy) bool {
	if a.Replayed || b.Replayed {
		return a.Replayed && b.Replayed
	}
	if policy.Grouping == PerChange || a.ByCommitter != b.ByCommitter || !same(a.Request, b.Request) {
		return false
	}
	return same(a.Actor, b.Actor)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func commit(changes []Change, first int, policy Policy, now time.Time) Commit {
	committer := Committer(policy, now)
	c := Commit{Commit: gitcommit.Commit{Author: author(changes, committer), Committer: committer, Message: message(changes, policy)}}
	for i, ch := range changes {
		c.Changes = append(c.Changes, gitcommit.Change{Path: ch.Path, Content: ch.Content, Delete: ch.Verb == Delete})
		if ch.Verb == Delete {
			c.Changes[i].Content = nil
		}
		c.Covers = append(c.Covers, first+i)
	}
	return c
}

// author is the actor of the changes, at the time of the latest one.
func author(changes []Change, committer gitcommit.Signature) gitcommit.Signature {
	sig := committer
	first := changes[0]
	switch {
	case first.Replayed || first.ByCommitter:
	case first.Actor == nil:
		sig.Name, sig.Email = UnresolvedName, unresolvedEmail
	default:
		sig.Name, sig.Email = identity(*first.Actor)
		if sig.Name == committer.Name && sig.Email != committer.Email {
			sig.Name = plainName(first.Actor.Username)
		}
	}
	var latest time.Time
	for _, ch := range changes {
		if ch.Time.After(latest) {
			latest = ch.Time
		}
	}
	if !latest.IsZero() {
		sig.When = latest.UTC()
	}
	return sig
}
