//! A node is drained and comes back: what its neighbour has, at each step.

use super::*;
use fairway_ground::Community;
use fairway_seam::{DrainState, PathAttributes};

const PREFIX: &str = "203.0.113.1/32";

/// What the right side has of the left one.
fn heard(pair: &Pair) -> Option<Arc<PathAttributes>> {
    let right = pair.sides[1].peer.established.as_ref().unwrap();
    right.inbound.adj_rib_in.routes().next().map(|(_, it)| Arc::clone(it))
}

fn set(pair: &mut Pair, drain: DrainState) {
    let Side { peer, rib, .. } = &mut pair.sides[0];
    peer.set_drain(rib, drain);
    peer.look_again(pair.now, rib, usize::MAX);
    pair.settle();
}

/// The communities and the LOCAL_PREF that the right side has.
fn seen(pair: &Pair) -> Option<(Vec<Community>, Option<u32>)> {
    heard(pair).map(|it| (it.communities.to_vec(), it.local_pref))
}

fn up(remote_asn: u32) -> Pair {
    let mut pair = Pair::new(config(65_001, remote_asn, 1), config(remote_asn, 65_001, 2));
    pair.originate(0, &[PREFIX]);
    pair.run_for(seconds(5));
    pair.assert_up();
    pair
}

const LEAVING: Community = Community::GRACEFUL_SHUTDOWN;

/// Both ends are ours: the far one lowers the LOCAL_PREF of what leaves by itself.
//+ RFC 8326 §4: the LOCAL_PREF of paths that are about to go is below that of all others: 0.
#[test]
fn a_neighbour_sees_a_node_leave_in_two_steps_and_come_back_at_once() {
    for (remote_asn, before) in [(65_002, None), (65_001, Some(100))] {
        let mut pair = up(remote_asn);
        assert_eq!(seen(&pair), Some((vec![], before)));
        set(&mut pair, DrainState::Draining);
        assert_eq!(seen(&pair), Some((vec![LEAVING], Some(0))), "AS {remote_asn}");
        set(&mut pair, DrainState::Drained);
        assert_eq!(seen(&pair), None);
        pair.assert_up();
        let view = pair.sides[0].peer.view(pair.now, ViewScope::SESSIONS);
        let kept_back = (PREFIX.parse().unwrap(), "the node is drained".to_owned());
        assert_eq!(view.unannounced, [kept_back]);
        set(&mut pair, DrainState::InService);
        assert_eq!(seen(&pair), Some((vec![], before)));
        let view = pair.sides[0].peer.view(pair.now, ViewScope::SESSIONS);
        assert_eq!(view.unannounced, []);
        assert_eq!(pair.logs(), [["up"], ["up"]], "one session all the time");
    }
}

/// They may be a million: the drained node is marked on each route of our own, and once.
#[test]
fn what_others_said_is_kept_back_without_a_word_for_each() {
    let mut left = config(65_001, 65_002, 1);
    left.pass_on = fairway_ground::PrefixFilter::Everything;
    let mut pair = Pair::new(left, config(65_002, 65_001, 2));
    pair.run_for(seconds(5));
    pair.assert_up();
    let mut attributes = PathAttributes::originated(
        fairway_ground::AsPath::sequence(vec![65_003]),
        fairway_ground::NextHop::Ipv4([192, 0, 2, 3].into()),
    );
    attributes.med = Some(7);
    let Side { peer, rib, .. } = &mut pair.sides[0];
    let source = Arc::new(fairway_seam::PathSource {
        key: std::net::IpAddr::from([192, 0, 2, 3]).into(),
        address: [192, 0, 2, 3].into(),
        kind: fairway_ground::PeerKind::External,
        remote_asn: Asn::new(65_003).unwrap(),
        router_id: RouterId::new(3).unwrap(),
        is_client: false,
    });
    let attributes = Some(Arc::new(attributes));
    let change = RouteChange { nlri: PREFIX.parse().unwrap(), attributes };
    rib.learn(&source, vec![change]);
    let changes = rib.take_changes();
    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    pair.settle();
    assert!(heard(&pair).is_some());
    set(&mut pair, DrainState::Drained);
    assert_eq!(heard(&pair), None);
    let view = pair.sides[0].peer.view(pair.now, ViewScope::SESSIONS);
    assert_eq!(view.unannounced, []);
    set(&mut pair, DrainState::InService);
    assert!(heard(&pair).is_some());
}

#[test]
fn a_session_that_comes_up_meanwhile_is_told_the_same() {
    for (drain, told) in [(DrainState::Draining, true), (DrainState::Drained, false)] {
        let mut pair = up(65_002);
        set(&mut pair, drain);
        pair.sides[0].peer.reset(pair.now);
        pair.run_for(seconds(40));
        pair.assert_up();
        let leaving = (vec![LEAVING], Some(0));
        assert_eq!(seen(&pair), told.then_some(leaving), "{drain:?}");
    }
}

#[test]
fn other_settings_and_other_routes_do_not_bring_a_drained_node_back() {
    let mut pair = up(65_002);
    set(&mut pair, DrainState::Drained);
    let Side { peer, rib, .. } = &mut pair.sides[0];
    let mut other = peer.config().clone();
    other.pass_on = fairway_ground::PrefixFilter::Everything;
    peer.reconfigure(pair.now, other);
    peer.announce_all(rib);
    pair.originate(0, &[PREFIX, "203.0.113.2/32"]);
    pair.settle();
    assert_eq!(seen(&pair), None);
    let after_a_fault = pair.sides[0].peer.after_panic(pair.now, pair.now, 1, 7);
    assert_eq!(after_a_fault.drain, DrainState::Drained);
}
