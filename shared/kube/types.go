package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name the API of the custom resources in infra/kubernetes/crds.
const (
	Group   = "tidemark.dev"
	Version = "v1alpha1"
)

// Where the custom resources are served.
var (
	GitTargets     = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "gittargets"}
	CommitRequests = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "commitrequests"}
)

// What a GitTarget that does not say otherwise gets.
const (
	DefaultAuditRoute     = "default"
	DefaultBranch         = "main"
	DefaultCommitterName  = "Tidemark"
	DefaultCommitterEmail = "tidemark@noreply.invalid"
)

// MaxAttributionGrace is the longest that a change may wait for its author: the watch cache of the API server
// may forget a change 75 s after it happened.
const MaxAttributionGrace = 60 * time.Second

// MaxHold is the longest that commit.hold may keep changes back.
const MaxHold = time.Hour

// GitTarget says which resources of the cluster are written to which branch, and how.
type GitTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GitTargetSpec   `json:"spec"`
	Status GitTargetStatus `json:"status,omitzero"`
}

// GitTargetSpec is what a person wants.
type GitTargetSpec struct {
	Repository Repository `json:"repository"`
	// AuditRoute is the route of the audit webhook by which this cluster's facts arrive.
	AuditRoute string `json:"auditRoute,omitempty"`
	// AttributionGrace is how long a change waits for its author; nil leaves it to the function.
	AttributionGrace *metav1.Duration `json:"attributionGrace,omitempty"`
	Resources        []ResourceRule   `json:"resources"`
	// IgnoreActors are usernames whose changes get no commit of their own.
	IgnoreActors []string      `json:"ignoreActors,omitempty"`
	Commit       CommitPolicy  `json:"commit,omitzero"`
	Secrets      SecretsPolicy `json:"secrets,omitempty"`
	Prune        PrunePolicy   `json:"prune,omitempty"`
}

// Repository is the branch and the folder in it that a target writes.
type Repository struct {
	URL    string `json:"url"`
	Branch string `json:"branch,omitempty"`
	// Path is the folder, relative to the root of the repository; empty is the root.
	Path      string           `json:"path,omitempty"`
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// SecretReference names a Secret with the keys that Flux uses: username and password, bearerToken, identity and
// known_hosts, ca.crt, tls.crt and tls.key, proxy.
type SecretReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ResourceRule names one resource, in every namespace or in some.
type ResourceRule struct {
	// Group is empty for the core group. The version is the API server's preferred one.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Namespaces narrow the rule; empty is the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector narrows the rule to labelled objects. An object whose labels stop matching is removed.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// GroupResource is the rule's resource without a version.
func (r ResourceRule) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// CommitPolicy says how changes become commits.
type CommitPolicy struct {
	Grouping Grouping `json:"grouping,omitempty"`
	// Hold keeps settled changes back for this long, so that a CommitRequest has something to ask for.
	Hold      *metav1.Duration `json:"hold,omitempty"`
	Committer Committer        `json:"committer,omitzero"`
	// Message is the template of the first line of each commit, {summary} when it is empty.
	Message string `json:"message,omitempty"`
	// SigningKeyRef is the Secret with the SSH key that commits are signed with: ssh-privatekey or identity, and password
	// for its passphrase. Nil leaves commits unsigned.
	SigningKeyRef *SecretReference `json:"signingKeyRef,omitempty"`
}

// Committer is who pushes; the author of a commit is whoever made the change.
type Committer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// Grouping is which changes share a commit.
type Grouping string

const (
	// PerAuthor puts consecutive changes of one author in one commit, at most one change per object.
	PerAuthor Grouping = "PerAuthor"
	// PerChange makes one commit of each change.
	PerChange Grouping = "PerChange"
)

// SecretsPolicy is what happens to core Secrets that a rule names.
type SecretsPolicy string

// SecretsSkip leaves Secrets alone: they are not even watched.
const SecretsSkip SecretsPolicy = "Skip"

// PrunePolicy is when a file without an object is removed.
type PrunePolicy string

const (
	// PruneNever keeps every file.
	PruneNever PrunePolicy = "Never"
	// PruneOnEvent removes the file when the watch delivers the removal.
	PruneOnEvent PrunePolicy = "OnEvent"
	// PruneAlways removes it then, and also when a replay finds no object for it.
	PruneAlways PrunePolicy = "Always"
)

// GitTargetStatus is how it went.
type GitTargetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	LastCommit         *LastCommit        `json:"lastCommit,omitempty"`
	Shards             []ShardStatus      `json:"shards,omitempty"`
}

// LastCommit is the newest commit that this target pushed.
type LastCommit struct {
	SHA  string      `json:"sha"`
	Time metav1.Time `json:"time"`
	// Changes counts the changes of the push, over all its commits.
	Changes int64 `json:"changes,omitempty"`
}

// ShardStatus is how far one watch has come.
type ShardStatus struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// Cursor is the resourceVersion up to which everything is in git; empty before the first replay.
	Cursor string `json:"cursor,omitempty"`
	// CursorTime is when the cursor was last moved or found to be still right.
	CursorTime *metav1.Time `json:"cursorTime,omitempty"`
	// Waiting counts the changes that were seen and are not in git yet.
	Waiting int64 `json:"waiting,omitempty"`
	// Lag is the age of the oldest of them.
	Lag *metav1.Duration `json:"lag,omitempty"`
}

