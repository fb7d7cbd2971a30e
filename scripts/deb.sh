#!/usr/bin/env bash
# Packs what is built as a Debian package. `make deb` calls it for this machine, scripts/dist.sh for others.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/deb.sh [TARGET [FOLDER]]

Packs the binaries of scripts/build.sh for a target of Rust (default: this machine's) as a Debian package, into a folder
(default: target/debian). Man pages and completions are those of this machine's binary.

  SOURCE_DATE_EPOCH  the time of all files, in seconds since 1970
  CARGO              another cargo
EOT
}

case ${1:-} in
-h | --help)
    usage
    exit
    ;;
-*)
    usage >&2
    exit 2
    ;;
esac
host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host} folder=${2:-target/debian}
options=()
[[ $target == "$host" ]] || options=(--target "$target")

rm -rf target/package
PREFIX=/usr DESTDIR=target/package FAIRWAY_BIN=target/$target/release/fairway \
    FAIRWAY_OF_THIS_MACHINE=target/$host/release/fairway scripts/install.sh
"${CARGO:-cargo}" deb --no-build --no-strip --quiet --output "$folder/" "${options[@]}"
