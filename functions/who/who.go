// Package who answers who changed an object: its last changes with author, class, evidence and commit, from the
// branches that mirror it, and who wrote the version that the cluster has now, from the facts that are still live.
//
// It only reads. What it tells of history is what the commits say of themselves, so it is as true as the branch is
// protected: whoever may push can write a trailer.
package who

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/telemetry"
)

// Path is where questions are asked.
const Path = "/who"

// Authors answers who wrote versions, in one round trip. An error means that it is not known now.
type Authors interface {
	LookupAuthors(ctx context.Context, queries []queue.AuthorQuery) ([]queue.AuthorResolution, error)
}

// Deps are what the function works with.
type Deps struct {
	Cluster   *kube.Client
	Authors   Authors
	Pool      *gitwire.Pool
	Telemetry *telemetry.Telemetry
}

type function struct {
	cfg  Config
	deps Deps
}

// New is the function.
func New(cfg Config, deps Deps) http.Handler { return &function{cfg: cfg, deps: deps} }

// Question names an object.
type Question struct {
	Resource  string `json:"resource"` // "configmaps", "apps/deployments" or "deployments.apps"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Answer is what is known of the object.
type Answer struct {
	Question
	// Targets are those that mirror the object; without any there is no history to tell.
	Targets []string `json:"targets"`
	// Changes are the last ones, the newest first: in the order of the branch, which for one object is the cluster's.
	// Those of several branches are put together by their times.
	Changes []Change `json:"changes"`
	// Live is the version that the cluster has now; absent when the object is gone or cannot be read.
	Live *Live `json:"live,omitempty"`
	// Incomplete names what could not be asked.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Change is one change as a commit tells it.
type Change struct {
	Target          string    `json:"target"`
	Commit          string    `json:"commit"`
	Time            time.Time `json:"time"`
	Verb            string    `json:"verb"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	Author          string    `json:"author,omitempty"` // the username; empty for nobody
	ImpersonatedBy  string    `json:"impersonatedBy,omitempty"`
	Class           string    `json:"class"`
	Tier            string    `json:"tier,omitempty"`
	AuditID         string    `json:"audit,omitempty"`
	Why             string    `json:"why,omitempty"` // what an absent author lacked
}

// Live is the object's version in the cluster and its author, as far as facts are still there.
type Live struct {
	ResourceVersion string `json:"resourceVersion"`
	Author          string `json:"author,omitempty"`
	ImpersonatedBy  string `json:"impersonatedBy,omitempty"`
	Class           string `json:"class"`
	Tier            string `json:"tier,omitempty"`
	AuditID         string `json:"audit,omitempty"`
	Why             string `json:"why,omitempty"`
	// Committed tells whether one of the changes is this version.
	Committed bool `json:"committed"`
}

const (
	defaultLimit = 20
	maxLimit     = 500
)

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != Path:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	case !f.mayRead(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	query := r.URL.Query()
	question := Question{Resource: query.Get("resource"), Namespace: query.Get("namespace"), Name: query.Get("name")}
	limit, err := limitOf(query.Get("limit"))
	if err == nil && (question.Resource == "" || question.Name == "") {
		err = errors.New("resource and name are needed: ?resource=deployments.apps&namespace=shop&name=web")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.cfg.Timeout)
	defer cancel()
	answer, err := f.answer(ctx, question, limit)
	if err != nil {
		f.deps.Telemetry.Log.Error("a question cannot be answered", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "this cannot be answered now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a reader that is gone does not mind
}

func limitOf(text string) (int, error) {
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, errors.New("limit must be between 1 and " + strconv.Itoa(maxLimit))
	}
	return n, nil
}

// mayRead says whether the caller may see names: it holds READ_TOKEN, or the platform vouches for it, or no token is
// configured.
func (f *function) mayRead(r *http.Request) bool {
	may, err := host.MayRead(r, f.cfg.ReadToken)
	if err != nil {
		f.deps.Telemetry.Log.Error("READ_TOKEN cannot be read", "error", err)
	}
	return may
}

// answer asks the branches and the cluster, all at once. One that cannot be asked, or is slow, is named and does not hide
// the others.
func (f *function) answer(ctx context.Context, q Question, limit int) (*Answer, error) {
	targets, err := f.targets(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &Answer{Question: q, Targets: []string{}, Changes: []Change{}}
	routes := []string{}
	changes, failed := make([][]Change, len(targets)), make([]error, len(targets))
	var asked sync.WaitGroup
	for i, t := range targets {
		out.Targets = append(out.Targets, t.Name)
		if !slices.Contains(routes, t.Spec.AuditRoute) {
			routes = append(routes, t.Spec.AuditRoute)
		}
		asked.Go(func() { changes[i], failed[i] = f.history(ctx, t, q, limit) })
	}
	live, err := f.live(ctx, q, routes)
	asked.Wait()
	for i, t := range targets {
		if failed[i] != nil {
			f.deps.Telemetry.Log.Warn("a branch cannot be read", "target", t.Name, "error", failed[i])
			out.Incomplete = append(out.Incomplete, "history of target "+t.Name)
		}
		out.Changes = merge(out.Changes, changes[i])
	}
	out.Changes = out.Changes[:min(len(out.Changes), limit)]
	if err != nil {
		f.deps.Telemetry.Log.Warn("the live version cannot be told", "error", err)
		out.Incomplete = append(out.Incomplete, "the live version")
	}
	if out.Live = live; live != nil {
		live.Committed = slices.ContainsFunc(out.Changes, func(c Change) bool { return c.ResourceVersion == live.ResourceVersion })
	}
	return out, nil
}

// merge puts two lists together by time and keeps the order of each: a commit may be dated later than the one after
// it, when it holds another object's change too.
func merge(a, b []Change) []Change {
	out := make([]Change, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Time.After(a[0].Time) {
			a, b = b, a
		}
		out, a = append(out, a[0]), a[1:]
	}
	return append(append(out, a...), b...)
}

// resource reads "configmaps", "apps/deployments" and "deployments.apps".
func (q Question) resource() schema.GroupResource {
	if group, resource, ok := strings.Cut(q.Resource, "/"); ok {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	return schema.ParseGroupResource(q.Resource)
}