// CommitRequest asks that the requester's own changes that wait are committed now, under a message.
type CommitRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CommitRequestSpec   `json:"spec"`
	Status CommitRequestStatus `json:"status,omitzero"`
}

// CommitRequestSpec cannot be changed: the author of the request is whoever created it.
type CommitRequestSpec struct {
	TargetRef TargetReference `json:"targetRef"`
	Message   string          `json:"message"`
	// TTLSecondsAfterFinished is how long the request stays once it is done; nil: until somebody deletes it.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// TargetReference names a GitTarget.
type TargetReference struct {
	Name string `json:"name"`
}

// CommitRequestStatus is what became of the request.
type CommitRequestStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// SHA is the commit that carries the message, or the author's last one when nothing was waiting.
	SHA string `json:"sha,omitempty"`
	// Author is the username seen at admission.
	Author string `json:"author,omitempty"`
}

// Done says whether nothing more will happen to the request.
func (r *CommitRequest) Done() bool {
	for _, c := range r.Status.Conditions {
		if c.Type == ConditionCommitted {
			return c.Status != metav1.ConditionUnknown
		}
	}
	return false
}

// Expired says whether the request is done and has stayed for as long as it asked for.
func (r *CommitRequest) Expired(now time.Time) bool {
	if r.Spec.TTLSecondsAfterFinished == nil {
		return false
	}
	for _, c := range r.Status.Conditions {
		if c.Type == ConditionCommitted && c.Status != metav1.ConditionUnknown {
			return !now.Before(c.LastTransitionTime.Add(time.Duration(*r.Spec.TTLSecondsAfterFinished) * time.Second))
		}
	}
	return false
}

// SetDefaults fills in what the CustomResourceDefinition's schema fills in for objects that went through the API
// server, so that a target from a file means the same.
func (t *GitTarget) SetDefaults() {
	s := &t.Spec
	fill(&s.AuditRoute, DefaultAuditRoute)
	fill(&s.Repository.Branch, DefaultBranch)
	fill(&s.Commit.Grouping, PerAuthor)
	fill(&s.Commit.Committer.Name, DefaultCommitterName)
	fill(&s.Commit.Committer.Email, DefaultCommitterEmail)
	fill(&s.Secrets, SecretsSkip)
	fill(&s.Prune, PruneOnEvent)
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// SkipsSecrets says whether the target names core Secrets, which its policy leaves out.
func (t *GitTarget) SkipsSecrets() bool {
	for _, r := range t.Spec.Resources {
		if isSecrets(r.GroupResource()) {
			return true
		}
	}
	return false
}

// Watched are the rules that lead to a watch: all but those for core Secrets.
func (t *GitTarget) Watched() []ResourceRule {
	var out []ResourceRule
	for _, r := range t.Spec.Resources {
		if !isSecrets(r.GroupResource()) {
			out = append(out, r)
		}
	}
	return out
}

func isSecrets(gr schema.GroupResource) bool { return gr.Group == "" && gr.Resource == "secrets" }
