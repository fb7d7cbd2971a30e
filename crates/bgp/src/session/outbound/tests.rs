use std::net::IpAddr;

use super::*;
use crate::example::Example as _;
use crate::rib::Encoding;
use crate::wire::MESSAGE_LENGTH_BYTES_MAX;
use fairway_ground::{
    AsPath, Asn, ClientKind, Community, FamilySet, NextHop, OriginValidation, PeerKey, PeerKind,
    PrefixFilter, RoaPayload, RouteMatch, RouteRule, RouterId, RuleAction,
};
use fairway_seam::{
    AdvertisedScope, DesiredRoute, PathAttributes, PathSource, RouteAttributes, RouteChange,
};

const ENCODING: Encoding =
    Encoding { four_octet_as: true, message_length_bytes_max: MESSAGE_LENGTH_BYTES_MAX };

/// What peer `number` is told, who was told all that there was: nothing.
fn outbound(number: u8) -> Outbound {
    outbound_of(number, None)
}

fn outbound_of(number: u8, client: Option<ClientKind>) -> Outbound {
    outbound_with(number, |config| config.client = client)
}

fn outbound_with(number: u8, change: impl FnOnce(&mut PeerConfig)) -> Outbound {
    let key = PeerKey::from(IpAddr::from([192, 0, 2, number]));
    let pass_on = PrefixFilter::Everything;
    let mut config = PeerConfig { key, pass_on, ..PeerConfig::example(1) };
    change(&mut config);
    let ipv4 = FamilySet::only(AddressFamily::Ipv4Unicast);
    let next_hops =
        LocalNextHops { ipv4: Some([198, 51, 100, number].into()), ..LocalNextHops::default() };
    let exporter = Exporter::new(&config, ipv4, next_hops, DrainState::InService, ENCODING);
    let mut outbound = Outbound::new(AdjRibOut::new(FamilySet::EMPTY, FamilySet::EMPTY), exporter);
    outbound.announce_all(&LocRib::default());
    outbound
}

/// A peer that is not sent routes whose origin has this state.
fn outbound_without(state: OriginValidation) -> Outbound {
    let matches = RouteMatch { origin_validation: Some(state), ..RouteMatch::default() };
    let rule = RouteRule { matches, action: RuleAction::Reject, ..RouteRule::default() };
    let mut peer = outbound_with(2, |config| config.pass_on_rules = vec![rule].into());
    peer.exporter = peer.exporter.with_own_cache().validate(&Arc::default());
    peer
}

/// A neighbour announces a prefix again, with a long list of attributes.
fn learn(rib: &mut LocRib, round: u32) {
    learn_from(rib, 9, round);
}

fn learn_from(rib: &mut LocRib, number: u8, round: u32) {
    let mut attributes = attributes(number);
    attributes.communities = (round..round + 60).map(Community).collect();
    let nlri = "198.51.100.0/24".parse().unwrap();
    let change = RouteChange { nlri, attributes: Some(Arc::new(attributes)) };
    rib.learn(&source(number), vec![change]);
}

fn source(number: u8) -> Arc<PathSource> {
    let address = [192, 0, 2, number];
    Arc::new(PathSource {
        key: PeerKey::from(IpAddr::from(address)),
        address: address.into(),
        kind: PeerKind::External,
        remote_asn: Asn::new(65_009).unwrap(),
        router_id: RouterId::new(number.into()).unwrap(),
        is_client: false,
    })
}

fn attributes(number: u8) -> PathAttributes {
    let next_hop = NextHop::Ipv4([192, 0, 2, number].into());
    PathAttributes::originated(AsPath::sequence(vec![65_009]), next_hop)
}

/// The most octets that wait for the socket of a peer that reads nothing, of what its group is sent.
fn waiting_bytes_max(rib: &mut LocRib) -> usize {
    rib.take_changes();
    let mut groups = ExportGroups::default();
    let [mut slow, mut other] = [2, 3].map(outbound);
    let mut waiting_bytes = 0;
    for round in 1..100 {
        learn(rib, round);
        let changes = rib.take_changes();
        for peer in [&mut other, &mut slow] {
            peer.announce(rib, &mut groups, &changes);
        }
        while other.next_message(rib, &mut groups, &mut BytesMut::new()).is_some() {}
        let left = slow.on_the_way.iter().map(OnTheWay::length_bytes);
        waiting_bytes = waiting_bytes.max(left.sum::<usize>());
    }
    waiting_bytes
}

