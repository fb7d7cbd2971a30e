#!/usr/bin/env bash
# Writes what kustomize takes from the templates of the chart, so that the two cannot differ.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/manifests.sh [--check]

Renders deploy/helm/fairway into deploy/base and deploy/components.

  --check   writes nothing: exit status 1 and the difference when they are stale
EOT
}

folder=deploy
case ${1:-} in
'') ;;
--check)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    mkdir -p "$folder"/base "$folder"/components/{network-policy,prometheus}
    ;;
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

# render FOLDER TEMPLATE [VALUE...]
render() {
    local to=$folder/$1/$2 file=$2
    shift 2
    {
        echo '# Made by scripts/manifests.sh from the chart; change its templates, not this file.'
        "$helm" template fairway deploy/helm/fairway --namespace metallb-system --show-only "templates/$file" \
            "${@/#/--set=}" 2> >(grep -v 'found symbolic link' >&2) | sed '/^# Source: /d'
    } >"$to"
}

for file in service-accounts rbac-controller rbac-speaker controller speaker; do render base "$file.yaml"; done
render components/network-policy networkpolicy.yaml networkpolicies.enabled=true
render components/prometheus podmonitor.yaml prometheus.podMonitor.enabled=true
render components/prometheus prometheusrule.yaml prometheus.prometheusRule.enabled=true
render components/prometheus dashboard.yaml prometheus.grafanaDashboard.enabled=true

[[ $folder == deploy ]] || for part in base components; do
    diff -ru -x kustomization.yaml -x namespace.yaml -x net-raw "deploy/$part" "$folder/$part" || {
        echo "manifests.sh: deploy/$part is stale; run: make manifests" >&2
        exit 1
    }
done
