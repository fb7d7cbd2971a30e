#!/usr/bin/env bash
# Gets a Docker engine, compose and the base image ready, on machines where some or all of it is missing.
set -euo pipefail

scripts=$(dirname "$(realpath "$0")")
base_image=debian:bookworm-slim
run_dir=/run/fairway-docker # the log and the pid of an engine that this script started

usage() {
    cat <<EOT
Usage: scripts/docker.sh COMMAND

  ready             make sure that an engine answers, and that compose and $base_image are present
  engine            only the engine: use the running one, else (as root) start one
  base              only the base image: pull it, else build it with debootstrap
  compose ARG...    run compose with these arguments, 'docker compose' where it works, else docker-compose
  stop              stop the engine that this script started; does not touch any other
EOT
}

say() { echo "docker.sh: $*" >&2; }
die() {
    say "$@"
    exit 1
}

# A client that cannot reach its engine may hang for long on some machines; a probe must not.
engine_answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

engine() {
    command -v docker >/dev/null || die "no docker command here; run: scripts/setup.sh docker"
    engine_answers && return
    [[ -z ${DOCKER_HOST:-} ]] || die "no engine answers at DOCKER_HOST=$DOCKER_HOST"
    [[ $(id -u) == 0 ]] ||
        die "no engine answers user $(id -un); start it (sudo systemctl start docker), or join the group docker"
    if [[ -d /run/systemd/system ]]; then
        say "starting the docker service"
        systemctl start docker || die "the docker service did not start; see: journalctl -u docker"
    else
        command -v dockerd >/dev/null || die "no dockerd here; run: scripts/setup.sh docker"
        mkdir -p "$run_dir"
        rm -f "$run_dir/pid"
        say "starting dockerd, log in $run_dir/log"
        # In a new session, so that it outlives this terminal and holds no inherited pipe open.
        setsid --fork bash -c "echo \$\$ >$run_dir/pid; exec dockerd" >"$run_dir/log" 2>&1 </dev/null
    fi
    local waited
    for ((waited = 0; waited < 300; waited++)); do
        if engine_answers; then
            say "the engine is up"
            return
        fi
        if [[ -s $run_dir/pid && ! -d /proc/$(<"$run_dir/pid") ]]; then
            tail -n 5 "$run_dir/log" >&2
            die "dockerd exited; its log is $run_dir/log"
        fi
        ((waited % 25)) || say "waiting for the engine"
        sleep 0.2
    done
    die "no engine after a minute; see $run_dir/log"
}

stop() {
    [[ -s $run_dir/pid ]] || die "no engine started by this script is recorded"
    local pid
    pid=$(<"$run_dir/pid")
    if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == dockerd ]]; then
        kill "$pid"
        while [[ -d /proc/$pid ]]; do sleep 0.2; done
        say "stopped dockerd ($pid)"
    fi
    rm -f "$run_dir/pid"
}

# Debian 12 has only the old docker-compose. The plugin in Debian 13 is one file that runs here as well: it is
# fetched with a separate apt configuration, so that no source is left behind on the machine.
fetch_compose_plugin() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    local dir url plugin=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins/docker-compose
    url=$("$scripts/mirror.sh")
    dir=$(mktemp -d)
    chmod 755 "$dir" # apt reads as a separate user
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url trixie main" >"$dir/sources.list"
    local apt=(apt-get -q -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache")
    say "docker compose is missing; fetching the plugin of Debian 13 to $plugin"
    if (cd "$dir" && "${apt[@]}" update && "${apt[@]}" download docker-compose) >"$dir/log" 2>&1 &&
        dpkg-deb -x "$dir"/docker-compose_*.deb "$dir/unpacked"; then
        install -D "$dir/unpacked/usr/libexec/docker/cli-plugins/docker-compose" "$plugin"
        rm -rf "$dir"
        docker compose version >/dev/null 2>&1 && return
        rm -f "$plugin"
        return 1
    fi
    tail -n 3 "$dir/log" >&2
    rm -rf "$dir"
    return 1
}

have_compose() {
    docker compose version >/dev/null 2>&1 || fetch_compose_plugin || command -v docker-compose >/dev/null ||
        die "neither 'docker compose' nor docker-compose here; see https://docs.docker.com/compose/install/"
}

compose() {
    if docker compose version >/dev/null 2>&1; then
        exec docker compose "$@"
    fi
    # The old one uses the classic builder by default, which has no cache mounts.
    [[ ${FAIRWAY_BUILD:-source} == host ]] || export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
    exec docker-compose "$@"
}

base() {
    docker image inspect "$base_image" >/dev/null 2>&1 && return
    say "pulling $base_image"
    timeout 300 docker pull -q "$base_image" >&2 && return
    say "cannot pull $base_image: building it with debootstrap (one or two minutes, once)"
    [[ $(id -u) == 0 ]] || die "debootstrap needs root"
    command -v debootstrap >/dev/null || die "no debootstrap here; run: scripts/setup.sh docker"
    local dir
    dir=$(mktemp -d)
    if ! debootstrap --variant=minbase --include=ca-certificates bookworm "$dir/root" "$("$scripts/mirror.sh")" >"$dir/log" 2>&1; then
        tail -n 5 "$dir/log" >&2
        die "debootstrap failed; its files are in $dir"
    fi
    rm -rf "$dir"/root/var/cache/apt/archives/*.deb "$dir"/root/var/lib/apt/lists/* \
        "$dir"/root/usr/share/{doc,man}/*
    # Packages that are installed on top must not start their services or ask questions.
    printf '#!/bin/sh\nexit 101\n' >"$dir/root/usr/sbin/policy-rc.d"
    chmod 755 "$dir/root/usr/sbin/policy-rc.d"
    tar -C "$dir/root" -c . | docker import -c 'CMD ["bash"]' - "$base_image" >/dev/null
    rm -rf "$dir"
    say "$base_image is ready"
}

case ${1:-} in
ready)
    engine
    have_compose
    base
    ;;
engine) engine ;;
base) base ;;
stop) stop ;;
compose)
    shift
    compose "$@"
    ;;
-h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
