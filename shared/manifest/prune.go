package manifest

import (
	"regexp"
	"strings"
)

// serverMetadata are the fields of an object's own metadata that only the API server writes.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields",
}

// noiseAnnotations are annotations that a client or a controller of Kubernetes keeps for itself; a new cluster
// writes its own. A trailing * matches the rest. kubernetes.io/change-cause and kubectl.kubernetes.io/restartedAt
// are not here: a person's words and a person's wish.
var noiseAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration", // the whole object a second time
	"deployment.kubernetes.io/revision",                // the Deployment controller's counter, also revision-history
	"deployment.kubernetes.io/revision-history",
	"deployment.kubernetes.io/desired-replicas",
	"deployment.kubernetes.io/max-replicas",
	"deprecated.daemonset.template.generation",         // the DaemonSet controller's counter
	"control-plane.alpha.kubernetes.io/leader",         // a leader's lease, rewritten every two seconds
	"endpoints.kubernetes.io/last-change-trigger-time", // a time stamp of the endpoints controller
	"autoscaling.alpha.kubernetes.io/conditions",       // the status of an autoscaling/v1 object
	"autoscaling.alpha.kubernetes.io/current-metrics",
	"pv.kubernetes.io/*",                            // notes of the volume binder and provisioner
	"volume.kubernetes.io/selected-node",            // the scheduler's choice
	"volume.kubernetes.io/storage-provisioner",      // the volume controller's choice
	"volume.beta.kubernetes.io/storage-provisioner", // the same, older
	"batch.kubernetes.io/job-tracking",              // the Job controller's mark
	"kubernetes.io/service-account.uid",             // a uid of this cluster
}

// kindRules are the fields that the server fills in on one kind, by "group/Kind".
//
// Kept on purpose, because a person may have chosen them and nothing tells the two apart: a Service's nodePorts
// (firewalls name them; a server's choice is harmless when applied again), ipFamilies, a claim's volumeName, a
// webhook's caBundle, ownerReferences, and all defaults that the server writes into a spec.
var kindRules = map[string]func(obj map[string]any){
	"/Service":                               service,
	"/Namespace":                             namespace,
	"/ServiceAccount":                        serviceAccount,
	"/PersistentVolume":                      persistentVolume,
	"/Pod":                                   pod,
	"batch/Job":                              job,
	"rbac.authorization.k8s.io/ClusterRole":  aggregatedRole,
	"authorization.openshift.io/ClusterRole": aggregatedRole,
}

// prune takes out of obj what the server owns.
func prune(groupKind string, obj map[string]any) {
	delete(obj, "status")
	metadata := obj["metadata"].(map[string]any)
	for _, field := range serverMetadata {
		delete(metadata, field)
	}
	dropKeys(metadata, "annotations", isNoise)
	dropItems(metadata, "finalizers", func(v any) bool {
		name, _ := v.(string)
		return kubernetesFinalizer(name)
	})
	if rule := kindRules[groupKind]; rule != nil {
		rule(obj)
	}
	dropNullTimestamps(obj)
}

func isNoise(annotation string) bool {
	for _, pattern := range noiseAnnotations {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if annotation == pattern || wild && strings.HasPrefix(annotation, prefix) {
			return true
		}
	}
	return false
}

// kubernetesFinalizer tells the finalizers that Kubernetes itself puts on and takes off: kubernetes.io and k8s.io
// with what is below them are reserved to it, and so are the names without a domain (orphan, foregroundDeletion).
func kubernetesFinalizer(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	if !qualified {
		switch name {
		case "orphan", "foregroundDeletion", "customresourcecleanup.apiextensions.k8s.io":
			return true
		}
		return false
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return true
		}
	}
	return false
}

