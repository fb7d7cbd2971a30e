#!/usr/bin/env bash
# Records what FRR prints for the commands of crates/frr/src/status into crates/frr/tests/answers/VERSION: for
# this machine's FRR, and for the one below the root of scripts/trixie.sh. Two routers of this machine are its
# neighbours. Needs root, FRR, and the network tools of scripts/setup.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
trixie=${FAIRWAY_TRIXIE:-${XDG_CACHE_HOME:-/var/cache}/fairway/trixie}
name=fw-answers-$$
work=$(mktemp -d)
chmod 755 "$work"
# Where the FRR of the other root sees its folder.
inside=/run/frr

end() {
    for pid in "$work"/*/*.pid; do
        [ -e "$pid" ] && kill "$(cat "$pid")" 2>/dev/null || true
    done
    for namespace in node one two; do ip netns del "$name-$namespace" 2>/dev/null || true; done
    rm -rf "$work"
}
trap end EXIT

# VERSION FOLDER PROGRAM ARGUMENT...: @ stands for the folder as the program sees it.
run() {
    local version=$1 folder=$2
    shift 2
    if [ "$version" = 8.4 ]; then
        "${@//@/$folder}"
    else
        # The folder is the one that mgmtd has its sockets in, regardless of its options.
        unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --bind "$1" "$0$2" && shift 2 &&
            exec chroot "$0" "$@"' "$trixie" "$folder" "$inside" "${@//@/$inside}"
    fi
}

# VERSION NAMESPACE DAEMON...: the configuration is standard input.
start() {
    local version=$1 namespace=$2 folder=$work/$2
    shift 2
    mkdir -p "$folder"
    cat >"$folder/frr.conf"
    : >"$folder/empty.conf"
    echo 'service integrated-vtysh-config' >"$folder/vtysh.conf"
    chmod -R a+rwX "$folder"
    local daemon
    for daemon in "$@"; do
        local more=(-f @/empty.conf)
        [ "$daemon" = mgmtd ] && more=()
        [ "$daemon.$version" = bfdd.8.4 ] && more+=(--bfdctl @/bfdd.sock)
        in_namespace "$version" "$namespace" "/usr/lib/frr/$daemon" -d -i "@/$daemon.pid" \
            -z @/zserv.api --vty_socket @ -A 127.0.0.1 -P 0 --log "file:@/$daemon.log" "${more[@]}"
    done
    run "$version" "$folder" vtysh --vty_socket @ --config_dir @ -b
}

in_namespace() {
    local version=$1 namespace=$2
    shift 2
    if [ "$version" = 8.4 ]; then
        ip netns exec "$name-$namespace" "${@//@/$work/$namespace}"
    else
        nsenter --net="/var/run/netns/$name-$namespace" unshare --mount sh -c \
            'mount -t proc proc "$0/proc" && mount --bind "$1" "$0$2" && shift 2 && exec chroot "$0" "$@"' \
            "$trixie" "$work/$namespace" "$inside" "${@//@/$inside}"
    fi
}

# NAMESPACE COMMAND...: on a router.
router() {
    local folder=$work/$1
    shift
    vtysh --vty_socket "$folder" "$@"
}

# VERSION COMMAND: on the FRR that is recorded.
node() { run "$1" "$work/node" vtysh --vty_socket @ -c "$2" 2>&1 || true; }

# VERSION COMMAND PATTERN: wait until the answer matches.
await() {
    local deadline=$((SECONDS + 30))
    until node "$1" "$2" | grep -q "$3"; do
        [ $SECONDS -lt $deadline ] || { echo "$1: no $3 in: $2" >&2; node "$1" "$2" >&2; exit 1; }
        sleep 0.2
    done
}

questions=(
    'show bgp vrf all summary json'
    'show bgp vrf all neighbors json'
    'show bgp vrf default ipv4 unicast json detail'
    'show bgp vrf default ipv6 unicast json detail'
    'show bgp vrf default ipv4 unicast neighbors 10.1.1.2 advertised-routes detail json'
    'show bgp vrf default ipv4 unicast neighbors 10.1.1.2 advertised-routes json'
    'show bgp vrf default ipv6 unicast neighbors fd01::2 advertised-routes json'
    'show bgp vrf default ipv4 unicast neighbors e3 advertised-routes json'
    'show bgp vrf default ipv4 unicast neighbors 10.1.1.97 advertised-routes json'
    'show bgp vrf default ipv4 unicast neighbors 10.1.1.96 advertised-routes json'
    'show bfd peers json'
    'show bfd peers counters json'
)

# VERSION SCENE: all answers.
record() {
    local file=$here/crates/frr/tests/answers/$1/$2.txt question
    mkdir -p "$(dirname "$file")"
    for question in "${questions[@]}"; do
        echo "=== $question"
        node "$1" "$question"
    done >"$file"
    echo "$file"
}

configuration() {
    cat <<CONFIGURATION
hostname node
bfd
 profile FW-fast
  transmit-interval 200
  receive-interval 200
 exit
exit
route-map FW-set-77 permit 10
 set tag 77
exit
route-map FW-out permit 10
 match tag 77
 set metric 20
 set community 65001:100 no-export
 set large-community 65001:1:10
 set as-path prepend 65001
exit
route-map FW-in permit 10
 set tag 18007
exit
interface e3
 ipv6 nd ra-interval 3
 no ipv6 nd suppress-ra
exit
router bgp 65001
 bgp router-id 10.0.0.1
 bgp log-neighbor-changes
 no bgp ebgp-requires-policy
 no bgp network import-check
 no bgp default ipv4-unicast
 no bgp hard-administrative-reset
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 bgp bestpath as-path multipath-relax
 neighbor FW-range peer-group
 neighbor FW-range remote-as external
 neighbor FW-range timers 3 9
 bgp listen limit 7
 bgp listen range 10.2.0.0/24 peer-group FW-range
 neighbor 10.1.1.2 remote-as 65010
 neighbor 10.1.1.2 description router one
 neighbor 10.1.1.2 timers 3 9
 neighbor 10.1.1.2 timers connect 1
 neighbor 10.1.1.2 bfd
 neighbor 10.1.1.2 bfd profile FW-fast
 neighbor fd01::2 remote-as 65010
 neighbor fd01::2 timers 3 9
 neighbor fd01::2 timers connect 1
 neighbor fd01::2 capability extended-nexthop
 neighbor e3 interface remote-as external
 neighbor e3 timers 3 9
 neighbor e3 timers connect 1
 neighbor 10.1.1.97 remote-as 65097
 neighbor 10.1.1.97 timers connect 2
 neighbor 10.1.1.98 remote-as 65098
 neighbor 10.1.1.98 shutdown message maintenance
 neighbor 10.1.1.99 remote-as 65099
 neighbor 10.1.1.99 bfd
 neighbor 10.1.1.99 bfd profile FW-fast
 address-family ipv4 unicast
  network 203.0.113.10/32 route-map FW-set-77
  network 203.0.113.11/32 route-map FW-set-77
  neighbor FW-range activate
  neighbor 10.1.1.2 activate
  neighbor 10.1.1.2 route-map FW-in in
  neighbor 10.1.1.2 route-map FW-out out
  neighbor 10.1.1.2 addpath-tx-all-paths
  neighbor e3 activate
  neighbor 10.1.1.97 activate
  neighbor 10.1.1.98 activate
  neighbor 10.1.1.99 activate
 exit-address-family
 address-family ipv6 unicast
  network 2001:db8:aaaa::10/128 route-map FW-set-77
  neighbor fd01::2 activate
  neighbor fd01::2 route-map FW-out out
  neighbor e3 activate
 exit-address-family
exit
router bgp 65001 vrf red
 bgp router-id 10.0.0.1
 no bgp ebgp-requires-policy
 neighbor 10.9.1.2 remote-as 65009
 address-family ipv4 unicast
  neighbor 10.9.1.2 activate
 exit-address-family
exit
CONFIGURATION
}

# VERSION: all scenes of one version.
version() {
    local version=$1 namespace daemons=(zebra bfdd bgpd)
    [ "$version" = 8.4 ] || daemons=(mgmtd "${daemons[@]}")
    for namespace in node one two; do
        ip netns add "$name-$namespace"
        ip -n "$name-$namespace" link set lo up
    done
    local number=0 cable
    for cable in one:e1:10.1.1:fd01 two:e2:10.2.0:fd02 two:e3::; do
        IFS=: read -r namespace link ipv4 ipv6 <<<"$cable"
        ip link add "$link" netns "$name-node" type veth peer name "$link" netns "$name-$namespace"
        for number in 1 2; do
            local end=$name-node
            [ $number = 1 ] || end=$name-$namespace
            [ -z "$ipv4" ] || ip -n "$end" address add "$ipv4.$number/24" dev "$link"
            [ -z "$ipv6" ] || ip -n "$end" address add "$ipv6::$number/64" dev "$link" nodad
            ip -n "$end" link set "$link" up
        done
    done

    start 8.4 one zebra bfdd bgpd <<'ONE'
hostname one
router bgp 65010
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 bgp graceful-restart restart-time 60
 neighbor 10.1.1.1 remote-as 65001
 neighbor 10.1.1.1 timers 3 9
 neighbor 10.1.1.1 timers connect 1
 neighbor 10.1.1.1 bfd
 neighbor fd01::1 remote-as 65001
 neighbor fd01::1 timers 3 9
 neighbor fd01::1 timers connect 1
 address-family ipv4 unicast
  network 198.51.100.0/24 route-map SHARED
  network 198.51.100.128/25 route-map LABELLED
  neighbor 10.1.1.1 activate
  no neighbor fd01::1 activate
 exit-address-family
 address-family ipv6 unicast
  network 2001:db8:100::/48
  neighbor fd01::1 activate
 exit-address-family
exit
route-map SHARED permit 10
 set as-path prepend 65010
exit
route-map LABELLED permit 10
 set metric 50
 set community 65010:1 65010:2 no-peer
 set large-community 65010:7:9 65010:1:2
 set extcommunity rt 65010:77
exit
ONE
    start 8.4 two zebra bfdd bgpd <<'TWO'
hostname two
interface e3
 ipv6 nd ra-interval 3
 no ipv6 nd suppress-ra
exit
router bgp 65020
 bgp router-id 10.0.0.3
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.2.0.1 remote-as 65001
 neighbor 10.2.0.1 timers connect 1
 neighbor e3 interface remote-as external
 neighbor e3 timers connect 1
 address-family ipv4 unicast
  network 198.51.100.0/24
  neighbor 10.2.0.1 activate
  neighbor e3 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor e3 activate
 exit-address-family
exit
TWO
    start "$version" node "${daemons[@]}" <<<'hostname node'
    record "$version" nothing
    configuration >"$work/node/frr.conf"
    run "$version" "$work/node" vtysh --vty_socket @ --config_dir @ -b
    for namespace in 10.1.1.2 fd01::2 10.2.0.2 e3; do
        await "$version" "show bgp neighbors $namespace json" '"bgpState":"Established"'
    done
    await "$version" 'show bfd peers json' '"status":"up"'
    await "$version" 'show bgp ipv6 unicast json' '2001:db8:100::'
    await "$version" 'show bgp neighbors 10.1.1.2 json' '"acceptedPrefixCounter":2'
    record "$version" steady

    kill -9 "$(cat "$work/one/bgpd.pid")"
    # Its BFD goes down as well, so the session that keeps its routes is the one without BFD.
    await "$version" 'show bgp neighbors fd01::2 json' 'gracefulRestartTimerMsecs'
    record "$version" restarting

    router two -c 'configure terminal' -c 'router bgp 65020' \
        -c 'neighbor 10.2.0.1 shutdown message planned work' -c 'neighbor e3 shutdown message planned work'
    await "$version" 'show bgp neighbors e3 json' 'lastShutdownDescription'
    record "$version" notified
    end_version
}

end_version() {
    local file
    for file in "$work"/*/*.pid; do kill "$(cat "$file")" 2>/dev/null || true; done
    local namespace
    for namespace in node one two; do ip netns del "$name-$namespace"; done
    rm -rf "${work:?}"/*
}

for wanted in "${@:-8.4 10.3}"; do
    for version in $wanted; do version "$version"; done
done
