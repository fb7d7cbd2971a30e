#!/usr/bin/env bash
# Finds helm, or builds it.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"
cd "$(dirname "$0")/helm"

usage() {
    cat <<'EOT'
Usage: scripts/helm.sh [--find]

Prints the path of helm 3: that of FAIRWAY_HELM, if it is set; else the one on the PATH; else
${XDG_CACHE_HOME:-$HOME/.cache}/fairway/helm/VERSION/helm, which is built when it is missing: from Go's
modules, as scripts/helm/go.mod names them, at the lowest priority and once (five minutes on two cores).

  --find   build nothing: exit status 3 if there is none
EOT
}

take_arguments "$@"

if [[ -n ${FAIRWAY_HELM:-} ]]; then
    [[ -x $FAIRWAY_HELM ]] || die "FAIRWAY_HELM is $FAIRWAY_HELM, which is not an executable file"
    echo "$FAIRWAY_HELM"
    exit
fi
if command -v helm >/dev/null && [[ $(helm version --template '{{.Version}}') == v3.* ]]; then
    command -v helm
    exit
fi

version_of() { sed -n "s|^\(require \)\?[[:space:]]*$1 v\([0-9.]*\).*|\2|p" go.mod; }
version=$(version_of helm.sh/helm/v3)
[[ -n $version ]] || die "go.mod has no version of helm.sh/helm/v3"
folder=$(kept helm "$version")
if [[ -x $folder/helm ]]; then
    echo "$folder/helm"
    exit
fi

begin_build "$folder"
command -v go >/dev/null || die "no go here; it builds helm: https://go.dev/dl, or set FAIRWAY_HELM"
if [[ ! -x $folder/helm ]]; then
    say "building helm $version, which takes minutes"
    # The Kubernetes version that it assumes without a cluster: that of its client library.
    minor=$(version_of k8s.io/client-go)
    minor=${minor#0.} minor=${minor%%.*}
    at=helm.sh/helm/v3
    flags="-s -w -X $at/internal/version.version=v$version"
    for package in pkg/lint/rules pkg/chartutil; do
        flags+=" -X $at/$package.k8sVersionMajor=1 -X $at/$package.k8sVersionMinor=$minor"
    done
    CGO_ENABLED=0 nice -n 19 go build -trimpath -o "$folder/.helm" -ldflags "$flags" "$at/cmd/helm"
    mv "$folder/.helm" "$folder/helm"
fi
echo "$folder/helm"
