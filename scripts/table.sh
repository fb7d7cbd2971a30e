#!/usr/bin/env bash
# Copies a generated table into pages, between two marks.
set -euo pipefail

usage() {
    cat <<'EOT'
Usage: [MARK=interop] scripts/table.sh TABLE PAGE...

Replaces the lines between <!-- MARK:begin --> and <!-- MARK:end --> in each PAGE by the lines of
TABLE that begin with |.
Example: scripts/table.sh target/interop.md docs/interop.md
EOT
}

if [[ ${1:-} == --help || $# -lt 2 ]]; then
    usage
    [[ ${1:-} == --help ]] && exit 0
    exit 2
fi
table=$1
mark=${MARK:-interop}
shift
new=$(mktemp)
trap 'rm -f "$new"' EXIT
for page in "$@"; do
    if [[ $(grep -c "^<!-- $mark:\(begin\|end\) -->$" "$page") -ne 2 ]]; then
        echo "table.sh: $page has no marks $mark for the table" >&2
        exit 1
    fi
    awk -v table="$table" -v mark="$mark" '
        $0 == "<!-- " mark ":end -->" { inside = 0 }
        !inside { print }
        $0 == "<!-- " mark ":begin -->" {
            inside = 1
            while ((getline line < table) > 0) if (line ~ /^\|/) print line
        }
    ' "$page" >"$new"
    cat "$new" >"$page"
done