// service drops the assigned cluster addresses: they belong to this cluster's network. "None" is a wish (a
// headless Service) and stays. The port of the load balancer's health check is assigned in the same way.
func service(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	if ip, _ := spec["clusterIP"].(string); ip != "None" {
		delete(spec, "clusterIP")
	}
	dropItems(spec, "clusterIPs", func(v any) bool { return v != "None" })
	delete(spec, "healthCheckNodePort")
}

// namespace drops the finalizer and the name label that every Namespace gets.
func namespace(obj map[string]any) {
	if spec, ok := obj["spec"].(map[string]any); ok {
		dropItems(spec, "finalizers", func(v any) bool { return v == "kubernetes" })
		if len(spec) == 0 {
			delete(obj, "spec")
		}
	}
	dropKeys(obj["metadata"].(map[string]any), "labels", func(key string) bool { return key == "kubernetes.io/metadata.name" })
}

var generatedToken = regexp.MustCompile(`-(token|dockercfg)-[a-z0-9]{5}$`)

// serviceAccount drops the token and pull secrets that controllers generate for it; others were named by a person.
func serviceAccount(obj map[string]any) {
	name, _ := obj["metadata"].(map[string]any)["name"].(string)
	generated := func(v any) bool {
		ref, _ := v.(map[string]any)
		secret, _ := ref["name"].(string)
		rest, own := strings.CutPrefix(secret, name)
		return own && generatedToken.FindString(rest) == rest && rest != ""
	}
	dropItems(obj, "secrets", generated)
	dropItems(obj, "imagePullSecrets", generated)
}

// persistentVolume reduces the claim it is bound to to its name: uid and version of a claim are this cluster's.
func persistentVolume(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	claim, _ := spec["claimRef"].(map[string]any)
	delete(claim, "uid")
	delete(claim, "resourceVersion")
}

// pod drops the node that the scheduler chose.
func pod(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	delete(spec, "nodeName")
}

// job drops the selector and the labels that the server generates from the Job's uid, unless manualSelector asks
// it not to. A Job that has them can not be created again.
func job(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	delete(spec, "selector")
	generated := func(key string) bool {
		switch key {
		case "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name":
			return true
		}
		return false
	}
	dropKeys(obj["metadata"].(map[string]any), "labels", generated)
	template, _ := spec["template"].(map[string]any)
	if metadata, ok := template["metadata"].(map[string]any); ok {
		dropKeys(metadata, "labels", generated)
	}
}

// aggregatedRole drops the rules that a controller computes from the roles which aggregationRule selects.
func aggregatedRole(obj map[string]any) {
	if obj["aggregationRule"] != nil {
		delete(obj, "rules")
	}
}

// dropKeys deletes the keys of parent[field] that match, and the field when nothing of it is left.
func dropKeys(parent map[string]any, field string, match func(string) bool) {
	m, ok := parent[field].(map[string]any)
	if !ok {
		return
	}
	before := len(m)
	for key := range m {
		if match(key) {
			delete(m, key)
		}
	}
	if before > 0 && len(m) == 0 {
		delete(parent, field)
	}
}

// dropItems deletes the items of the list parent[field] that match, and the field when nothing of it is left.
func dropItems(parent map[string]any, field string, match func(any) bool) {
	l, ok := parent[field].([]any)
	if !ok {
		return
	}
	kept := make([]any, 0, len(l))
	for _, v := range l {
		if !match(v) {
			kept = append(kept, v)
		}
	}
	switch {
	case len(kept) == len(l):
	case len(kept) == 0:
		delete(parent, field)
	default:
		parent[field] = kept
	}
}

// dropNullTimestamps removes the `creationTimestamp: null` that Go clients write into every nested metadata (pod
// templates, volume claim templates, …): it says nothing.
func dropNullTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			if stamp, there := metadata["creationTimestamp"]; there && stamp == nil {
				delete(metadata, "creationTimestamp")
			}
		}
		for _, x := range v {
			dropNullTimestamps(x)
		}
	case []any:
		for _, x := range v {
			dropNullTimestamps(x)
		}
	}
}
