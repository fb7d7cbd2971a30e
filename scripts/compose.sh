#!/usr/bin/env bash
# The compose lab from nothing: engine, images, containers, and routes on both routers.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOT'
Usage: scripts/compose.sh [up | frr | down | logs | routes]      default: up

  up        build and start Fairway, FRR and BIRD, and wait until both routers have routes of both families
  frr       also start a second Fairway, with FRR as its BGP speaker
  down      remove containers, network, volume and the lab's images
  logs      the logs of the containers
  routes    the routes on the routers

FAIRWAY_BUILD=source compiles Fairway inside the image build, FAIRWAY_BUILD=host takes a static binary from
`make static`. Without it: source, if the Rust image is present or can be pulled, else host.
EOT
}

say() { echo "compose.sh: $*" >&2; }
compose() { scripts/docker.sh compose "$@"; }

choose_build() {
    if [[ -z ${FAIRWAY_BUILD:-} ]]; then
        local image=rust:1-bookworm
        say "looking for $image"
        if docker image inspect "$image" >/dev/null 2>&1 || timeout 900 docker pull -q "$image" >&2; then
            FAIRWAY_BUILD=source
        else
            say "no $image: Fairway is compiled on this machine instead"
            FAIRWAY_BUILD=host
        fi
    fi
    export FAIRWAY_BUILD
    [[ $FAIRWAY_BUILD != host ]] || make static >&2
}

frr() { compose exec -T frr vtysh -c "$1"; }
bird() { compose exec -T bird birdc "$1"; }

routes() {
    echo "--- frr"
    frr 'show bgp ipv4 unicast'
    frr 'show bgp ipv6 unicast'
    echo "--- bird"
    bird 'show route'
}

# How many of the four tables, two families on two routers, have a route.
tables_with_routes() {
    {
        frr 'show bgp ipv4 unicast' | grep '^Displayed'
        frr 'show bgp ipv6 unicast' | grep '^Displayed'
        bird 'show route count' | grep '^[1-9].* in table master'
    } 2>/dev/null | wc -l || true
}

wait_for_routes() {
    local deadline=$((SECONDS + 60)) have=-1 now
    while :; do
        now=$(tables_with_routes)
        [[ $now == "$have" ]] || say "tables with routes: $now of 4"
        have=$now
        ((have < 4)) || return 0
        ((SECONDS < deadline)) || return 1
        sleep 0.3
    done
}

up() {
    scripts/docker.sh ready
    choose_build
    say "building and starting"
    compose up --build -d >&2
    if ! wait_for_routes; then
        compose logs --tail 40 >&2
        say "no routes after a minute; the logs are above, the containers are left running"
        exit 1
    fi
    routes
    cat <<'EOT'

Up. To try next:
  docker compose exec fairway fairway show bgp summary
  docker compose exec frr vtysh -c 'show bgp ipv4 unicast'
  docker compose exec bird birdc show route all
  mv examples/compose/web.yaml /tmp/    its routes are withdrawn; move it back, and they return
  scripts/compose.sh frr                 the same with FRR as the speaker
  scripts/compose.sh down
EOT
}

frr_speaker() {
    scripts/docker.sh ready
    choose_build
    say "building and starting, with FRR as a speaker"
    compose --profile frr up --build -d >&2
}

case ${1:-up} in
up) up ;;
frr) frr_speaker ;;
down) compose --profile frr down --rmi local -v -t 1 ;;
logs) compose --profile frr logs --no-color ;;
routes) routes ;;
-h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
