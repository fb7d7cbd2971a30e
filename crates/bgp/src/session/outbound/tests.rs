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
    let unknown =
        RouteMatch { origin_validation: Some(OriginValidation::NotFound), ..RouteMatch::default() };
    let rule = RouteRule { matches: unknown, action: RuleAction::Reject, ..RouteRule::default() };
    let says = |payload: Option<RoaPayload>| Arc::new(OriginTable::from_iter(payload));
    let mut peer = outbound_with(2, |config| config.pass_on_rules = vec![rule].into());
    peer.exporter = peer.exporter.with_own_cache().validate(&says(None));
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
    let concerned = [rib.id_of(prefix).unwrap()];
    let valid = RoaPayload { prefix, length_max: 24, asn: 65_009 };
    for (payload, count) in [(Some(valid), 1), (None, 0), (Some(valid), 1)] {
        peer.validate_again(&rib, &says(payload), &concerned);
        assert_eq!(sent(&mut peer), count);
    }
}
