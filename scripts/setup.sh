#!/usr/bin/env bash
# Installs what `make test` needs besides a Rust toolchain. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/setup.sh [GROUP...]      default: rust routers trixie network docker

  rust      a C linker and make; checks that cargo is there and new enough
  routers   FRR, BIRD, GoBGP, OpenBGPD: the peers of the interoperability tests
  trixie    Debian 13 in a separate root directory (scripts/trixie.sh): FRR 10 and BIRD 3
  network   tools for network namespaces: ip, nft, tcpdump, arping, ndisc6, busybox; the standard CNI plugins
  docker    a Docker engine where there is none, and debootstrap for machines that cannot pull images
  rivals    keepalived, which `make bench-layer2` measures beside ours and whose configuration is imported; not started
  kubernetes  etcd, openssl and curl, for the API server that scripts/kube-apiserver.sh builds
  deploy    jq, and what `make test-deploy` needs to fetch promtool
  vm        QEMU and the tools for the initrd of scripts/vm.sh: for tests that need another kernel
  browser   Chromium, with which `make ui-pictures` photographs the looking glass
  lint      shellcheck, and cargo-deny, for `make lint`
  counts    valgrind, with which scripts/hot-paths.sh counts instructions
  deb       dpkg-deb, and cargo-deb by `cargo install`, for `make deb`
  cross     a C compiler for the other architecture of `make dist`

Installs only Debian packages that are missing, as root or through sudo, removes none and starts nothing.
`make run` needs none of them.
EOT
}

say() { echo "setup.sh: $*" >&2; }
die() {
    say "$@"
    exit 1
}

routers=(frr frr-pythontools bird2 gobgpd openbgpd)

packages_of() {
    case $1 in
    rust) echo gcc libc6-dev make ;;
    routers) echo "${routers[@]}" ;;
    trixie) echo debootstrap debian-archive-keyring ;;
    network) echo curl iproute2 nftables tcpdump iputils-arping ndisc6 busybox-static containernetworking-plugins ;;
    docker)
        echo debootstrap ca-certificates
        # Docker's own packages conflict with Debian's; any engine will do.
        command -v dockerd >/dev/null || timeout 10 docker info >/dev/null 2>&1 || echo docker.io
        ;;
    rivals) echo keepalived ;;
    kubernetes) command -v etcd >/dev/null || echo etcd-server; echo openssl; echo curl; echo faketime ;;
    deploy) echo jq dpkg ;;
    vm) echo qemu-system-x86 busybox-static kmod cpio xz-utils ipvsadm nftables iptables ipset conntrack ;;
    browser) echo chromium fonts-dejavu-core ;;
    lint) echo shellcheck ;;
    counts) echo valgrind ;;
    deb) echo dpkg gcc libc6-dev xz-utils ;;
    cross)
        if [[ $(uname -m) == aarch64 ]]; then
            echo gcc-x86-64-linux-gnu libc6-dev-amd64-cross
        else
            echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
        fi
        ;;
    *) return 1 ;;
    esac
}

installed() { [[ $(dpkg-query -W -f "\${db:Status-Status}" "$1" 2>/dev/null) == installed ]]; }

check_rust() {
    local need have
    need=$(sed -n 's/^rust-version *= *"\([0-9.]*\)"/\1/p' Cargo.toml | head -n 1)
    need=${need:-1.89}
    if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
        die "no cargo here; install Rust $need or newer with rustup: https://rustup.rs"
    fi
    have=$(rustc --version | cut -d' ' -f2)
    [[ $(printf '%s\n' "$need" "$have" | sort -V | head -n 1) == "$need" ]] ||
        die "rustc $have is too old, $need or newer is needed; run: rustup update stable"
    say "rustc $have"
}

as_root=()
install_packages() {
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null ||
            die "this needs root, and there is no sudo; as root run: apt-get install -y $*"
        as_root=(sudo)
    fi
    # One at a time: two would each take the other's policy file for the machine's own.
    exec 9>"${TMPDIR:-/tmp}/fairway-setup-$(id -u).lock"
    flock 9

    # Debian starts a service as soon as its package is unpacked, unless this file says no.
    policy=/usr/sbin/policy-rc.d
    saved=$policy.before-fairway
    [[ ! -e $policy || -e $saved ]] || "${as_root[@]}" mv "$policy" "$saved"
    trap restore_policy EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"

    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    say "apt-get update"
    "${apt[@]}" update >&2
    say "installing: $*"
    "${apt[@]}" install -y --no-install-recommends --no-remove "$@" >&2

    # Services that are installed for tests must not start with the next boot either.
    local package unit
    if [[ -d /run/systemd/system ]]; then
        for package in "$@"; do
            [[ " ${routers[*]} etcd-server " == *" $package "* ]] || continue
            while read -r unit; do
                if "${as_root[@]}" systemctl disable --quiet "${unit##*/}"; then
                    say "${unit##*/} is installed, but disabled"
                else
                    say "${unit##*/} could not be disabled: it starts with the next boot"
                fi
            done < <(dpkg -L "$package" | grep '/systemd/system/[^@]*\.service$' || true)
        done
    fi
}

restore_policy() {
    if [[ -e $saved ]]; then
        "${as_root[@]}" mv "$saved" "$policy"
    else
        "${as_root[@]}" rm -f "$policy"
    fi
}

groups=()
for argument in "$@"; do
    case $argument in
    -h | --help)
        usage
        exit
        ;;
    *)
        packages_of "$argument" >/dev/null || {
            usage >&2
            exit 2
        }
        groups+=("$argument")
        ;;
    esac
done
((${#groups[@]})) || groups=(rust routers trixie network docker)

wanted=()
for group in "${groups[@]}"; do
    for package in $(packages_of "$group"); do wanted+=("$package"); done
done

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=()
    for package in "${wanted[@]}"; do installed "$package" || missing+=("$package"); done
    if ((${#missing[@]})); then
        install_packages "${missing[@]}"
    fi
    say "all packages are installed: ${wanted[*]}"
else
    say "this is not Debian; install these packages yourself, under the names of this system: ${wanted[*]}"
fi

[[ " ${groups[*]} " != *" trixie "* ]] || scripts/trixie.sh
if [[ " ${groups[*]} " == *" rust "* ]]; then check_rust; fi
if [[ " ${groups[*]} " == *" deb "* ]] && ! command -v cargo-deb >/dev/null; then
    # Not optimized: an optimized build would take longer than it ever saves.
    say "installing cargo-deb, which takes a minute"
    cargo install --locked --quiet --debug --no-default-features cargo-deb
fi

deny_version=0.20.2
if [[ " ${groups[*]} " == *" lint "* && $(cargo deny --version 2>/dev/null) != "cargo-deny $deny_version" ]]; then
    # Not optimized: it checks in a second all the same.
    say "installing cargo-deny $deny_version, which takes many minutes"
    cargo install --locked --quiet --debug --version "$deny_version" cargo-deny
fi
