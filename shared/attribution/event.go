package attribution

import "time"

// Event is what the rules read of one audit event (audit.k8s.io/v1). A decoder fills it and may drop
// everything else. The zero value of a field means that the event did not have it.
type Event struct {
	AuditID    string
	Level      string
	Stage      string
	Verb       string
	RequestURI string
	UserAgent  string

	// User is who authenticated, Impersonated who the request acted as (empty username: nobody).
	User         User
	Impersonated User

	Object ObjectRef
	// Code is responseStatus.code.
	Code int32
	// StatusUID is responseStatus.details.uid.
	StatusUID string

	// Received is requestReceivedTimestamp, Staged is stageTimestamp.
	Received time.Time
	Staged   time.Time

	Request  Body
	Response Body

	// Route is the value of the annotation that names the logical cluster, where one is configured.
	Route string
}

// User is an identity as an audit event states it, its extras already reduced to two values.
type User struct {
	Username    string
	DisplayName string
	Email       string
}

// ExtraKeys names the user extras that hold a display name and an e-mail address. The first key that
// has a value wins. Keys are as the API server writes them: lower-case and unescaped.
type ExtraKeys struct {
	DisplayName []string
	Email       []string
}

// DefaultExtraKeys are the keys that ConfigButler's gitops-reverser reads.
func DefaultExtraKeys() ExtraKeys {
	return ExtraKeys{
		DisplayName: []string{"configbutler.ai/claims/display-name"},
		Email:       []string{"configbutler.ai/claims/email"},
	}
}

// ObjectRef is the event's objectRef. An event without one has no Resource.
type ObjectRef struct {
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	UID         string
	// ResourceVersion is that of the request's body: the version being replaced, never the one written.
	ResourceVersion string
}

// Body is what a requestObject or responseObject says about identity. A missing body, one that is
// not a JSON object (a JSON patch is an array) and one that cannot be read are all the zero Body.
type Body struct {
	Kind string

	// From metadata.
	Namespace       string
	Name            string
	UID             string
	ResourceVersion string
	Deleting        bool // deletionTimestamp is set

	// DetailsUID is details.uid of a Status.
	DetailsUID string
	// DryRun tells that dryRun of a DeleteOptions, or of an Eviction's deleteOptions, is not empty.
	DryRun bool
	// Items are the members of a list. Decoders fill it for a deletecollection only.
	Items []Item
}

// Item is a member of a list that a deletecollection answered with.
type Item struct {
	Namespace string
	Name      string
	UID       string
}

// Present tells whether the event had a body that reads as an object.
func (b *Body) Present() bool {
	return b.Kind != "" || b.Name != "" || b.UID != "" || b.ResourceVersion != "" || b.DetailsUID != "" || b.DryRun || len(b.Items) > 0
}