#[test]
fn withdrawals_of_our_own_do_not_wait_behind_the_change_of_a_whole_table() {
    let mut rib = LocRib::default();
    let alone = waiting_bytes_max(&mut rib);
    rib.set(vec![DesiredRoute {
        prefix: "203.0.113.1/32".parse().unwrap(),
        peers: Arc::new(BTreeSet::new()),
        attributes: Arc::new(RouteAttributes::default()),
    }]);
    let beside_own = waiting_bytes_max(&mut rib);
    // Of one message more than the bound, each.
    assert!((200..500).contains(&beside_own), "{beside_own}");
    assert!((500..1_200).contains(&alone), "{alone}");
}

/// The best path is its own, and so not for it: what it is told is the second best, which nobody else is told.
#[test]
fn a_client_of_a_route_server_is_told_of_changes_behind_its_own_route() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut client = outbound_of(9, Some(ClientKind::RouteServer));
    let mut updates = Vec::new();
    for (number, round) in [(9, 1), (10, 1), (10, 2)] {
        learn_from(&mut rib, number, round);
        let changes = rib.take_changes();
        client.announce(&rib, &mut groups, &changes);
        let mut next = || client.next_message(&rib, &mut groups, &mut BytesMut::new());
        updates.push(std::iter::from_fn(&mut next).count());
    }
    assert_eq!(updates, [0, 1, 1]);
    assert_eq!(client.advertised(&rib, AdvertisedScope::All).len(), 1);
}

/// The peer removes what is not announced again between the two marks (RFC 7313 §4).
#[test]
fn the_start_of_a_refresh_goes_before_routes_that_come_after_it_was_asked_for() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let [mut refreshed, mut other] = [2, 3].map(outbound);
    refreshed.adj_rib_out.mark_refreshes();
    // It has no route as yet.
    refreshed.adj_rib_out.refresh(AddressFamily::Ipv4Unicast);
    refreshed.begin_refreshes(&rib);
    learn(&mut rib, 1);
    let changes = rib.take_changes();
    for peer in [&mut other, &mut refreshed] {
        peer.announce(&rib, &mut groups, &changes);
    }
    let mut next = || refreshed.next_message(&rib, &mut groups, &mut BytesMut::new());
    let sent = std::iter::from_fn(&mut next).collect::<Vec<_>>();
    use MessageType::{RouteRefresh, Update};
    assert_eq!(sent, [RouteRefresh, Update, RouteRefresh]);
}

/// More prefixes go than may wait for a peer: the rest is only noted. Their numbers must not go to other prefixes meanwhile.
#[test]
fn a_peer_that_lags_is_sent_the_withdrawals_of_prefixes_that_nobody_has_any_more() {
    const PREFIXES: u8 = 40;
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut slow = outbound(2);
    let mut change_all = |attributes: Option<Arc<PathAttributes>>| {
        let change = |number| RouteChange {
            nlri: format!("10.0.{number}.0/24").parse().unwrap(),
            attributes: attributes.clone(),
        };
        rib.learn(&source(9), (0..PREFIXES).map(change));
        let changes = rib.take_changes();
        slow.announce(&rib, &mut groups, &changes);
        rib.reclaim(|id| slow.adj_rib_out.awaits(id));
        // It reads again.
        while slow.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
        slow.adj_rib_out.counts().ipv4
    };
    assert_eq!(change_all(Some(Arc::new(attributes(9)))), u32::from(PREFIXES));
    assert_eq!(change_all(None), 0);
}

/// A route that is nothing for a peer is not noted for it, so that what RPKI says later must make the peer look again.
#[test]
fn a_route_is_sent_when_rpki_calls_it_valid_and_withdrawn_when_it_does_no_more() {
    let prefix = "198.51.100.0/24".parse().unwrap();
    let says = |payload: Option<RoaPayload>| Arc::new(OriginTable::from_iter(payload));
    let mut peer = outbound_without(OriginValidation::NotFound);
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    learn(&mut rib, 1);
    let changes = rib.take_changes();
    peer.announce(&rib, &mut groups, &changes);
    let mut sent = |peer: &mut Outbound| {
        while peer.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
        peer.adj_rib_out.counts().ipv4
    };
    assert_eq!(sent(&mut peer), 0);
    let concerned = PrefixSet::from_iter(rib.id_of(prefix));
    let valid = RoaPayload { prefix, length_max: 24, asn: 65_009 };
    for (payload, count) in [(Some(valid), 1), (None, 0), (Some(valid), 1)] {
        peer.validate_again(&says(payload), &concerned);
        peer.announce_all(&rib);
        peer.look_again(&rib, 1);
        assert_eq!(sent(&mut peer), count);
    }
}

