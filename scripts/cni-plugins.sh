#!/usr/bin/env bash
# Finds cnitool and the standard CNI plugins for tests, or builds them.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"
cd "$(dirname "$0")/cni-plugins"

usage() {
    cat <<'EOT'
Usage: scripts/cni-plugins.sh [--find]

Prints the folder with cnitool, bridge, ptp, portmap and host-local:
${XDG_CACHE_HOME:-$HOME/.cache}/fairway/cni-plugins/VERSION, which is made when it is missing: from Go's
modules, as scripts/cni-plugins/go.mod names them, once (a minute on two cores).

  --find   build nothing: exit status 3 if there is none
EOT
}

take_arguments "$@"
version=$(sed -n 's|^[[:space:]]*github.com/containernetworking/plugins v\([0-9.]*\).*|\1|p' go.mod)
[[ -n $version ]] || die "go.mod has no version of github.com/containernetworking/plugins"
folder=$(kept cni-plugins "$version")
if [[ ! -x $folder/cnitool ]]; then
    begin_build "$folder"
    command -v go >/dev/null || die "no go here; it builds the CNI plugins: https://go.dev/dl"
    if [[ ! -x $folder/cnitool ]]; then
        say "building the CNI plugins $version, which takes a minute"
        at=github.com/containernetworking/plugins/pkg/utils/buildversion
        # The last one is the sign that all are there.
        for program in plugins/plugins/ipam/host-local plugins/plugins/main/bridge plugins/plugins/main/ptp \
            plugins/plugins/meta/portmap cni/cnitool; do
            name=${program##*/}
            CGO_ENABLED=0 nice -n 19 go build -trimpath -o "$folder/.$name" \
                -ldflags "-s -w -X $at.BuildVersion=v$version" "github.com/containernetworking/$program"
            mv "$folder/.$name" "$folder/$name"
        done
    fi
fi
echo "$folder"
