#!/usr/bin/env bash
# Is what `make dist` makes what docs/release.md says? Packed from binaries that are built, unpacked, run, verified.
# `make test-dist`.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
    cat <<'EOT'
Usage: tests/dist/run.sh [CHECK...]      default: all

  archive    its content; binaries that need no library, name no path of this machine, and run
  package    the Debian package has the same binaries
  chart      helm lints and renders it, and its schema refuses a wrong value by name
  image      the container image starts, listens on port 179 and answers (needs a container engine)
  bill       each crate that is linked is in the bill of materials, and no other
  checksums  each file has one, and a changed file is noticed
  again      packing again gives the same bytes

It packs this machine's architecture as `make build` left it, and compiles nothing.
EOT
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
say() { echo "dist: $*" >&2; }
fail() {
    say "FAILED: $*"
    exit 1
}
ok() {
    say "ok: $*"
    passed=$((passed + 1))
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
case $(uname -m) in
x86_64) architecture=amd64 machine="Advanced Micro Devices X86-64" ;;
aarch64) architecture=arm64 machine=AArch64 ;;
*) fail "there is no release for $(uname -m)" ;;
esac
name=fairway-$version-linux-$architecture
dist=$folder/dist

# unpack: the archive, once.
unpack() {
    [[ ! -d $folder/$name ]] || return 0
    tar -xzf "$dist/$name.tar.gz" -C "$folder"
}

archive() {
    unpack
    local file listing program said root=$folder/root
    listing=$(tar --numeric-owner -tvzf "$dist/$name.tar.gz")
    [[ -z $(awk '$2 != "0/0"' <<<"$listing") ]] || fail "files are not all of root"
    tar -tzf "$dist/$name.tar.gz" >"$folder/names"
    ! grep -v "^$name/" "$folder/names" || fail "files are outside of $name"
    for file in bin/fairway lib/cni/fairway-cni share/man/man1/fairway.1 share/man/man1/fairway-show.1 \
        share/bash-completion/completions/fairway share/zsh/site-functions/_fairway \
        share/fish/vendor_completions.d/fairway.fish lib/systemd/system/fairway.service lib/sysusers.d/fairway.conf \
        share/doc/fairway/{LICENSE,README.md,fairway.yaml,docs/peers.md,examples/quickstart/peers.yaml}; do
        [[ -s $folder/$name/$file ]] || fail "the archive lacks $file"
    done
    grep -qx 'ExecStart=/usr/local/bin/fairway run --config /etc/fairway' "$folder/$name/lib/systemd/system/fairway.service" ||
        fail "the unit starts something else"
    ok "the archive is whole, and of root"
    mkdir -p "$root"
    for program in bin/fairway lib/cni/fairway-cni; do
        file=$folder/$name/$program
        said=$(readelf -hldW "$file")
        [[ $said == *Machine:*"$machine"* ]] || fail "$program is not for $machine"
        [[ $said != *INTERP* && $said != *"(NEEDED)"* ]] || fail "$program needs libraries"
        ! grep -aoE "($PWD|${CARGO_HOME:-$HOME/.cargo})/[a-zA-Z0-9_./-]*" "$file" | head -n 3 | grep . ||
            fail "$program names paths of this machine"
        install "$file" "$root/"
    done
    ok "the binaries need no library, and name no path of this machine"
    # Where there is nothing else at all.
    [[ $(chroot "$root" /fairway --version) == "fairway $version ("* ]] || fail "fairway --version"
    [[ $(env -i CNI_COMMAND=VERSION "$(command -v chroot)" "$root" /fairway-cni <<<'{"cniVersion": "1.0.0"}') == *supportedVersions* ]] ||
        fail "the CNI plugin does not answer"
    chroot "$root" /fairway completions bash | cmp - "$folder/$name/share/bash-completion/completions/fairway" ||
        fail "the completions are of another binary"
    ok "they run in an empty folder"
}

package() {
    unpack
    local deb=$dist/fairway_$version-1_$architecture.deb to=$folder/package
    [[ $(dpkg-deb -f "$deb" Package Version Architecture | tr '\n' ' ') == \
        "Package: fairway Version: $version-1 Architecture: $architecture " ]] || fail "its fields: $(dpkg-deb -f "$deb")"
    dpkg-deb -x "$deb" "$to"
    local program
    for program in bin/fairway lib/cni/fairway-cni; do
        cmp "$to/usr/$program" "$folder/$name/$program" || fail "its $program is another than that of the archive"
    done
    [[ -s $(find "$to" -name fairway.service) && -s $to/etc/fairway/fairway.yaml && -s $to/usr/share/man/man1/fairway.1.gz ]] ||
        fail "it lacks unit, configuration or man page"
    ok "the package has the same binaries, and what a service needs"
}

chart() {
    local helm said chart=$dist/fairway-$version.tgz
    helm=$(scripts/helm.sh)
    "$helm" lint --strict --quiet "$chart" || fail "helm lint"
    [[ $("$helm" show chart "$chart" | grep -cx "\(version\|appVersion\): $version") == 2 ]] || fail "it is of another version"
    "$helm" template x "$chart" --include-crds >"$folder/rendered.yaml"
    "$helm" template x deploy/helm/fairway --include-crds | cmp - "$folder/rendered.yaml" || fail "it renders otherwise than the checkout"
    grep -q '^kind: DaemonSet' "$folder/rendered.yaml" || fail "it renders no speaker"
    ok "the chart renders as the checkout does"
    if said=$("$helm" template x "$chart" --set speaker.logLevel=loud 2>&1); then fail "its schema takes any value"; fi
    [[ $said == *speaker*logLevel* ]] || fail "refused without the name of the value: $said"
    ok "its schema refuses a wrong value by name"
}

