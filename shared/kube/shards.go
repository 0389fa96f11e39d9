package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Shard is what one watch of one target covers.
type Shard struct {
	Resource Resource
	// Namespace is empty for the whole cluster.
	Namespace string
	Selector  labels.Selector
}

// Shards are the watches of the target, and the rules that lead to none, given what Resolve found. Core Secrets are in
// neither.
func (t *GitTarget) Shards(served map[schema.GroupResource]Resource, missing map[schema.GroupResource]*NotServed) ([]Shard, []*NotServed) {
	var shards []Shard
	var not []*NotServed
	for _, rule := range t.Watched() {
		gr := rule.GroupResource()
		resource, ok := served[gr]
		if !ok {
			reason := missing[gr]
			if reason == nil {
				reason = &NotServed{Resource: gr, Why: "the API server was not asked for it"}
			}
			not = append(not, reason)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(rule.Selector)
		if err != nil {
			not = append(not, &NotServed{Resource: gr, Why: "its selector is broken: " + err.Error()})
			continue
		}
		if rule.Selector == nil {
			selector = labels.Everything()
		}
		switch {
		case len(rule.Namespaces) == 0:
			shards = append(shards, Shard{Resource: resource, Selector: selector})
		case !resource.Namespaced:
			not = append(not, &NotServed{Resource: gr, Why: "it belongs to the whole cluster, so namespaces cannot narrow it"})
		default:
			for _, ns := range rule.Namespaces {
				shards = append(shards, Shard{Resource: resource, Namespace: ns, Selector: selector})
			}
		}
	}
	return shards, not
}
