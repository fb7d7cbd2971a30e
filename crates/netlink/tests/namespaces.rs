//! The watch against the kernel of this machine, in network namespaces that each test makes. Needs root.
//!
//! `FAIRWAY_SEED=` replays the random changes.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // What fails here fails the test.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use fairway_netlink::request::Presence;
use fairway_netlink::{
    Kind, Kinds, Machine, NeighbourState, NextHop, Requests, Route, RouteKind, RouteMark,
    RouteOrder, RouteScope, Scope, Watch, read,
};
use nix::sched::{CloneFlags, unshare};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

fn everything() -> Scope {
    Scope { routes: Some(RouteScope::All), neighbours: true, receive_buffer_bytes: None }
}

/// Runs a story in a namespace of its own, on one thread: while the story computes, no event is read.
fn in_namespace<F: Future<Output = ()>>(story: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(story());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn try_ip(line: &str) -> bool {
    let outcome = Command::new("ip").args(line.split_whitespace()).stderr(Stdio::null()).status();
    outcome.expect("ip is installed").success()
}

fn ip(line: &str) {
    assert!(try_ip(line), "ip {line}");
}

/// Many changes in one process. One that is not possible is left out.
fn ip_batch(lines: &str) {
    let mut batch = Command::new("ip");
    batch
        .args(["-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut batch = batch.spawn().unwrap();
    batch.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    batch.wait().unwrap();
}

fn pair() {
    ip("link add e0 type veth peer name e1");
    ip("link set e0 up");
    ip("link set e1 up");
}

fn index(machine: &Machine, name: &str) -> u32 {
    machine.link_called(name).unwrap_or_else(|| panic!("no {name}: {machine:#?}")).index
}

fn has_address(machine: &Machine, address: &str) -> bool {
    let address: IpAddr = address.parse().unwrap();
    machine.addresses().any(|it| it.address == address)
}

/// Waits for events until the snapshot is as expected. Returns the tables that changed meanwhile.
async fn until(watch: &mut Watch, what: &str, is_so: impl Fn(&Machine) -> bool) -> Kinds {
    let mut changed = Kinds::NONE;
    let waiting = async {
        while !is_so(&watch.snapshot()) {
            changed.add(watch.changed().await);
        }
    };
    if timeout(PATIENCE, waiting).await.is_err() {
        panic!("{what}: {:#?}", watch.snapshot());
    }
    changed
}

/// Without duplicate address detection: meanwhile the kernel lists an address that it has not reported.
fn without_detection() {
    for which in ["all", "default"] {
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/accept_dad"), "0").unwrap();
    }
}

/// Waits until the snapshot is what the kernel lists.
async fn until_true(watch: &mut Watch, what: &str) {
    let waiting = async {
        while !watch.snapshot().differences(&read(everything()).unwrap()).is_empty() {
            let _ = timeout(Duration::from_millis(20), watch.changed()).await;
        }
    };
    if timeout(PATIENCE, waiting).await.is_err() {
        let truth = read(everything()).unwrap();
        let differences = watch.snapshot().differences(&truth);
        panic!("{what}: {differences} differ: {:#?} is {truth:#?}", watch.snapshot());
    }
}

#[test]
fn the_first_snapshot_is_there_at_once() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        let watch = Watch::open(everything()).unwrap();
        let machine = watch.snapshot();
        assert!(has_address(&machine, "10.0.0.1"));
        assert_eq!(machine.global_ipv4(index(&machine, "e0")), "10.0.0.1".parse().ok());
        let link = machine.link_called("e0").unwrap();
        assert_eq!((link.kind.as_deref(), link.mtu_bytes), (Some("veth"), 1500));
        assert!(link.mac.is_some() && link.is_usable());
        assert!(machine.link_called("lo").unwrap().is_loopback);
    });
}

