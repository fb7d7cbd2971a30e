#!/usr/bin/env bash
# Packs `kubectl fairway` for krew: an archive of this machine's architecture, and the manifest that names it.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${FAIRWAY_BIN:-target/$(rustc -vV | sed -n 's/^host: //p')/release/fairway}
to=${TO:-target/krew}

usage() {
    cat <<EOT
Usage: scripts/krew.sh URL

Writes kubectl-fairway-linux-ARCH.tar.gz and fairway.yaml, a manifest for krew that names the archive at URL/, into
target/krew. To install both without a server:

  scripts/krew.sh https://example.org/fairway
  kubectl krew install --manifest=target/krew/fairway.yaml --archive=target/krew/kubectl-fairway-linux-amd64.tar.gz

  TO           write into this folder
  FAIRWAY_BIN  the binary (default: the one of \`make build\`)
EOT
}

case ${1:-} in
-h | --help)
    usage
    exit
    ;;
http://?* | https://?*) url=${1%/} ;;
*)
    usage >&2
    exit 2
    ;;
esac
[[ -x $binary ]] || {
    echo "krew.sh: $binary does not exist; run: make build" >&2
    exit 1
}
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*)
    echo "krew.sh: krew has no word for the architecture $(uname -m)" >&2
    exit 1
    ;;
esac

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
archive=kubectl-fairway-linux-$arch.tar.gz
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
install -m 0755 "$binary" "$scratch/kubectl-fairway"
install -m 0644 LICENSE "$scratch/LICENSE"
mkdir -p "$to"
# The same bytes each time.
tar -C "$scratch" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - kubectl-fairway LICENSE |
    gzip -n >"$to/$archive"
cat >"$to/fairway.yaml" <<EOT
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: fairway
spec:
  version: v$version
  homepage: $url
  shortDescription: Ask Fairway on all nodes of a cluster
  description: |
    Shows the BGP sessions, routes, Services and pools of all nodes side by side, explains
    states, and drains nodes, with the rights of the user.
  caveats: |
    Asks the node API of Fairway in the cluster, which the chart value nodeApi.enabled installs.
  platforms:
    - selector:
        matchLabels:
          os: linux
          arch: $arch
      uri: $url/$archive
      sha256: $(sha256sum "$to/$archive" | cut -d ' ' -f 1)
      bin: kubectl-fairway
      files:
        - from: kubectl-fairway
          to: .
        - from: LICENSE
          to: .
EOT
echo "$to/$archive"
echo "$to/fairway.yaml"
