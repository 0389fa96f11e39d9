package authorcapture

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
)

const (
	reviewKind    = "AdmissionReview"
	reviewVersion = "admission.k8s.io/v1"
)

// review is the part of an AdmissionReview that is read and written here.
type review struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

// isV1 tells whether the review is one of version v1. One that does not say is taken for one: it is answered as v1.
func (r *review) isV1() bool {
	return (r.Kind == reviewKind || r.Kind == "") && (r.APIVersion == reviewVersion || r.APIVersion == "")
}

type request struct {
	UID      string `json:"uid"`
	Resource struct {
		Group    string `json:"group"`
		Resource string `json:"resource"`
	} `json:"resource"`
	SubResource string          `json:"subResource"`
	Operation   string          `json:"operation"`
	UserInfo    userInfo        `json:"userInfo"`
	Object      json.RawMessage `json:"object"`
	DryRun      *bool           `json:"dryRun"`
}

type userInfo struct {
	Username string              `json:"username"`
	Extra    map[string][]string `json:"extra"`
}

type response struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

// objectUID is the uid of the object under review, or empty when there is none to read.
func (r *request) objectUID() types.UID {
	var object struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(r.Object, &object) != nil {
		return ""
	}
	return object.Metadata.UID
}

// extra is the first value of the first of the keys that has one.
func (u *userInfo) extra(keys []string) string {
	for _, key := range keys {
		if values := u.Extra[key]; len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return ""
}

// allowed is the answer. For a command object the audit event of the request says what became of the capture and under
// which uid: the API server prefixes the annotations with the webhook's name.
func (r *review) allowed(outcome Outcome) *review {
	out := &review{Kind: reviewKind, APIVersion: reviewVersion, Response: &response{UID: r.Request.UID, Allowed: true}}
	switch outcome {
	case NotACommand, NotACreate, DryRun:
	default:
		out.Response.AuditAnnotations = map[string]string{"author": string(outcome), "command-uid": string(r.Request.objectUID())}
	}
	return out
}