fn announced(number: u8) -> RouteChange {
    let nlri = format!("10.0.{number}.0/24").parse().unwrap();
    RouteChange { nlri, attributes: Some(Arc::new(attributes(9))) }
}

/// Routes of others are withdrawn in parts, those of our own at once. What changes meanwhile is sent as it is.
#[test]
fn another_policy_is_applied_in_parts_and_to_our_own_routes_at_once() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut peer = outbound(2);
    let own = "203.0.113.1/32".parse().unwrap();
    rib.learn(&source(9), (0..3).map(announced));
    rib.set(vec![DesiredRoute {
        prefix: own,
        peers: Arc::new(BTreeSet::from([peer.exporter.key()])),
        attributes: Arc::new(RouteAttributes::default()),
    }]);
    let mut pass_on = |rib: &mut LocRib, peer: &mut Outbound| {
        let changes = rib.take_changes();
        peer.announce(rib, &mut groups, &changes);
        while peer.next_message(rib, &mut groups, &mut BytesMut::new()).is_some() {}
        let told = peer.advertised(rib, AdvertisedScope::All);
        assert_eq!(u32::try_from(told.len()).unwrap(), peer.adj_rib_out.counts().ipv4);
        told.iter().map(|(nlri, _)| nlri.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(pass_on(&mut rib, &mut peer), "10.0.0.0/24 10.0.1.0/24 10.0.2.0/24 203.0.113.1/32");
    // Drained, and nothing of others is passed on.
    let config = PeerConfig { key: peer.exporter.key(), ..PeerConfig::example(1) };
    let next_hops = LocalNextHops { ipv4: Some([198, 51, 100, 2].into()), ..Default::default() };
    peer.renew(&config, next_hops, DrainState::Draining, &Arc::default());
    peer.announce_all(&rib);
    assert_eq!(peer.adj_rib_out.waiting_count(), 1, "our own");
    assert!(peer.owes_withdrawals() && peer.has_to_look_again());
    assert_eq!(pass_on(&mut rib, &mut peer), "10.0.0.0/24 10.0.1.0/24 10.0.2.0/24 203.0.113.1/32");
    peer.look_again(&rib, 1);
    assert_eq!(pass_on(&mut rib, &mut peer), "10.0.1.0/24 10.0.2.0/24 203.0.113.1/32");
    let withdrawn = RouteChange { attributes: None, ..announced(2) };
    rib.learn(&source(9), vec![announced(0), withdrawn]);
    assert_eq!(pass_on(&mut rib, &mut peer), "10.0.1.0/24 203.0.113.1/32");
    peer.look_again(&rib, 2);
    assert_eq!(pass_on(&mut rib, &mut peer), "203.0.113.1/32");
    assert!(!peer.owes_withdrawals() && !peer.has_earlier());
}

/// A peer that reads slowly must not keep the data of RPKI of an hour.
#[test]
fn what_rpki_says_meanwhile_waits_for_the_policy_before() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut peer = outbound_without(OriginValidation::Invalid);
    rib.learn(&source(9), (0..6).map(announced));
    let changes = rib.take_changes();
    peer.announce(&rib, &mut groups, &changes);
    while peer.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
    let concerned = PrefixSet::below(rib.end());
    let (mut tables, mut kept) = (Vec::new(), Vec::new());
    let mut payloads = BTreeSet::new();
    for number in 0..6 {
        let prefix = announced(number).nlri.prefix;
        payloads.insert(RoaPayload { prefix, length_max: 24, asn: 1 });
        let origins = Arc::new(payloads.iter().copied().collect());
        tables.push(Arc::downgrade(&origins));
        peer.validate_again(&origins, &concerned);
        drop(origins);
        peer.announce_all(&rib);
        peer.look_again(&rib, 1);
        kept.push(tables.iter().filter(|it| it.upgrade().is_some()).count());
    }
    assert!(kept.iter().all(|count| *count <= 3), "in force, before, and after: {kept:?}");
    while peer.has_earlier() {
        peer.look_again(&rib, 6);
        while peer.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
    }
    assert_eq!(peer.adj_rib_out.counts().ipv4, 0, "all are invalid");
}

