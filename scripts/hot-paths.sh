#!/usr/bin/env bash
# Counts the instructions of the speaker's hot paths, and compares them with what they were.
set -euo pipefail

usage() {
    cat <<'EOT'
Usage: scripts/hot-paths.sh [--write]

Counts the instructions of each path of crates/bgp/benches/hot_paths.rs with callgrind, and fails if one takes more than
10 % above its line in crates/bgp/benches/hot_paths.tsv. With --write, writes that file again.
Needs valgrind. Example: scripts/hot-paths.sh
EOT
}

write=
case ${1:-} in
    --write) write=1 ;;
    "") ;;
    *)
        usage
        [[ $1 == --help ]] && exit 0
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
known=crates/bgp/benches/hot_paths.tsv
if ! command -v valgrind >/dev/null; then
    echo "hot-paths.sh: valgrind is not installed (Debian: apt-get install valgrind)" >&2
    exit 1
fi
# With the names of functions: what is counted is found by its name.
export CARGO_PROFILE_BENCH_STRIP=none
program=$(${CARGO:-cargo} bench --locked -p fairway-bgp --bench hot_paths --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*hot_paths[^"]*\)".*/\1/p' | tail -n 1)
counts=$(mktemp)
trap 'rm -f "$counts" "$counts.path"' EXIT
for path in $("$program" --list); do
    valgrind --tool=callgrind --toggle-collect='*hot_paths::measured*' --callgrind-out-file="$counts.path" \
        "$program" "$path" >/dev/null 2>&1
    awk -v path="$path" '/^summary:/ { printf "%s\t%d\n", path, $2 }' "$counts.path" >>"$counts"
done
if [[ $write ]]; then
    cp "$counts" "$known"
    cat "$known"
    exit
fi
awk -F '\t' '
    NR == FNR { known[$1] = $2; next }
    {
        seen[$1] = 1
        if (!($1 in known)) {
            printf "%-28s %12d instructions; has no line in the file\n", $1, $2
            failed = 1
            next
        }
        percent = ($2 / known[$1] - 1) * 100
        printf "%-28s %12d instructions, %+.1f %%\n", $1, $2, percent
        if (percent > 10) failed = 1
    }
    END {
        for (path in known) if (!(path in seen)) { print path ": no such path"; failed = 1 }
        if (failed) print "more instructions than before: scripts/hot-paths.sh --write if that is meant"
        exit failed
    }
' "$known" "$counts"
