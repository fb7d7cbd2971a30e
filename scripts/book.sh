#!/usr/bin/env bash
# Builds the documentation as a book. `make book` calls it, and tests/book.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<EOT
Usage: scripts/book.sh FOLDER

Builds docs/ with mdbook into FOLDER/docs, and puts what its pages link to beside it, so that the book can be read from there
without a server: open FOLDER/docs/index.html.
EOT
}

case ${1:---help} in
--help | -h) usage && exit ;;
-*) usage >&2 && exit 2 ;;
esac
if ! command -v mdbook >/dev/null; then
    echo "book.sh: there is no mdbook: cargo install mdbook --locked, or take it from your distribution" >&2
    exit 1
fi

mkdir -p "$1"
folder=$(realpath "$1")
mdbook build --dest-dir "$folder/docs"
# Pages link to files beside docs/; mdbook takes each link to a page for one of its own.
cp -r examples deploy tests fuzz crates LICENSE docker-compose.yml ./*.md "$folder"
find "$folder/docs" -name '*.html' -exec sed -i -E 's#href="((\.\./)+[A-Za-z/]*(ARCHITECTURE|CONTRIBUTING|README|SECURITY|CHANGELOG))\.html#href="\1.md#g' {} +