#[test]
fn addresses_come_and_go_as_events() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(Scope::default()).unwrap();
        for address in ["10.0.0.1/24", "2001:db8::1/64"] {
            let text = address.split('/').next().unwrap();
            ip(&format!("address add {address} dev e0 nodad")
                .replace("24 dev e0 nodad", "24 dev e0"));
            let changed = until(&mut watch, "added", |it| has_address(it, text)).await;
            assert!(changed.contains(Kind::Address));
            ip(&format!("address del {address} dev e0"));
            until(&mut watch, "removed", |it| !has_address(it, text)).await;
        }
        ip("address add 10.0.0.1 peer 10.9.0.2/32 dev e0");
        until(&mut watch, "peer", |it| it.is_on_link([10, 9, 0, 2].into(), None)).await;
    });
}

#[test]
fn an_ipv6_address_is_settled_when_its_detection_is_over() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(Scope::default()).unwrap();
        ip("address add 2001:db8::1/64 dev e0");
        let e0 = index(&watch.snapshot(), "e0");
        until(&mut watch, "there", |it| has_address(it, "2001:db8::1")).await;
        until(&mut watch, "settled", |it| it.global_ipv6(e0).is_some()).await;
        until(&mut watch, "link-local", |it| it.link_local(e0).next().is_some()).await;
    });
}

#[test]
fn an_address_with_a_lifetime_is_removed_by_the_kernel_unless_it_is_added_again() {
    in_namespace(|| async {
        pair();
        ip("address add 192.0.2.1/24 dev e0");
        ip("address add 2001:db8::1/64 dev e0 nodad");
        let mut watch = Watch::open(Scope::default()).unwrap();
        let e0 = index(&watch.snapshot(), "e0");
        let mut requests = Requests::open().unwrap();
        let mut add = |address: &str, presence| {
            requests.add_address(e0, address.parse().unwrap(), 2, presence).map_err(|it| it.kind())
        };
        for address in ["192.0.2.9", "2001:db8::9"] {
            assert_eq!(add(address, Presence::New), Ok(()));
            assert_eq!(add(address, Presence::New), Err(ErrorKind::AlreadyExists));
            assert_eq!(add(address, Presence::Present), Ok(()));
            until(&mut watch, "there", |it| has_address(it, address)).await;
        }
        let first = |machine: &Machine| (machine.global_ipv4(e0), machine.global_ipv6(e0));
        let own = ("192.0.2.1".parse().ok(), "2001:db8::1".parse().ok());
        assert_eq!(first(&watch.snapshot()), own, "no connection is to come from the others");
        ip("address del 192.0.2.1/24 dev e0");
        until(&mut watch, "the lease is over", |it| !has_address(it, "192.0.2.1")).await;
        assert_eq!(first(&watch.snapshot()).0, None, "nor when there is no other");
        for address in ["192.0.2.9", "2001:db8::9"] {
            until(&mut watch, "removed", |it| !has_address(it, address)).await;
        }
        for address in ["192.0.2.9", "2001:db8::9"] {
            let address = address.parse().unwrap();
            requests.add_address(e0, address, 60, Presence::New).unwrap();
            requests.remove_address(e0, address).unwrap();
            let error = requests.remove_address(e0, address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        }
    });
}

#[test]
fn a_link_that_goes_down_says_so_and_so_does_its_other_end() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(Scope::default()).unwrap();
        until(&mut watch, "up", |it| it.link_called("e0").is_some_and(|it| it.is_usable())).await;
        ip("link set e1 down");
        let lost =
            |it: &Machine| it.link_called("e0").is_some_and(|it| it.is_up && !it.has_carrier);
        let changed = until(&mut watch, "carrier lost", lost).await;
        assert!(changed.contains(Kind::Link));
        assert!(!watch.snapshot().link_called("e1").unwrap().is_up);
        ip("link set e1 up");
        until(&mut watch, "carrier back", |it| {
            it.link_called("e0").is_some_and(|it| it.is_usable())
        })
        .await;
    });
}