image() {
    FAIRWAY_IMAGE=$dist/fairway-$version-image-linux-$architecture.tar tests/deploy/run.sh image || fail "the image"
    ok "the image starts, listens and answers"
}

bill() {
    unpack
    local bill=$dist/fairway-$version.cdx.json crates=$folder/crates
    [[ $(jq -r '"\(.bomFormat) \(.specVersion) \(.metadata.component.version)"' "$bill") == "CycloneDX 1.6 $version" ]] ||
        fail "it is no CycloneDX 1.6 of $version"
    jq -r '.components[] | select(.name | IN("glibc", "rust-std") | not) | "\(.name) \(.version)"' "$bill" | LC_ALL=C sort >"$crates"
    # What cargo says. Procedural macros run in the compiler and are not linked.
    cargo tree --locked -p fairway -p fairway-cni -e normal,no-proc-macro --target "$(rustc -vV | sed -n 's/^host: //p')" \
        --prefix none --format '{p}' | sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1 \2/p' | LC_ALL=C sort -u | diff - "$crates" ||
        fail "it lists other crates than cargo"
    ok "it lists the $(wc -l <"$crates") crates that cargo links"
    # What the binary says: messages of a panic name the crate's file.
    { grep -aohE '/cargo/registry/src/[^/]*/[a-zA-Z0-9_+.-]*/' "$folder/$name"/{bin/fairway,lib/cni/fairway-cni} || true; } |
        sed -E 's|.*/(.*)-([0-9]+\.[0-9].*)/$|\1 \2|' | LC_ALL=C sort -u >"$folder/seen"
    (($(wc -l <"$folder/seen") >= 20)) || fail "the binary names only $(wc -l <"$folder/seen") crates"
    [[ -z $(LC_ALL=C comm -23 "$folder/seen" "$crates") ]] ||
        fail "the binary has crates that it lacks: $(LC_ALL=C comm -23 "$folder/seen" "$crates")"
    ok "it has each of the $(wc -l <"$folder/seen") crates that the binary itself names"
    # Checksums and licences, by Cargo.lock.
    awk -F'"' '/^name = /{name=$2} /^version = /{version=$2} /^checksum = /{print name, version, $2}' Cargo.lock |
        LC_ALL=C sort >"$folder/locked"
    jq -r '.components[] | select(.purl) | "\(.name) \(.version) \(.hashes[0].content)"' "$bill" | LC_ALL=C sort >"$folder/hashed"
    [[ -z $(LC_ALL=C comm -23 "$folder/hashed" "$folder/locked") ]] || fail "its checksums are not those of Cargo.lock"
    [[ $(grep -vc '^fairway' "$crates") == $(wc -l <"$folder/hashed") ]] || fail "crates without a checksum"
    jq -e 'all(.components[]; .licenses[0].expression | length > 0)' "$bill" >/dev/null || fail "components without a licence"
    ok "each has its licence, and the checksum of Cargo.lock"
    jq -e '([.components[]["bom-ref"], .metadata.component["bom-ref"]] | sort) == ([.dependencies[].ref] | sort)
        and ([.dependencies[].dependsOn[]] - [.components[]["bom-ref"]] == [])' "$bill" >/dev/null || fail "its graph has loose ends"
    ok "its graph names each of them"
}

checksums() {
    local file changed=$folder/changed
    (cd "$dist" && sha256sum --check --strict --quiet SHA256SUMS) || fail "SHA256SUMS"
    [[ $(find "$dist" -type f ! -name SHA256SUMS -printf '%f\n' | sort) == $(sed 's/^[0-9a-f]*  //' "$dist/SHA256SUMS" | sort) ]] ||
        fail "a file has no checksum"
    ok "each of the $(wc -l <"$dist/SHA256SUMS") files has its checksum"
    cp -r "$dist" "$changed"
    for file in "$changed"/fairway*; do
        printf x >>"$file"
        ! (cd "$changed" && sha256sum --check --strict --quiet SHA256SUMS >/dev/null 2>&1) || fail "a change of $file is not noticed"
        truncate -s -1 "$file"
    done
    ok "a change of any is noticed"
}

again() {
    TO=$folder/again pack
    diff "$dist/SHA256SUMS" "$folder/again/SHA256SUMS" || fail "packed again, files differ"
    ok "packing again gives the same bytes"
}

pack() { ARCHITECTURES=$architecture scripts/dist.sh --built >/dev/null; }

checks=()
for argument in "$@"; do
    case $argument in
    archive | package | chart | image | bill | checksums | again) checks+=("$argument") ;;
    -h | --help)
        usage
        exit
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done
((${#checks[@]})) || checks=(archive package chart image bill checksums again)
[[ $(id -u) == 0 ]] || fail "this needs root: an empty folder as the root of a process"
TO=$dist pack
for check in "${checks[@]}"; do "$check"; done
echo "$passed passed, 0 failed"
