#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kube-controller-manager from the versions in go.mod, each only when it is
# missing, and prints the folder they are in: $KUBE_BIN, or a folder of the user's cache named by the versions.
set -euo pipefail
cd "$(dirname "$0")"

version_of() { awk -v m="$1" '$1 == m && $2 ~ /^v/ {print $2; exit}' go.mod; }
kube=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
out=${KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemark/kube-$kube-etcd-$etcd}
mkdir -p "$out"

minor=${kube#v1.}; minor=${minor%%.*}
v=k8s.io/component-base/version
stamp="-X $v.gitVersion=$kube -X $v.gitMajor=1 -X $v.gitMinor=$minor"

build() { # NAME PACKAGE
	[ -x "$out/$1" ] && return
	echo "building $1 (cold: minutes)" >&2
	CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off nice -n 19 go build -p "${KUBE_BUILD_JOBS:-$(nproc)}" -trimpath -ldflags "-s -w $stamp" -o "$out/.$1.$$" "$2"
	mv "$out/.$1.$$" "$out/$1"
}
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
echo "$out"
