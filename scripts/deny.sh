#!/usr/bin/env bash
# Asks cargo-deny whether all crates are allowed. `make lint` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/deny.sh [--required]

Checks licences, versions and sources of all crates against deny.toml, and security advisories against RustSec's
database. Where the database cannot be fetched, it says so and checks the rest. Where cargo-deny is missing, it says so and
checks nothing: `cargo test -p fairway-release` checks licences, versions and sources without it.

  --required  cargo-deny must be here
EOT
}

say() { echo "deny.sh: $*" >&2; }

required=no
case ${1:-} in
'') ;;
--required) required=yes ;;
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
if ! "$cargo" deny --version >/dev/null 2>&1; then
    say "not checked: cargo-deny is not installed; run: scripts/setup.sh lint"
    [[ $required == no ]] && exit || exit 1
fi
# An exception that nothing needs any more is an error, too.
"$cargo" deny --locked --offline check --hide-inclusion-graph -D unmatched-skip licenses bans sources
if said=$("$cargo" deny --locked fetch db 2>&1); then
    "$cargo" deny --locked --offline check --hide-inclusion-graph advisories
else
    say "advisories are not checked: the database cannot be fetched: $(tail -n 1 <<<"$said")"
fi
