// Package kube is what Tidemark asks of the Kubernetes API: the GitTargets and CommitRequests that tell it what
// to do, the Secrets that open repositories, where a named resource is served, what happened since a
// resourceVersion, and where to say how it went. It speaks through client-go's dynamic client only.
//
// It decides nothing about git or authors, and it keeps no state: a process that dies loses nothing here.
package kube
