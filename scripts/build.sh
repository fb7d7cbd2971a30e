#!/usr/bin/env bash
# Builds the release binaries, statically linked. `make build` calls it for this machine, scripts/dist.sh for others.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/build.sh [TARGET]

Builds fairway and fairway-cni for a target of Rust (default: this machine's) into target/TARGET/release. They are linked
with glibc and need no library where they run. The paths of this machine are not in them, so that the same source and
compiler give the same binary in any folder.

  CARGO  another cargo
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
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
crates=${CARGO_HOME:-$HOME/.cargo}

# Not RUSTFLAGS, which ends a flag at each space of a path.
flags=(-Ctarget-feature=+crt-static "--remap-path-prefix=$PWD=/fairway" "--remap-path-prefix=$crates=/cargo")
joined=$(printf '\x1f%s' "${flags[@]}")
export CARGO_ENCODED_RUSTFLAGS=${joined:1}
unset RUSTFLAGS
# The allocator is C, and its file names are in its messages.
variable=CFLAGS_${target//-/_}
export "$variable=${!variable:+${!variable} }-ffile-prefix-map=$crates=/cargo"
exec "${CARGO:-cargo}" build --locked --release --package fairway --package fairway-cni --bin fairway --bin fairway-cni \
    --target "$target"