#[test]
fn a_link_keeps_its_number_when_it_is_renamed_and_loses_all_when_it_is_deleted() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(Scope::default()).unwrap();
        let before = index(&watch.snapshot(), "e0");
        ip("link set e0 down");
        ip("link set e0 name uplink mtu 1400 address 02:00:00:00:00:07");
        ip("link set uplink up");
        ip("link property add dev uplink altname to-the-spine-switch-1");
        let is_renamed = |it: &Machine| it.link_called("to-the-spine-switch-1").is_some();
        until(&mut watch, "renamed", is_renamed).await;
        let machine = watch.snapshot();
        let link = machine.link(before).unwrap();
        assert_eq!(
            (link.name.as_str(), link.mtu_bytes, link.mac),
            ("uplink", 1400, Some([2, 0, 0, 0, 0, 7]))
        );
        assert!(machine.link_called("e0").is_none());
        ip("address add 10.0.0.1/24 dev uplink");
        until(&mut watch, "address", |it| has_address(it, "10.0.0.1")).await;
        ip("link del uplink");
        until(&mut watch, "deleted", |it| it.link(before).is_none()).await;
        assert!(!has_address(&watch.snapshot(), "10.0.0.1"));
    });
}

#[test]
fn routes_are_followed_when_they_are_asked_for() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        let mut watch = Watch::open(everything()).unwrap();
        let ways = |it: &Machine, to: &str| -> Vec<usize> {
            let to = to.parse().unwrap();
            it.routes().filter(|it| it.destination == to).map(|it| it.next_hops.len()).collect()
        };
        ip("route add 203.0.113.0/24 via 10.0.0.9 proto bgp metric 20");
        until(&mut watch, "added", |it| ways(it, "203.0.113.0/24") == [1]).await;
        let machine = watch.snapshot();
        let route = machine.routes().find(|it| it.metric == 20).unwrap();
        assert_eq!((route.protocol, route.table, route.kind), (186, 254, RouteKind::Unicast));
        assert_eq!(route.next_hops[0].gateway, "10.0.0.9".parse().ok());
        ip(
            "route replace 203.0.113.0/24 proto bgp metric 20 nexthop via 10.0.0.8 nexthop via 10.0.0.9",
        );
        until(&mut watch, "replaced", |it| ways(it, "203.0.113.0/24") == [2]).await;
        ip("route del 203.0.113.0/24 metric 20");
        until(&mut watch, "removed", |it| ways(it, "203.0.113.0/24").is_empty()).await;
        // IPv6 adds and removes single ways.
        ip("route add 2001:db8::/32 via fe80::8 dev e0");
        until(&mut watch, "added", |it| ways(it, "2001:db8::/32") == [1]).await;
        ip("route append 2001:db8::/32 via fe80::9 dev e0");
        until(&mut watch, "way added", |it| ways(it, "2001:db8::/32") == [2]).await;
        ip("route del 2001:db8::/32 via fe80::8 dev e0");
        until(&mut watch, "way removed", |it| ways(it, "2001:db8::/32") == [1]).await;
        ip("route add blackhole 198.51.100.0/24");
        until(&mut watch, "blackhole", |it| ways(it, "198.51.100.0/24") == [0]).await;
    });
}

/// Linux sends no message for an IPv4 route on an interface that went down.
#[test]
fn a_route_that_vanishes_without_a_message_is_noticed() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        ip("address add 10.0.0.7/32 dev lo");
        ip("route add 203.0.113.0/24 via 10.0.0.9");
        ip("route add 198.51.100.0/24 dev e1 src 10.0.0.7");
        let mut watch = Watch::open(everything()).unwrap();
        let to = |it: &Machine, to: &str| it.routes().any(|it| it.destination.to_string() == to);
        assert!(
            to(&watch.snapshot(), "203.0.113.0/24") && to(&watch.snapshot(), "198.51.100.0/24")
        );
        ip("link set e0 down");
        until(&mut watch, "gone with its link", |it| !to(it, "203.0.113.0/24")).await;
        assert!(to(&watch.snapshot(), "198.51.100.0/24"));
        ip("address del 10.0.0.7/32 dev lo");
        until(&mut watch, "gone with its source", |it| !to(it, "198.51.100.0/24")).await;
    });
}