/// The policy before was done with by changes of all its prefixes, and what waited for it is not in force yet.
#[test]
fn what_rpki_says_last_comes_into_force_last() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut peer = outbound_without(OriginValidation::Invalid);
    let mut drain = |rib: &LocRib, peer: &mut Outbound| {
        while peer.next_message(rib, &mut groups, &mut BytesMut::new()).is_some() {}
    };
    let says = |peer: &mut Outbound, rib: &LocRib, invalid: Option<u8>| {
        let payload = invalid.map(|number| announced(number).nlri.prefix);
        let payload = payload.map(|prefix| RoaPayload { prefix, length_max: 24, asn: 1 });
        let all = PrefixSet::below(rib.end());
        peer.validate_again(&Arc::new(OriginTable::from_iter(payload)), &all);
        peer.announce_all(rib);
    };
    for communities in [Vec::new(), vec![Community(1)]] {
        let communities = communities.into();
        let attributes = Arc::new(PathAttributes { communities, ..attributes(9) });
        let change =
            |it| RouteChange { attributes: Some(Arc::clone(&attributes)), ..announced(it) };
        rib.learn(&source(9), (0..6).map(change));
        let changes = rib.take_changes();
        peer.announce(&rib, &mut ExportGroups::default(), &changes);
        drain(&rib, &mut peer);
        if !peer.has_earlier() {
            says(&mut peer, &rib, Some(0));
            says(&mut peer, &rib, Some(1));
        }
    }
    assert!(peer.has_earlier() && peer.earlier.is_empty(), "the second waits for a turn");
    says(&mut peer, &rib, None);
    while peer.has_earlier() {
        peer.look_again(&rib, 6);
        drain(&rib, &mut peer);
    }
    assert_eq!(peer.adj_rib_out.counts().ipv4, 6, "none is invalid");
}

/// It was only noted, is told by the policy in force when there is room, and must not be told once more.
#[test]
fn a_prefix_that_lagged_when_the_policy_changed_is_sent_once() {
    const PREFIXES: u8 = 40;
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut peer = outbound_without(OriginValidation::Invalid);
    let last = announced(PREFIXES - 1).nlri.prefix;
    let invalid = OriginTable::from_iter([RoaPayload { prefix: last, length_max: 24, asn: 1 }]);
    peer.exporter = peer.exporter.with_own_cache().validate(&Arc::new(invalid));
    let mut drain = |rib: &LocRib, peer: &mut Outbound| {
        while peer.next_message(rib, &mut groups, &mut BytesMut::new()).is_some() {}
        u8::try_from(peer.adj_rib_out.counts().ipv4).unwrap()
    };
    for (number, told) in [(1, PREFIXES - 1), (2, PREFIXES)] {
        let communities = vec![Community(number)].into();
        let attributes = Arc::new(PathAttributes { communities, ..attributes(9) });
        let change =
            |it| RouteChange { attributes: Some(Arc::clone(&attributes)), ..announced(it) };
        rib.learn(&source(9), (0..PREFIXES).map(change));
        let changes = rib.take_changes();
        peer.announce(&rib, &mut ExportGroups::default(), &changes);
        if told == PREFIXES {
            assert_eq!(peer.adj_rib_out.lags(rib.id_of(last).unwrap()), Some(false));
            peer.validate_again(&Arc::default(), &PrefixSet::below(rib.end()));
            peer.announce_all(&rib);
        }
        assert_eq!(drain(&rib, &mut peer), told);
    }
    while peer.has_earlier() {
        peer.look_again(&rib, 1);
        assert_eq!(drain(&rib, &mut peer), PREFIXES);
    }
}

/// The operator changes it faster than the peer reads.
#[test]
fn no_more_than_two_earlier_policies_are_kept() {
    let mut rib = LocRib::default();
    let mut groups = ExportGroups::default();
    let mut peer = outbound(2);
    rib.learn(&source(9), (0..6).map(announced));
    let changes = rib.take_changes();
    peer.announce(&rib, &mut groups, &changes);
    while peer.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
    let next_hops = LocalNextHops { ipv4: Some([198, 51, 100, 2].into()), ..Default::default() };
    let mut most = 0;
    for round in 0..6 {
        let pass_on = [PrefixFilter::Nothing, PrefixFilter::Everything][round % 2].clone();
        let config = PeerConfig { key: peer.exporter.key(), pass_on, ..PeerConfig::example(1) };
        peer.renew(&config, next_hops, DrainState::InService, &Arc::default());
        peer.announce_all(&rib);
        peer.look_again(&rib, 1);
        most = most.max(peer.earlier.count());
    }
    assert_eq!(most, 2);
    while peer.has_earlier() {
        peer.look_again(&rib, 6);
        while peer.next_message(&rib, &mut groups, &mut BytesMut::new()).is_some() {}
    }
    assert_eq!(peer.adj_rib_out.counts().ipv4, 6);
}
