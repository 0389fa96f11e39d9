// Package kubetest runs a real control plane on loopback for a test: etcd, kube-apiserver and, on demand,
// kube-controller-manager, built by `make kube-servers`. It has RBAC, the audit policy and webhook of infra/kubernetes,
// a few people who may log in, and the accidents that happen to a control plane: restart, compaction, restore of a backup.
//
// Tests that use it carry the build tag e2e and run by `make e2e`; they never skip.
package kubetest