#[test]
fn neighbours_of_both_families_are_followed_when_they_are_asked_for() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(everything()).unwrap();
        let mut without = Watch::open(Scope::default()).unwrap();
        let e0 = index(&watch.snapshot(), "e0");
        for text in ["10.0.0.9", "fe80::9"] {
            let address: IpAddr = text.parse().unwrap();
            ip(&format!("neighbor add {text} lladdr 02:00:00:00:00:09 dev e0 nud permanent"));
            until(&mut watch, "added", |it| it.neighbour(e0, address).is_some()).await;
            let neighbour = watch.snapshot().neighbour(e0, address).cloned().unwrap();
            assert_eq!(
                (neighbour.mac, neighbour.state),
                (Some([2, 0, 0, 0, 0, 9]), NeighbourState::Permanent)
            );
            ip(&format!("neighbor change {text} lladdr 02:00:00:00:00:0a dev e0 nud stale"));
            let moved = |it: &Machine| {
                it.neighbour(e0, address).is_some_and(|it| it.mac == Some([2, 0, 0, 0, 0, 10]))
            };
            until(&mut watch, "moved", moved).await;
            ip(&format!("neighbor del {text} dev e0"));
            let is_unknown =
                |it: &Machine| it.neighbour(e0, address).is_none_or(|it| !it.state.is_valid());
            until(&mut watch, "gone", is_unknown).await;
        }
        ip("neighbor add fe80::a lladdr 02:00:00:00:00:09 dev e0 nud permanent router");
        until(&mut watch, "router", |it| it.is_router(e0, "fe80::a".parse().unwrap())).await;
        ip("link set e0 mtu 1400");
        let is_smaller = |it: &Machine| it.link(e0).unwrap().mtu_bytes == 1400;
        until(&mut without, "events of links", is_smaller).await;
        assert_eq!(
            without.snapshot().neighbours().count() + without.snapshot().routes().count(),
            0
        );
    });
}

#[test]
fn a_port_knows_its_bridge_which_is_no_vrf() {
    in_namespace(|| async {
        pair();
        if !try_ip("link add br0 type bridge") {
            return not_in_this_kernel("bridge");
        }
        let mut watch = Watch::open(Scope::default()).unwrap();
        let (e0, bridge) = (index(&watch.snapshot(), "e0"), index(&watch.snapshot(), "br0"));
        ip("link set e0 master br0");
        until(&mut watch, "enslaved", |it| it.link(e0).unwrap().master == Some(bridge)).await;
        assert!(watch.snapshot().vrf_of(e0).is_none());
        ip("link set e0 nomaster");
        until(&mut watch, "free", |it| it.link(e0).is_some_and(|it| it.master.is_none())).await;
    });
}

#[test]
fn a_vrf_has_its_ports_its_table_and_its_routes() {
    in_namespace(|| async {
        pair();
        if !try_ip("link add blue type vrf table 1010") {
            return not_in_this_kernel("vrf");
        }
        ip("address add 10.0.0.1/24 dev e0");
        let mut watch = Watch::open(everything()).unwrap();
        let (e0, blue) = (index(&watch.snapshot(), "e0"), index(&watch.snapshot(), "blue"));
        assert_eq!(watch.snapshot().link(blue).unwrap().vrf_table, Some(1010));
        ip("link set blue up");
        ip("link set e0 master blue");
        until(&mut watch, "in the VRF", |it| it.vrf_of(e0).is_some_and(|it| it.index == blue))
            .await;
        assert!(watch.snapshot().is_on_link([10, 0, 0, 9].into(), Some(blue)));
        assert!(!watch.snapshot().is_on_link([10, 0, 0, 9].into(), None));
        ip("route add 203.0.113.0/24 via 10.0.0.9 vrf blue");
        until(&mut watch, "route", |it| {
            it.routes().any(|it| it.table == 1010 && it.destination.prefix_len() == 24)
        })
        .await;
        ip("link del blue");
        until(&mut watch, "gone", |it| it.routes().all(|it| it.table == 254)).await;
    });
}

#[test]
fn another_namespace_is_another_machine() {
    in_namespace(|| async {
        pair();
        let mut watch = Watch::open(Scope::default()).unwrap();
        in_namespace(|| async {
            ip("link add other type veth peer name end");
            assert!(read(Scope::default()).unwrap().link_called("e0").is_none());
        });
        ip("link set e0 mtu 1400");
        until(&mut watch, "mtu", |it| it.link_called("e0").unwrap().mtu_bytes == 1400).await;
        assert!(watch.snapshot().link_called("other").is_none());
    });
}

