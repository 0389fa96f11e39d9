package attribution

// Fact names an author and says what for. It is stored as JSON; the fields up to IsServiceAccount
// are those of gitops-reverser's AuthorFact, in its order, and the later ones are additions that it
// ignores.
type Fact struct {
	GroupResource    string `json:"groupResource,omitempty"`
	Namespace        string `json:"namespace,omitempty"`
	Name             string `json:"name,omitempty"`
	UID              string `json:"uid,omitempty"`
	Author           string `json:"author"`
	DisplayName      string `json:"displayName,omitempty"`
	Email            string `json:"email,omitempty"`
	Verb             string `json:"verb,omitempty"`
	Subresource      string `json:"subresource,omitempty"`
	AuditID          string `json:"auditID,omitempty"`
	ResourceVersion  string `json:"resourceVersion,omitempty"`
	StageTimestamp   string `json:"stageTimestamp,omitempty"` // RFC 3339 with nanoseconds, UTC
	IsServiceAccount bool   `json:"isServiceAccount,omitempty"`

	// ImpersonatedBy is who authenticated, where Author is whom the request acted as.
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
	// Tier names the evidence behind a weak result. It is set by Resolve and never stored.
	Tier Tier `json:"tier,omitempty"`
}

// Result is the class of a resolution.
type Result string

// The classes. Weak comes with a Tier in the fact, except from the two plain lookups.
const (
	ExactUser                 Result = "exact_user"
	ExactServiceAccount       Result = "exact_serviceaccount"
	Weak                      Result = "weak"
	ExactDeleteCollectionItem Result = "exact_deletecollection_item"
	Absent                    Result = "absent"
)

// Resolution is the outcome for one watched change.
type Resolution struct {
	Fact   Fact
	Result Result
	// Why tells what an Absent result lacked.
	Why Why `json:",omitempty"`
	// Provisional tells that an audit event which is still on its way could change the answer. It is only
	// set for a lookup with a Sighting.
	Provisional bool `json:",omitempty"`
}

// GroupResource renders a resource the way keys and facts spell it: "configmaps" for the core group,
// "apps/deployments" otherwise.
func GroupResource(group, resource string) string {
	if group == "" {
		return resource
	}
	return group + "/" + resource
}
