#!/usr/bin/env bash
# Runs a command in the VM, with a real API server outside that it reaches in plain HTTP: FAIRWAY_TEST_API is its address,
# FAIRWAY_KUBE_PROXY the program of kube-proxy. Arguments are those of scripts/vm.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
relay=
clean_up() {
    [[ -z $relay ]] || kill "$relay" 2>/dev/null || true
    stop_api_server
    rm -rf "$folder"
}
FAIRWAY_KUBE_PROXY=$(scripts/kube-proxy.sh)
export FAIRWAY_KUBE_PROXY
# shellcheck source=tests/deploy/api_server.sh
source tests/deploy/api_server.sh
trap clean_up EXIT
start_api_server
# Below the ports that the kernel gives out.
port=$((10000 + RANDOM % 9000))
kubectl proxy --port "$port" --accept-hosts '.*' >"$folder/relay.log" 2>&1 &
relay=$!
export FAIRWAY_TEST_API=10.0.2.2:$port
scripts/vm.sh --network "$@"