#[test]
fn every_reader_is_told() {
    in_namespace(|| async {
        pair();
        let mut one = Watch::open(Scope::default()).unwrap();
        let mut other = one.clone();
        ip("address add 10.0.0.1/24 dev e0");
        until(&mut one, "one", |it| has_address(it, "10.0.0.1")).await;
        assert!(other.changed().await.contains(Kind::Address));
        drop(one);
        ip("address add 10.0.0.2/24 dev e0");
        until(&mut other, "the other, alone", |it| has_address(it, "10.0.0.2")).await;
    });
}

/// Events that the kernel dropped, of all sockets of this namespace.
fn drops() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap();
    let header: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    let column = |name| header.iter().position(|it| *it == name).unwrap();
    let (inode, drops) = (column("Inode"), column("Drops"));
    // The kernel lists a socket twice where its table of all sockets grows meanwhile.
    let sockets = table.lines().skip(1).map(|row| {
        let row: Vec<_> = row.split_whitespace().collect();
        (row[inode], row[drops].parse::<u64>().unwrap())
    });
    sockets.collect::<BTreeMap<_, _>>().into_values().sum()
}

/// Far more changes than the socket can hold, while it is not read.
#[test]
fn a_socket_that_overran_comes_back_to_the_truth() {
    in_namespace(|| async {
        pair();
        let scope = Scope { receive_buffer_bytes: Some(4096), ..everything() };
        let mut watch = Watch::open(scope).unwrap();
        let e0 = index(&watch.snapshot(), "e0");
        let mut dropped = 0;
        for round in 0..3 {
            let mut lines = String::new();
            for number in 0..1_000 {
                let (high, low) = (number / 250, number % 250 + 1);
                lines.push_str(&format!("address add 10.{round}.{high}.{low}/32 dev e0\n"));
                if number % 3 == 0 {
                    lines.push_str(&format!("address del 10.{round}.{high}.{low}/32 dev e0\n"));
                }
            }
            for number in 1..100 {
                lines.push_str(&format!("route add 203.{round}.{number}.0/24 dev e0\n"));
                let mac = format!("02:00:00:00:{round:02x}:{number:02x}");
                lines.push_str(&format!(
                    "neighbor add 10.9.{round}.{number} lladdr {mac} dev e0 nud permanent\n"
                ));
            }
            ip_batch(&lines);
            assert!(read(everything()).unwrap().addresses_of(e0).len() > 600);
            assert!(drops() > dropped, "no event was lost: the test shows nothing");
            dropped = drops();
            until_true(&mut watch, &format!("round {round}")).await;
        }
    });
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ (z >> 29)) % limit
    }
}

/// Some random change. Many are not possible at that moment; that is intended.
fn change(random: &mut Random) -> String {
    let link = ["e0", "e1", "f0", "f1"][usize::try_from(random.below(4)).unwrap()];
    let (one, two) = (random.below(4), random.below(6) + 1);
    let verb = ["add", "del"][usize::try_from(random.below(2)).unwrap()];
    match random.below(12) {
        0 => format!("link set {link} down"),
        1 | 2 => format!("link set {link} up"),
        3 => format!("link set {link} mtu {}", 1400 + random.below(100)),
        4 | 5 => format!("address {verb} 10.{one}.0.{two}/24 dev {link}"),
        6 => format!("address {verb} 2001:db8:{one}::{two}/64 dev {link} nodad"),
        7 => format!("route {verb} 203.0.{two}.0/24 dev {link} metric {one}"),
        8 => format!("route replace 203.0.{two}.0/24 via 10.{one}.0.1"),
        9 => format!("route {verb} 2001:db8:f{two}::/48 via fe80::{one} dev {link}"),
        10 => format!(
            "neighbor replace 10.9.0.{two} lladdr 02:00:00:00:00:0{one} dev {link} nud permanent"
        ),
        _ => match random.below(6) {
            0 => "link del f0".to_owned(),
            _ => "link add f0 type veth peer name f1".to_owned(),
        },
    }
}

