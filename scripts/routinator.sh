#!/usr/bin/env bash
# Finds Routinator, the RPKI cache of the interoperability tests, or builds it.
set -euo pipefail
# shellcheck source=scripts/kept.sh
source "$(dirname "$0")/kept.sh"

usage() {
    cat <<'EOT'
Usage: scripts/routinator.sh [--find]

Prints the path of routinator: that of FAIRWAY_ROUTINATOR, if it is set; else the one on the PATH; else
${XDG_CACHE_HOME:-$HOME/.cache}/fairway/routinator/VERSION/bin/routinator, which is built when it is missing: from its crate,
at the lowest priority and once (five minutes on two cores).

  --find   build nothing: exit status 3 if there is none
EOT
}

version=0.15.3

take_arguments "$@"

if [[ -n ${FAIRWAY_ROUTINATOR:-} ]]; then
    [[ -x $FAIRWAY_ROUTINATOR ]] || die "FAIRWAY_ROUTINATOR is $FAIRWAY_ROUTINATOR, which is not an executable file"
    echo "$FAIRWAY_ROUTINATOR"
    exit
fi
if command -v routinator; then
    exit
fi

folder=$(kept routinator "$version")
program=$folder/bin/routinator
if [[ -x $program ]]; then
    echo "$program"
    exit
fi

begin_build "$folder"
if [[ ! -x $program ]]; then
    say "building routinator $version, which takes minutes"
    # Without its web interface. In a folder of its own: the settings of this checkout are not its.
    (cd "$folder" && nice -n 19 cargo install routinator --version "$version" --no-default-features --root "$folder" --quiet >&2)
fi
echo "$program"
