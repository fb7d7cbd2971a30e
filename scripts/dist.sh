#!/usr/bin/env bash
# Makes a release. `make dist` calls it, when this machine's binaries are built.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/dist.sh [--built]

Packs a release into dist/: for each architecture an archive, a Debian package and a container image; the chart, a bill of
materials, and SHA256SUMS. Binaries for the architecture that this machine has not are built first, where Rust's
standard library and a linker for it can be had; where they cannot, that architecture is left out, and the last lines say so.
docs/release.md describes each file.

  --built            compile no binary: pack what is built
  ARCHITECTURES      "amd64 arm64" (default), or one of them
  TO                 write into this folder
  SOURCE_DATE_EPOCH  the time of everything, in seconds since 1970 (default: that of the commit)
  CARGO              another cargo
EOT
}

say() { echo "dist.sh: $*" >&2; }
die() {
    say "$@"
    exit 1
}

compile=yes
case ${1:-} in
'') ;;
--built) compile=no ;;
-h | --help)
    usage
    exit
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

cargo=${CARGO:-cargo}
dist=${TO:-dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
host=$(rustc -vV | sed -n 's/^host: //p')
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
declare -A targets=([amd64]=x86_64-unknown-linux-gnu [arm64]=aarch64-unknown-linux-gnu)
read -ra architectures <<<"${ARCHITECTURES:-amd64 arm64}"
left_out=() packed=()

# cross_build TARGET: for a machine that is not this one. Says why it cannot, and fails.
cross_build() {
    local target=$1 linker=${1%%-*}-linux-gnu-gcc name
    if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
        if ! command -v rustup >/dev/null || ! rustup target add "$target" >&2; then
            reason="Rust's standard library for it cannot be had; with rustup: rustup target add $target"
            return 1
        fi
    fi
    command -v "$linker" >/dev/null || scripts/setup.sh cross >&2 || true
    if ! command -v "$linker" >/dev/null; then
        reason="there is no $linker, and scripts/setup.sh cross could not install it"
        return 1
    fi
    name=${target^^}
    env "CARGO_TARGET_${name//-/_}_LINKER=$linker" "CC_${target//-/_}=$linker" scripts/build.sh "$target" ||
        die "the build for $target failed"
}

# tar_of FOLDER NAME OUTPUT: NAME in FOLDER as .tar.gz, the same bytes each time.
tar_of() {
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
        --exclude-from=deploy/helm/fairway/.helmignore -cf - "$2" | gzip -n -9 >"$3"
}

# pack ARCHITECTURE: all that is made for one.
pack() {
    local architecture=$1 target=${targets[$1]} name=fairway-$version-linux-$1 to programs
    programs=target/$target/release
    to=$scratch/$name
    PREFIX=/usr/local DESTDIR=$scratch/root FAIRWAY_BIN=$programs/fairway \
        FAIRWAY_OF_THIS_MACHINE=target/$host/release/fairway scripts/install.sh
    mv "$scratch/root/usr/local" "$to"
    install -d "$to/share/doc/fairway"
    install -m 0644 LICENSE ./*.md packaging/fairway.yaml "$to/share/doc/fairway/"
    # Whole, since pages link to each other, to pictures and to examples.
    cp -r docs examples "$to/share/doc/fairway/"
    chmod -R u=rwX,go=rX "$to/share/doc/fairway"
    rm -rf "$scratch/root"
    tar_of "$scratch" "$name" "$dist/$name.tar.gz"
    "$release" image --architecture "$architecture" --programs "$programs" --output "$dist/fairway-$version-image-linux-$architecture.tar"
    CARGO=$cargo scripts/deb.sh "$target" "$dist"
}

mkdir -p "$dist"
rm -f "$dist"/fairway[-_]* "$dist/SHA256SUMS"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[[ -x target/$host/release/fairway ]] || die "target/$host/release/fairway does not exist; run: make build"
"$cargo" build --locked --quiet --package fairway-release
release=${CARGO_TARGET_DIR:-target}/debug/fairway-release

for architecture in "${architectures[@]}"; do
    target=${targets[$architecture]:-}
    [[ -n $target ]] || die "there is no release for $architecture: ARCHITECTURES may name ${!targets[*]}"
    if [[ $target != "$host" && $compile == yes ]] && ! cross_build "$target"; then
        left_out+=("$architecture: $reason")
    elif [[ ! -x target/$target/release/fairway ]]; then
        left_out+=("$architecture: target/$target/release/fairway is not built")
    else
        pack "$architecture"
        packed+=(--target "$target")
    fi
done
((${#packed[@]})) || die "nothing could be packed: ${left_out[*]}"

cp -r deploy/helm/fairway "$scratch/fairway"
tar_of "$scratch" fairway "$dist/fairway-$version.tgz"
"$release" bill-of-materials "${packed[@]}" --output "$dist/fairway-$version.cdx.json"
(cd "$dist" && sha256sum -- fairway* >SHA256SUMS)
(cd "$dist" && ls -l)
for line in "${left_out[@]}"; do say "left out: $line"; done