/// What the events make of the snapshot is what the kernel lists.
#[test]
fn after_any_changes_the_snapshot_is_what_the_kernel_lists() {
    let seed = std::env::var("FAIRWAY_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    in_namespace(move || async move {
        without_detection();
        pair();
        let mut random = Random(seed);
        let mut watch = Watch::open(everything()).unwrap();
        for round in 0..40 {
            let lines: Vec<String> = (0..30).map(|_| change(&mut random)).collect();
            ip_batch(&(lines.join("\n") + "\n"));
            until_true(&mut watch, &format!("seed {seed}, round {round}")).await;
        }
    });
}

/// A missing feature of this machine's kernel is printed where the harness does not hide it.
fn not_in_this_kernel(kind: &str) {
    let line = format!("SKIPPED: the kernel of this machine has no interfaces of type {kind}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

const MARK: RouteMark = RouteMark { protocol: 186, metric: 1790 };

/// A route with the mark by way of these routers on the interface of this number.
fn marked(destination: &str, index: u32, gateways: &[&str]) -> Route {
    let way =
        |gateway: &&str| NextHop { index: Some(index), gateway: gateway.parse().ok(), weight: 1 };
    Route {
        table: 254,
        destination: destination.parse().unwrap(),
        metric: MARK.metric,
        type_of_service: 0,
        kind: RouteKind::Unicast,
        protocol: MARK.protocol,
        source: None,
        next_hops: gateways.iter().map(way).collect(),
    }
}

fn marked_routes() -> Vec<Route> {
    let scope = Scope { routes: Some(RouteScope::Marked(MARK)), ..Scope::default() };
    read(scope).unwrap().routes().cloned().collect()
}

#[test]
fn routes_of_both_families_are_written_as_they_are_listed() {
    in_namespace(|| async {
        without_detection();
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        ip("address add 2001:db8::1/64 dev e0");
        let e0 = index(&read(Scope::default()).unwrap(), "e0");
        let wanted = [
            marked("192.0.2.0/24", e0, &["10.0.0.2"]),
            marked("198.51.100.0/24", e0, &["10.0.0.2", "10.0.0.3"]),
            marked("203.0.113.0/24", e0, &["2001:db8::2"]),
            Route { kind: RouteKind::Blackhole, ..marked("203.0.113.7/32", e0, &[]) },
            marked("2001:db8:1::/48", e0, &["2001:db8::2", "2001:db8::3"]),
        ];
        let mut requests = Requests::open().unwrap();
        let add = wanted.clone().map(RouteOrder::Add);
        for outcome in requests.change_routes(&add).unwrap() {
            outcome.unwrap();
        }
        assert_eq!(marked_routes(), wanted);
        // What is there is not added again, and the refusal of one concerns no other.
        let more = [add[0].clone(), RouteOrder::Add(marked("192.0.3.0/24", e0, &["10.0.0.2"]))];
        let outcomes = requests.change_routes(&more).unwrap();
        let code = outcomes[0].as_ref().unwrap_err().raw_os_error();
        assert_eq!((code, outcomes[1].is_ok()), (Some(libc::EEXIST), true));
        // In place of several ways there is one.
        let other = marked("2001:db8:1::/48", e0, &["2001:db8::4"]);
        requests.change_routes(&[RouteOrder::Replace(other.clone())]).unwrap();
        assert!(marked_routes().contains(&other) && marked_routes().len() == 6);
        // One that drops is removed like any other.
        for prefix in ["192.0.2.0/24", "2001:db8:1::/48"] {
            let route = marked(prefix, e0, &[]);
            let drops = Route { kind: RouteKind::Blackhole, ..route.clone() };
            for order in [RouteOrder::Replace(drops), RouteOrder::Remove(route)] {
                requests.change_routes(&[order]).unwrap()[0].as_ref().unwrap();
            }
        }
        assert_eq!(marked_routes().len(), 4);
        let gone: Vec<RouteOrder> = marked_routes().into_iter().map(RouteOrder::Remove).collect();
        for outcome in requests.change_routes(&gone).unwrap() {
            outcome.unwrap();
        }
        assert_eq!(marked_routes(), []);
    });
}

#[test]
fn many_routes_with_many_ways_are_written_in_one_call() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/16 dev e0");
        let e0 = index(&read(Scope::default()).unwrap(), "e0");
        let gateways: Vec<String> = (2..66).map(|it| format!("10.0.0.{it}")).collect();
        let gateways: Vec<&str> = gateways.iter().map(String::as_str).collect();
        let route = |it: u32| marked(&format!("172.{}.{}.0/24", it / 250, it % 250), e0, &gateways);
        let orders: Vec<RouteOrder> = (0..600).map(|it| RouteOrder::Add(route(it))).collect();
        let outcomes = Requests::open().unwrap().change_routes(&orders).unwrap();
        assert_eq!(outcomes.iter().filter(|it| it.is_ok()).count(), 600);
        assert!(marked_routes().iter().all(|it| it.next_hops.len() == 64));
    });
}

