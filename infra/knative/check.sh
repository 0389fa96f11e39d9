#!/usr/bin/env bash
# Applies the manifests and the Terraform stack to a real API server: see manifests_e2e_test.go.
# TF_OFFLINE, where set, is a program that stands in for the provider registry; with it the stack is applied its way too.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v terraform >/dev/null || { echo "terraform 1.11 or newer is needed and is not on the PATH" >&2; exit 1; }
tools=$PWD/bin/tools
GOBIN=$tools "${GO:-go}" install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE_VERSION"
if [ -n "${TF_OFFLINE:-}" ]; then
	KUBE_BIN=$(shared/kubetest/servers/build.sh) "$TF_OFFLINE" apply-knative terraform/stacks/knative -- -var-file=terraform.tfvars.example
	eval "$("$TF_OFFLINE" prepare terraform/stacks/knative)"
fi
KUSTOMIZE=$tools/kustomize "${GO:-go}" test -tags "$TAGS,e2e" -count=1 -timeout 30m ./infra/knative/ ./infra/kubernetes/audit/
