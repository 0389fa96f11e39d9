#!/usr/bin/env bash
# Checks every module and stack: format, init, validate, tests.
# With TF_OFFLINE (path of a program that checks without a registry) that does it; else Terraform and the registry.
set -euo pipefail
cd "$(dirname "$0")"
command -v terraform >/dev/null || { echo "terraform 1.11 or newer is needed and is not on the PATH" >&2; exit 1; }
folders=(modules/*/ stacks/*/)
if [ -n "${TF_OFFLINE:-}" ]; then
	exec "$TF_OFFLINE" check "${folders[@]%/}"
fi
terraform fmt -check -recursive -diff
for folder in "${folders[@]%/}"; do
	echo "== $folder"
	terraform -chdir="$folder" init -backend=false -input=false -no-color >/dev/null
	terraform -chdir="$folder" validate -no-color
	terraform -chdir="$folder" test -no-color
done
