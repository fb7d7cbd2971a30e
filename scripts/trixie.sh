#!/usr/bin/env bash
# Creates a root directory with Debian 13, which has newer versions of FRR and BIRD than Debian 12.
set -euo pipefail
cd "$(dirname "$0")"

packages=(frr frr-pythontools bird3)
root=${FAIRWAY_TRIXIE:-${XDG_CACHE_HOME:-/var/cache}/fairway/trixie}

usage() {
    cat <<EOT
Usage: scripts/trixie.sh [--path]

Creates $root (FAIRWAY_TRIXIE, else fairway/trixie in XDG_CACHE_HOME or /var/cache), as root or
through sudo; half a minute and 450 MB. Does nothing if it exists.

  --path    only print where it is, or will be
EOT
}

say() { echo "trixie.sh: $*" >&2; }
die() {
    say "$@"
    exit 1
}

# Its packages, so that a later version of this script can notice that some are missing.
is_complete() { [[ $(cat "$root/etc/fairway-packages" 2>/dev/null) == "${packages[*]}" ]]; }

# Debian into the directory $1, from the archive $2.
fill() {
    # No service may start; and /proc is mounted in a separate mount namespace, so it is never left behind.
    # Not with debootstrap's --include: the setup of the packages that FRR needs fails there.
    debootstrap --variant=minbase trixie "$1" "$2" &&
        printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d" &&
        chmod 755 "$1/usr/sbin/policy-rc.d" &&
        unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$1" \
            env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${packages[@]}" &&
        rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/* "$1"/usr/share/{doc,man,locale}/* &&
        echo "${packages[*]}" >"$1/etc/fairway-packages"
}

make_root() {
    local url building=$root.building log=$root.log
    url=$(./mirror.sh)
    say "making $root from $url"
    rm -rf --one-file-system "$building" "$root"
    if ! fill "$building" "$url" >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        die "building $root failed; see $log"
    fi
    mv "$building" "$root"
    rm -f "$log"
}

case ${1:-} in
'') ;;
--path)
    echo "$root"
    exit
    ;;
*)
    usage
    [[ $1 == -h || $1 == --help ]] && exit
    exit 2
    ;;
esac

if ! is_complete; then
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "this needs root, and there is no sudo"
        exec sudo FAIRWAY_TRIXIE="$root" "$PWD/trixie.sh"
    fi
    command -v debootstrap >/dev/null || die "no debootstrap here; run: scripts/setup.sh trixie"
    umask 022
    mkdir -p "$(dirname "$root")"
    # Two at a time would overwrite each other; the second one finds the result of the first.
    exec 9>"$root.lock"
    flock 9
    is_complete || make_root
fi
say "Debian 13 with ${packages[*]} is in $root"
