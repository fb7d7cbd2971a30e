#!/usr/bin/env bash
# Writes the files that are generated from the chart: the kustomize bases, and the tables of
# docs/kubernetes.md, so that none of them can differ from it.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/manifests.sh [--check]

Renders deploy/helm/fairway into deploy/base, deploy/components and the tables of docs/kubernetes.md.

  --check   write nothing: exit status 1 and the difference if something is stale
EOT
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check=
case ${1:-} in
'') ;;
--check) check=yes ;;
-h | --help)
    usage
    exit
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

helm=$(scripts/helm.sh)
chart=deploy/helm/fairway page=docs/kubernetes.md

# One template of a chart, without helm's line about a symbolic link.
template() {
    "$helm" template fairway "$1" --namespace metallb-system --show-only "templates/$2" "${@:3}" \
        2> >(grep -v 'found symbolic link' >&2) | sed '/^# Source: /d'
}

# render FOLDER FILE [VALUE...]
render() {
    local to=$scratch/deploy/$1/$2 values=("${@:3}")
    mkdir -p "${to%/*}"
    {
        echo '# Made by scripts/manifests.sh from the chart; change its templates, not this file.'
        template "$chart" "$2" "${values[@]/#/--set=}"
    } >"$to"
}

for file in service-accounts rbac-controller rbac-speaker controller speaker; do render base "$file.yaml"; done
render components/network-policy networkpolicy.yaml networkpolicies.enabled=true
render components/webhook webhook.yaml controller.webhookMode=enabled
render components/prometheus podmonitor.yaml prometheus.podMonitor.enabled=true
render components/prometheus prometheusrule.yaml prometheus.prometheusRule.enabled=true
render components/prometheus dashboard.yaml prometheus.grafanaDashboard.enabled=true

# The tables read templates and schema, so a copy of the chart has them beside it.
cp -rL "$chart" "$scratch/chart"
cp "$chart/values.schema.json" "$scratch/chart/files/schema.json"
cp scripts/tables/*.yaml "$scratch/chart/templates/"
mkdir -p "$scratch/docs"
cp "$page" "$scratch/$page"
for table in values permissions; do
    template "$scratch/chart" "$table.yaml" | sed -n 's/^  |/|/p' >"$scratch/$table"
    # Between the two marks.
    sed -i -e "/<!-- $table -->/,/<!-- end -->/{/<!-- $table -->/{p;r $scratch/$table
}; /<!-- end -->/!d}" "$scratch/$page"
done

stale=
while read -r file; do
    file=${file#"$scratch"/}
    if [[ -z $check ]]; then
        cp "$scratch/$file" "$file"
    elif ! diff -u "$file" "$scratch/$file"; then
        stale=yes
    fi
done < <(find "$scratch/deploy" "$scratch/docs" -type f)
if [[ -n $stale ]]; then
    echo "manifests.sh: stale; run: make manifests" >&2
    exit 1
fi
