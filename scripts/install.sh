#!/usr/bin/env bash
# Installs or uninstalls Fairway. `make install`, `make uninstall` and `make deb` call it.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
binary=${FAIRWAY_BIN:-target/$(rustc -vV | sed -n 's/^host: //p')/release/fairway}
# Prints man pages and completions, where the binary is for another architecture.
speaking=${FAIRWAY_OF_THIS_MACHINE:-$binary}
config=$root/etc/fairway

usage() {
    cat <<EOT
Usage: scripts/install.sh [--uninstall]

Installs the binary, the CNI plugin beside it, man pages, completions, systemd unit and system user below PREFIX (default
/usr/local), and an example configuration in /etc/fairway, unless one exists. Never starts a service.

  DESTDIR      install below this folder, for a package
  FAIRWAY_BIN  the binary (default: the one of \`make build\`)
  FAIRWAY_OF_THIS_MACHINE  where that one is for another architecture: one that runs here, and prints the man pages
EOT
}

say() { echo "install.sh: $*" >&2; }
die() {
    say "$@"
    exit 1
}

install_files() {
    [[ -x $binary ]] || die "$binary does not exist; run: make build"
    local to=$root$prefix man=$root$prefix/share/man/man1 shell
    install -D -m 0755 "$binary" "$to/bin/fairway"
    # In lib/cni, where Debian's packages have such plugins.
    [[ ! -x ${binary%/*}/fairway-cni ]] ||
        install -D -m 0755 "${binary%/*}/fairway-cni" "$to/lib/cni/fairway-cni"
    install -d -m 0755 "$man"
    (umask 022 && "$speaking" man --dir "$man")
    local -A completions=(
        [bash]=share/bash-completion/completions/fairway
        [zsh]=share/zsh/$([[ $prefix == /usr ]] && echo vendor-completions || echo site-functions)/_fairway
        [fish]=share/fish/vendor_completions.d/fairway.fish
    )
    for shell in "${!completions[@]}"; do
        "$speaking" completions "$shell" | install -D -m 0644 /dev/stdin "$to/${completions[$shell]}"
    done
    sed "s|/usr/bin/fairway|$prefix/bin/fairway|" packaging/fairway.service |
        install -D -m 0644 /dev/stdin "$to/lib/systemd/system/fairway.service"
    install -D -m 0644 packaging/fairway.sysusers "$to/lib/sysusers.d/fairway.conf"
    # Files with passwords will be there: only for root and the daemon.
    [[ -d $config ]] || install -d -m 0750 "$config"
    [[ -e $config/fairway.yaml ]] || install -m 0640 packaging/fairway.yaml "$config/fairway.yaml"
}

# What a package does after it is unpacked.
set_up() {
    if ! command -v systemd-sysusers >/dev/null; then
        say "no systemd-sysusers on this machine: create a user and a group fairway, and give /etc/fairway to the group"
        return
    fi
    systemd-sysusers "$prefix/lib/sysusers.d/fairway.conf"
    chgrp fairway "$config" "$config/fairway.yaml"
    chmod 2750 "$config"
    say "edit $config/fairway.yaml, then run: systemctl daemon-reload && systemctl enable --now fairway"
}

uninstall_files() {
    local to=$root$prefix
    rm -f "$to/bin/fairway" "$to/lib/cni/fairway-cni" "$to"/share/man/man1/fairway{,-*}.1 \
        "$to/share/bash-completion/completions/fairway" "$to"/share/zsh/{vendor-completions,site-functions}/_fairway \
        "$to/share/fish/vendor_completions.d/fairway.fish" \
        "$to/lib/systemd/system/fairway.service" "$to/lib/sysusers.d/fairway.conf"
    say "removed; kept: $config, $root/var/lib/fairway, and the user fairway"
}

case ${1:-} in
'')
    install_files
    [[ -n $root ]] || set_up
    ;;
--uninstall)
    if [[ -z $root && -d /run/systemd/system ]]; then
        systemctl disable --now --quiet fairway.service || say "the service was not running"
    fi
    uninstall_files
    ;;
*)
    usage
    [[ $1 == -h || $1 == --help ]] && exit
    exit 2
    ;;
esac
