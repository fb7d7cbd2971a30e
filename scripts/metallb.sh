#!/usr/bin/env bash
# Finds MetalLB's controller and speaker for tests, or builds them.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"
cd "$(dirname "$0")/metallb"

usage() {
    cat <<'EOT'
Usage: scripts/metallb.sh [--find]

Prints the folder with controller and speaker of MetalLB, and crds with its CustomResourceDefinitions:
${XDG_CACHE_HOME:-$HOME/.cache}/fairway/metallb/VERSION, which is made when it is missing: from Go's modules, as
scripts/metallb/go.mod names them, unmodified, at the lowest priority and once (some minutes on two cores).

  --find   build nothing: exit status 3 if there is none
EOT
}

take_arguments "$@"
version=$(sed -n 's|^[[:space:]]*go.universe.tf/metallb v\([0-9.]*\).*|\1|p' go.mod)
[[ -n $version ]] || die "go.mod has no version of go.universe.tf/metallb"
folder=$(kept metallb "$version")
if [[ ! -x $folder/speaker ]]; then
    begin_build "$folder"
    command -v go >/dev/null || die "no go here; it builds MetalLB: https://go.dev/dl"
    if [[ ! -x $folder/speaker ]]; then
        say "building MetalLB $version, which takes minutes"
        rm -rf "$folder/crds"
        # A module that nothing has asked for yet has no folder.
        go mod download go.universe.tf/metallb
        source=$(go list -m -f '{{.Dir}}' go.universe.tf/metallb)
        cp -r --no-preserve=mode "$source/config/crd/bases" "$folder/crds"
        # The last one is the sign that all are there.
        for name in controller speaker; do
            CGO_ENABLED=0 nice -n 19 go build -trimpath -o "$folder/.$name" -ldflags "-s -w" "go.universe.tf/metallb/$name"
            mv "$folder/.$name" "$folder/$name"
        done
    fi
fi
echo "$folder"
