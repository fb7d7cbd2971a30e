//! Several paths to a prefix over one session (RFC 7911): the left side of a pair advertises to the
//! right one the routes that it received from three routers.

use std::num::NonZeroU8;

use super::*;
use crate::wire::announce::{AttributeBlock, announcement};
use fairway_ground::{
    AddPath, AsPath, ImportPolicy, MaximumPrefixes, NextHop, Nlri, PathId, PeerKey, PeerKind,
    PrefixFilter,
};
use fairway_seam::{PathAttributes, Refusal};

const PREFIX: &str = "203.0.113.0/24";

/// The left side, which sends so many paths.
fn sender(paths: u8) -> PeerConfig {
    let add_path = AddPath { send: NonZeroU8::new(paths), receive: false };
    PeerConfig { add_path, pass_on: PrefixFilter::Everything, ..config(65001, 65002, 1) }
}

/// The right side, which takes them.
fn receiver() -> PeerConfig {
    let add_path = AddPath { send: None, receive: true };
    PeerConfig { add_path, ..config(65002, 65001, 2) }
}

fn up(left: PeerConfig, right: PeerConfig) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.run_for(seconds(5));
    pair.assert_up();
    pair
}

/// Router `number` sends the left side a path of `hops` systems, or withdraws it.
fn hear(pair: &mut Pair, number: u8, hops: Option<usize>) {
    let source = Arc::new(PathSource {
        key: PeerKey::from(std::net::IpAddr::from([10, 0, 0, number])),
        address: [10, 0, 0, number].into(),
        kind: PeerKind::External,
        remote_asn: Asn::new(u32::from(number)).unwrap(),
        router_id: RouterId::new(u32::from(number)).unwrap(),
        is_client: false,
    });
    let attributes = hops.map(|hops| {
        let as_path = AsPath::sequence(vec![u32::from(number); hops]);
        let next_hop = NextHop::Ipv4([10, 0, 0, number].into());
        Arc::new(PathAttributes::originated(as_path, next_hop))
    });
    let Side { peer, rib, .. } = &mut pair.sides[0];
    let change = RouteChange { nlri: PREFIX.parse().unwrap(), attributes };
    rib.learn(&source, vec![change]);
    let changes = rib.take_changes();
    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    pair.settle();
}

/// What the right side has: each path's identifier and the router it originated at.
fn has(pair: &Pair) -> Vec<(u32, u32)> {
    let view = pair.sides[1].peer.view(pair.now, ViewScope::EVERYTHING);
    let path = |route: &fairway_seam::PeerRoute| {
        (route.path_id.get(), route.attributes.as_path.asns().last().unwrap())
    };
    view.received.iter().map(path).collect()
}

#[test]
fn several_paths_go_over_a_session_and_leave_it_one_by_one() {
    let mut pair = up(sender(2), receiver());
    pair.sides[0].rib.keep_path_ids(true);
    hear(&mut pair, 7, Some(3));
    hear(&mut pair, 8, Some(2));
    assert_eq!(has(&pair), [(1, 7), (2, 8)]);
    assert_eq!(pair.sides[1].rib.learned().count(), 2);
    // The third best is one too many, until another goes.
    hear(&mut pair, 9, Some(4));
    assert_eq!(has(&pair), [(1, 7), (2, 8)]);
    hear(&mut pair, 8, None);
    assert_eq!(has(&pair), [(1, 7), (3, 9)]);
    hear(&mut pair, 9, Some(1));
    assert_eq!(has(&pair), [(1, 7), (3, 9)]);
    // A path keeps its identifier in a new session, too.
    pair.sides[0].peer.reset(pair.now);
    pair.run_for(seconds(40));
    assert_eq!(has(&pair), [(1, 7), (3, 9)]);
}

#[test]
fn what_is_originated_here_is_the_first_of_the_paths() {
    let mut pair = up(sender(2), receiver());
    hear(&mut pair, 7, Some(1));
    hear(&mut pair, 8, Some(2));
    pair.originate(0, &[PREFIX]);
    pair.settle();
    assert_eq!(has(&pair), [(1, 7), (3, 65001)]);
    pair.originate(0, &[]);
    pair.settle();
    assert_eq!(has(&pair), [(1, 7), (2, 8)]);
}

//= RFC 7911 §5 MUST: a peer that did not offer to receive several paths is sent one, without identifiers.
#[test]
fn a_peer_that_takes_one_path_is_told_the_best() {
    let mut pair = up(sender(2), config(65002, 65001, 2));
    hear(&mut pair, 7, Some(3));
    hear(&mut pair, 8, Some(2));
    assert_eq!(has(&pair), [(0, 8)]);
    hear(&mut pair, 8, None);
    assert_eq!(has(&pair), [(0, 7)]);
}

#[test]
fn another_number_of_paths_begins_another_session() {
    let mut pair = up(sender(1), receiver());
    for (number, hops) in [(7, 3), (8, 2), (9, 4)] {
        hear(&mut pair, number, Some(hops));
    }
    let none = PeerConfig { add_path: AddPath::default(), ..sender(1) };
    let mut change = |config: PeerConfig| {
        pair.sides[0].peer.reconfigure(pair.now, config);
        pair.run_for(seconds(40));
        pair.assert_up();
        has(&pair)
    };
    assert_eq!(change(sender(3)), [(1, 7), (2, 8), (3, 9)]);
    assert_eq!(change(sender(2)), [(1, 7), (2, 8)]);
    assert_eq!(change(none), [(0, 8)]);
}

#[test]
fn each_path_counts_towards_the_maximum() {
    let maximum = Some(MaximumPrefixes { limit: 2, warn_percent: 100, attribute_bytes: None });
    let import =
        ImportPolicy { allowed: PrefixFilter::Everything, maximum, ..ImportPolicy::default() };
    let mut pair = up(sender(3), PeerConfig { import, ..receiver() });
    hear(&mut pair, 7, Some(1));
    hear(&mut pair, 8, Some(2));
    pair.assert_up();
    hear(&mut pair, 9, Some(3));
    let reason = "Cease/Maximum Number of Prefixes Reached (6/1)";
    assert!(pair.logs()[0].iter().any(|line| line.contains(reason)), "{:?}", pair.logs());
}

/// A neighbour with ten thousand paths to one prefix would keep route selection busy with them.
#[test]
fn a_flood_of_paths_to_one_prefix_is_refused_and_told() {
    let mut pair = up(sender(1), receiver());
    let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
    let attributes = PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop);
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    let prefix = PREFIX.parse().unwrap();
    let path = |number| Nlri { prefix, path_id: PathId::new(number) };
    let mut paths: BTreeSet<Nlri> = (0..10_000).map(path).collect();
    let mut bytes = BytesMut::new();
    while !paths.is_empty() {
        announcement(AddressFamily::Ipv4Unicast, true, &block, &mut paths, &mut bytes);
    }
    let id = pair.sides[1].peer.established.as_ref().unwrap().connection;
    pair.sides[1].peer.handle(pair.now, Event::Received(id, &bytes));
    pair.settle();
    pair.assert_up();
    let view = pair.sides[1].peer.view(pair.now, ViewScope::SESSIONS);
    assert_eq!(view.prefixes_accepted.ipv4, 64);
    assert_eq!(view.refusals, [(Refusal::TooManyPaths, 10_000 - 64)]);
    assert_eq!(pair.sides[1].rib.learned().count(), 64);
}
