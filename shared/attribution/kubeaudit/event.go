// Package kubeaudit reads Kubernetes' own audit types into attribution's Event. It is the reference for
// decoders that read the JSON themselves, and it is apart from attribution so that those need not link
// Kubernetes' types.
package kubeaudit

import (
	"encoding/json"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// Event reduces an audit event to what the rules read. routeAnnotation names the annotation that holds
// the logical cluster; empty where none is configured.
func Event(in *auditv1.Event, keys attribution.ExtraKeys, routeAnnotation string) attribution.Event {
	out := attribution.Event{
		AuditID:    string(in.AuditID),
		Level:      string(in.Level),
		Stage:      string(in.Stage),
		Verb:       in.Verb,
		RequestURI: in.RequestURI,
		UserAgent:  in.UserAgent,
		User:       user(&in.User, keys),
		Received:   in.RequestReceivedTimestamp.Time,
		Staged:     in.StageTimestamp.Time,
		Request:    body(in.RequestObject, in.Verb),
		Response:   body(in.ResponseObject, in.Verb),
	}
	if routeAnnotation != "" {
		out.Route = in.Annotations[routeAnnotation]
	}
	if in.ImpersonatedUser != nil {
		out.Impersonated = user(in.ImpersonatedUser, keys)
	}
	if ref := in.ObjectRef; ref != nil {
		out.Object = attribution.ObjectRef{
			Group:           ref.APIGroup,
			Resource:        ref.Resource,
			Subresource:     ref.Subresource,
			Namespace:       ref.Namespace,
			Name:            ref.Name,
			UID:             string(ref.UID),
			ResourceVersion: ref.ResourceVersion,
		}
	}
	if status := in.ResponseStatus; status != nil {
		out.Code = status.Code
		if status.Details != nil {
			out.StatusUID = string(status.Details.UID)
		}
	}
	return out
}

func user(in *authnv1.UserInfo, keys attribution.ExtraKeys) attribution.User {
	return attribution.User{
		Username:    in.Username,
		DisplayName: extra(in.Extra, keys.DisplayName),
		Email:       extra(in.Extra, keys.Email),
	}
}

func extra(extras map[string]authnv1.ExtraValue, keys []string) string {
	for _, key := range keys {
		if values := extras[key]; len(values) > 0 && values[0] != "" {
			return values[0]
		}
	}
	return ""
}

// body reads what is known of an object's identity; a body that does not read as an object is as none.
func body(in *runtime.Unknown, verb string) attribution.Body {
	if in == nil || len(in.Raw) == 0 {
		return attribution.Body{}
	}
	var raw struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace         string `json:"namespace"`
			Name              string `json:"name"`
			UID               string `json:"uid"`
			ResourceVersion   string `json:"resourceVersion"`
			DeletionTimestamp string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	if json.Unmarshal(in.Raw, &raw) != nil {
		return attribution.Body{}
	}
	out := attribution.Body{
		Kind:            raw.Kind,
		Namespace:       raw.Metadata.Namespace,
		Name:            raw.Metadata.Name,
		UID:             raw.Metadata.UID,
		ResourceVersion: raw.Metadata.ResourceVersion,
		Deleting:        raw.Metadata.DeletionTimestamp != "",
	}
	var details struct {
		Details struct {
			UID string `json:"uid"`
		} `json:"details"`
	}
	if json.Unmarshal(in.Raw, &details) == nil {
		out.DetailsUID = details.Details.UID
	}
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	var eviction struct {
		DeleteOptions struct {
			DryRun []string `json:"dryRun"`
		} `json:"deleteOptions"`
	}
	if json.Unmarshal(in.Raw, &options) == nil {
		out.DryRun = len(options.DryRun) > 0
	}
	if json.Unmarshal(in.Raw, &eviction) == nil {
		out.DryRun = out.DryRun || len(eviction.DeleteOptions.DryRun) > 0
	}
	if strings.EqualFold(verb, "deletecollection") {
		out.Items = items(in.Raw)
	}
	return out
}

func items(raw []byte) []attribution.Item {
	var list struct {
		Items []struct {
			Metadata attribution.Item `json:"metadata"`
		} `json:"items"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []attribution.Item
	for _, item := range list.Items {
		out = append(out, item.Metadata)
	}
	return out
}