#[test]
fn a_reader_of_default_routes_follows_the_gateway_and_nothing_else() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        ip("route add default via 10.0.0.2 metric 20");
        let scope = Scope { routes: Some(RouteScope::Default), ..Scope::default() };
        let mut watch = Watch::open(scope).unwrap();
        let gateway = |it: &Machine| it.default_gateway(None, false).map(|it| it.to_string());
        assert_eq!(gateway(&watch.snapshot()).as_deref(), Some("10.0.0.2"));
        let e0 = index(&watch.snapshot(), "e0");
        let route = |it: u32| marked(&format!("172.16.{it}.0/24"), e0, &["10.0.0.2"]);
        let orders: Vec<RouteOrder> = (0..100).map(|it| RouteOrder::Add(route(it))).collect();
        assert!(
            Requests::open().unwrap().change_routes(&orders).unwrap().iter().all(Result::is_ok)
        );
        let woken = timeout(Duration::from_millis(50), watch.changed()).await;
        assert!(woken.is_err(), "{woken:?}");
        ip("route add default via 10.0.0.4 metric 5 proto bgp");
        ip("route add default via 10.0.0.3 metric 10");
        let is_third = |it: &Machine| gateway(it).as_deref() == Some("10.0.0.3");
        until(&mut watch, "the one with the smaller metric", is_third).await;
        assert!(watch.snapshot().routes().all(|it| it.destination.prefix_len() == 0));
        ip("route del default via 10.0.0.3 metric 10");
        ip("route del default via 10.0.0.2 metric 20");
        until(&mut watch, "no gateway", |it| gateway(it).is_none()).await;
    });
}

#[test]
fn a_reader_that_leaves_routes_out_is_not_woken_by_them() {
    in_namespace(|| async {
        pair();
        ip("address add 10.0.0.1/24 dev e0");
        let scope = Scope {
            routes: Some(RouteScope::Unmarked(MARK)),
            // Room for no more than some dozens of events.
            receive_buffer_bytes: Some(1),
            ..Scope::default()
        };
        let mut watch = Watch::open(scope).unwrap();
        let e0 = index(&watch.snapshot(), "e0");
        let route =
            |it: u32| marked(&format!("172.{}.{}.0/24", it / 250, it % 250), e0, &["10.0.0.2"]);
        let orders: Vec<RouteOrder> = (0..5000).map(|it| RouteOrder::Add(route(it))).collect();
        let mut requests = Requests::open().unwrap();
        assert!(requests.change_routes(&orders).unwrap().iter().all(Result::is_ok));
        let woken = timeout(Duration::from_millis(50), watch.changed()).await;
        assert!(woken.is_err(), "{woken:?}");
        assert_eq!(marked_routes().len(), 5000);
        ip("route add 192.0.2.0/24 via 10.0.0.2 metric 1790");
        let is_seen = |it: &Machine| it.routes().any(|it| it.metric == 1790);
        until(&mut watch, "a route without the mark", is_seen).await;
        assert!(watch.snapshot().routes().all(|it| it.protocol != 186));
    });
}
