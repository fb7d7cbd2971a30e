#!/usr/bin/env bash
# Prints the URL of the package archive that this machine already uses, in either of apt's two formats.
set -euo pipefail

format="\$(SITE)" # apt fills this in, not the shell
found=$(apt-get indextargets --format "$format" 'Label: Debian' 2>/dev/null | head -n 1) || true
# Without downloaded lists apt knows no labels, but still the URLs.
[[ -n $found ]] || found=$(apt-get indextargets --format "$format" 2>/dev/null | grep -v security | head -n 1) || true
if [[ -z $found ]]; then
    echo "mirror.sh: apt knows no package archive" >&2
    exit 1
fi
echo "$found"
