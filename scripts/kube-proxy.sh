#!/usr/bin/env bash
# Finds kube-proxy for tests, or builds it.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"
cd "$(dirname "$0")/kube-apiserver"

usage() {
    cat <<'EOT'
Usage: scripts/kube-proxy.sh [--find]

Prints the path of kube-proxy: ${XDG_CACHE_HOME:-$HOME/.cache}/fairway/kube-proxy/VERSION/kube-proxy,
which is built when it is missing: from Go's modules, as scripts/kube-apiserver/go.mod names them, at
the lowest priority and once (some minutes on two cores).

  --find   build nothing: exit status 3 if there is none
EOT
}

take_arguments "$@"
version=$(sed -n 's|^\(require \)\?[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\2|p' go.mod)
[[ -n $version ]] || die "go.mod has no version of k8s.io/kubernetes"
folder=$(kept kube-proxy "$version")
if [[ ! -x $folder/kube-proxy ]]; then
    begin_build "$folder"
    command -v go >/dev/null || die "no go here; it builds kube-proxy: https://go.dev/dl"
    if [[ ! -x $folder/kube-proxy ]]; then
        say "building kube-proxy $version, which takes minutes"
        at=k8s.io/component-base/version
        CGO_ENABLED=0 nice -n 19 go build -trimpath -o "$folder/.kube-proxy" \
            -ldflags "-s -w -X $at.gitVersion=v$version" k8s.io/kubernetes/cmd/kube-proxy
        mv "$folder/.kube-proxy" "$folder/kube-proxy"
    fi
fi
echo "$folder/kube-proxy"
