#!/usr/bin/env bash
# Finds a real Kubernetes API server for tests, or builds one.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"
cd "$(dirname "$0")/kube-apiserver"

usage() {
    cat <<'EOT'
Usage: scripts/kube-apiserver.sh [--find]

Prints the folder that holds kube-apiserver, kubectl and etcd. That is the one that KUBEBUILDER_ASSETS
names, if it is set; else ${XDG_CACHE_HOME:-$HOME/.cache}/fairway/kube-apiserver/VERSION, where they are
built when they are missing: from Go's modules, as scripts/kube-apiserver/go.mod names them, at the
lowest priority and once (ten to twenty minutes on two cores). etcd is Debian's.

  --find   build nothing: exit status 3 if there is none
EOT
}

take_arguments "$@"

is_whole() { [[ -x $1/kube-apiserver && -x $1/kubectl && -x $1/etcd ]]; }

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
    is_whole "$KUBEBUILDER_ASSETS" ||
        die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks kube-apiserver, kubectl or etcd"
    echo "$KUBEBUILDER_ASSETS"
    exit
fi

version=$(sed -n 's|^\(require \)\?[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\2|p' go.mod)
[[ -n $version ]] || die "go.mod has no version of k8s.io/kubernetes"
folder=$(kept kube-apiserver "$version")
if is_whole "$folder"; then
    echo "$folder"
    exit
fi

begin_build "$folder"
command -v go >/dev/null || die "no go here; it builds kube-apiserver: https://go.dev/dl, or set KUBEBUILDER_ASSETS"
etcd=$(command -v etcd) || die "no etcd here; run: scripts/setup.sh kubernetes"
for name in kube-apiserver kubectl; do
    [[ ! -x $folder/$name ]] || continue
    say "building $name $version, which takes minutes"
    at=k8s.io/component-base/version
    CGO_ENABLED=0 nice -n 19 go build -trimpath -o "$folder/.$name" \
        -ldflags "-s -w -X $at.gitVersion=v$version -X $at.gitMajor=${version%%.*} -X $at.gitMinor=$(cut -d. -f2 <<<"$version")" \
        "k8s.io/kubernetes/cmd/$name"
    mv "$folder/.$name" "$folder/$name"
done
ln -sf "$etcd" "$folder/etcd"
echo "$folder"
