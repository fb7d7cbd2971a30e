//! What both sides offered, and what the session does with it: extended messages, roles,
//! marks around a refresh.

use super::scripted::Scripted;
use super::*;
use crate::wire::announce::{AttributeBlock, announcement};
use crate::wire::{AddressFamilyPair, Capability, Framing, RouteRefresh, Update, UpdateContext};
use fairway_ground::{AsPath, LargeCommunity, NextHop, PeerKind, Role};
use fairway_seam::{AdvertisedScope, PathAttributes, PeerView, Refusal};

const FAR_ASN: u32 = 65_002;

/// What the neighbour sends to become Established, offering `capabilities` beside the required ones.
fn opening(capabilities: &[Capability]) -> Vec<u8> {
    let ipv4 = Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into());
    let must = [ipv4, Capability::FourOctetAs(FAR_ASN)];
    let open = Open {
        asn: FAR_ASN,
        hold_time: HoldTime::DEFAULT,
        router_id: RouterId::new(9).unwrap(),
        capabilities: [&must, capabilities].concat(),
    };
    [open.encode(), keepalive()].concat()
}

/// A session with a neighbour that offers `capabilities`.
fn session(capabilities: &[Capability]) -> (Scripted, ConnectionId) {
    let mut scripted = Scripted::new(config(65_001, FAR_ASN, 1));
    let id = scripted.dial_and_connect();
    scripted.receive(id, &opening(capabilities));
    assert_eq!(scripted.peer.state(), SessionState::Established);
    scripted.said();
    (scripted, id)
}

fn view(peer: &Peer) -> PeerView {
    peer.view(Instant::ZERO, ViewScope::EVERYTHING)
}

/// A route with 24,000 octets of communities for the neighbour of `peer`, and a plain one.
fn bulky_routes(peer: &Peer) -> Vec<DesiredRoute> {
    let community = |local1| LargeCommunity { global: 1, local1, local2: 0 };
    let bulky = RouteAttributes {
        large_communities: (0..2000).map(community).collect(),
        ..RouteAttributes::default()
    };
    let route = |prefix: &str, attributes: RouteAttributes| DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(BTreeSet::from([peer.config().key])),
        attributes: Arc::new(attributes),
    };
    vec![route("198.51.100.1/32", bulky), route("198.51.100.2/32", RouteAttributes::default())]
}

fn bulky(peer: &Peer) -> LocRib {
    let mut rib = LocRib::default();
    rib.set(bulky_routes(peer));
    rib.take_changes();
    rib
}

//= RFC 8654 §4 MAY: extended messages are sent to who offered to read them.
#[test]
fn two_that_read_long_messages_tell_each_other_what_needs_them() {
    let mut pair = Pair::ebgp();
    pair.sides[0].rib = bulky(&pair.sides[0].peer);
    pair.run_for(seconds(5));
    pair.assert_up();
    assert_eq!(pair.sides[1].rib.learned().count(), 2);
    let longest = view(&pair.sides[1].peer).received.remove(0).attributes;
    assert_eq!(longest.large_communities.len(), 2000);
}

/// A socket with little room gets a long message all the same, behind what is queued already.
#[test]
fn a_long_message_is_not_held_up_by_a_small_buffer() {
    let (mut scripted, id) = session(&[Capability::ExtendedMessage]);
    let rib = bulky(&scripted.peer);
    scripted.peer.announce_all(&rib);
    let mut bytes = BytesMut::from(&keepalive()[..]);
    scripted.peer.poll_transmit(
        Instant::ZERO,
        id,
        &rib,
        &mut ExportGroups::default(),
        5000,
        &mut bytes,
    );
    assert!((24_000..24_200).contains(&bytes.len()), "{} bytes", bytes.len());
}

//+ RFC 8654 §4: a message of more than 4096 octets is sent to who did not offer to read it.
//+ RFC 8654 §4: a route that does not fit into 4096 octets is withdrawn from who reads no more.
#[test]
fn who_reads_no_long_messages_is_not_told_and_the_operator_is() {
    let (mut scripted, id) = session(&[]);
    let rib = bulky(&scripted.peer);
    scripted.peer.announce_all(&rib);
    let mut bytes = BytesMut::new();
    scripted.peer.poll_transmit(
        Instant::ZERO,
        id,
        &rib,
        &mut ExportGroups::default(),
        ROOM,
        &mut bytes,
    );
    assert!(bytes.len() < 200, "{} bytes", bytes.len());
    let view = view(&scripted.peer);
    assert_eq!(scripted.peer.advertised(&rib, AdvertisedScope::All).len(), 1);
    assert_eq!(view.unannounced[0].1, "the attributes do not fit a message of 4096 bytes");
}

//= RFC 8654 §5 MUST NOT: an extended message is accepted that was not agreed on.
#[test]
fn a_long_message_is_a_wrong_length_unless_it_was_agreed_on() {
    let filler = [&[0, 0, 0x13, 0x88][..], &[0xD0, 99, 0x13, 0x84], &[7; 4996]].concat();
    let length = u16::try_from(filler.len() + 19).unwrap().to_be_bytes();
    let update = [&[0xFF; 16][..], &length, &[2], &filler].concat();
    let (mut scripted, id) = session(&[Capability::ExtendedMessage]);
    scripted.receive(id, &update);
    assert_eq!(scripted.said(), "");
    let (mut scripted, id) = session(&[]);
    scripted.receive(id, &update);
    assert_eq!(scripted.said(), "1/2:139f");
    assert!(scripted.has_closed(id));
}

fn with_roles(left: Option<Role>, right: Option<Role>, strict: bool) -> Pair {
    let [mut one, mut other] = [config(65_001, 65_002, 1), config(65_002, 65_001, 2)];
    (one.role, other.role, one.role_strict) = (left, right, strict);
    Pair::new(one, other)
}

#[test]
fn what_a_provider_tells_its_customer_is_only_for_customers() {
    let mut pair = with_roles(Some(Role::Provider), Some(Role::Customer), true);
    pair.originate(0, &["198.51.100.1/32"]);
    pair.originate(1, &["203.0.113.1/32"]);
    pair.run_for(seconds(5));
    pair.assert_up();
    let [provider, customer] = [0, 1].map(|side| view(&pair.sides[side].peer));
    assert_eq!(customer.received[0].attributes.only_to_customer, Some(65_001));
    assert_eq!(provider.received[0].attributes.only_to_customer, None);
}

//+ RFC 9234 §4.2: roles that do not fit each other are answered with Role Mismatch, 2/11.
//+ RFC 9234 §4.2: in strict mode a neighbour that says no role is answered with 2/11.
#[test]
fn two_that_mistake_each_other_have_no_session_and_say_why() {
    for (right, strict, why) in [
        (Some(Role::Peer), false, "it is peer"),
        (None, true, "nothing about its role (roleStrict requires one)"),
    ] {
        let mut pair = with_roles(Some(Role::Provider), right, strict);
        pair.run_for(seconds(60));
        assert!(pair.states().iter().all(|it| *it < SessionState::Established));
        let said = "failed: notification sent: OPEN Message Error/Role Mismatch (2/11): OPEN: the \
                    neighbor says ";
        let line = format!("{said}{why}; expected customer");
        assert!(pair.sides[0].log.contains(&line), "{line}: {:?}", pair.sides[0].log);
    }
}

//+ RFC 9234 §5: a route with OTC from a customer or a client of our route server is not used.
#[test]
fn a_leak_of_a_customer_is_refused_counted_and_named() {
    let mut pair = with_roles(Some(Role::Provider), None, false);
    pair.run_for(seconds(5));
    let leaked = |only_to_customer| {
        let next_hop = NextHop::Ipv4([192, 0, 2, 2].into());
        let as_path = AsPath::sequence(vec![65_002, 7]);
        let plain = PathAttributes::originated(as_path, next_hop);
        let attributes = PathAttributes { only_to_customer, ..plain };
        let block = AttributeBlock::encode(&attributes, true).unwrap();
        let mut bytes = BytesMut::new();
        let mut prefixes = BTreeSet::from(["203.0.113.0/24".parse().unwrap()]);
        announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
        bytes
    };
    let id = pair.sides[0].peer.established.as_ref().unwrap().connection;
    for (mark, refusals, accepted) in [(None, vec![], 1), (Some(7), vec![(Refusal::Leak, 1)], 0)] {
        pair.sides[0].peer.handle(pair.now, Event::Received(id, &leaked(mark)));
        let view = view(&pair.sides[0].peer);
        assert_eq!((view.refusals, view.prefixes_accepted.ipv4), (refusals, accepted));
    }
    pair.assert_up();
}

const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;

/// What the peer sends, by type; marks by their subtype.
fn sent(scripted: &mut Scripted, id: ConnectionId) -> Vec<String> {
    let mut bytes = BytesMut::new();
    scripted.peer.poll_transmit(
        scripted.now,
        id,
        &scripted.rib,
        &mut ExportGroups::default(),
        ROOM,
        &mut bytes,
    );
    let mut framing = Framing::default();
    framing.push(&bytes);
    let name = |message: RawMessage| match message.kind {
        MessageType::RouteRefresh => {
            format!("mark {}", RouteRefresh::parse(&message.body).unwrap().subtype)
        }
        MessageType::Update if message.body.len() == 4 => "End-of-RIB".to_owned(),
        kind => kind.name().to_owned(),
    };
    std::iter::from_fn(|| framing.next_message().unwrap()).map(name).collect()
}

fn hear(scripted: &mut Scripted, id: ConnectionId, bytes: &[u8]) {
    scripted.peer.handle(scripted.now, Event::Received(id, bytes));
}

/// A session with a neighbour that offers `capabilities` and was sent a route.
fn told(capabilities: &[Capability]) -> (Scripted, ConnectionId) {
    let (mut scripted, id) = session(capabilities);
    let Scripted { peer, rib, .. } = &mut scripted;
    rib.set(vec![DesiredRoute {
        prefix: "198.51.100.1/32".parse().unwrap(),
        peers: Arc::new(BTreeSet::from([peer.config().key])),
        attributes: Arc::default(),
    }]);
    rib.take_changes();
    peer.announce_all(rib);
    assert_eq!(sent(&mut scripted, id), ["UPDATE"]);
    (scripted, id)
}

//= RFC 4271 §9.2 MUST NOT: a route that does not fit into a message is sent.
//= RFC 8654 §4 MUST: a route that does not fit into 4096 octets is withdrawn from who reads no more.
#[test]
fn a_route_that_fits_no_message_any_more_is_withdrawn() {
    let (mut scripted, id) = told(&[]);
    let Scripted { peer, rib, .. } = &mut scripted;
    rib.set(bulky_routes(peer));
    let changes = rib.take_changes();
    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    let mut bytes = BytesMut::new();
    peer.poll_transmit(Instant::ZERO, id, rib, &mut ExportGroups::default(), ROOM, &mut bytes);
    let mut framing = Framing::default();
    framing.push(&bytes);
    let withdrawal = framing.next_message().unwrap().unwrap();
    let update = Update::parse(&withdrawal.body, UpdateContext::new(PeerKind::External)).unwrap();
    assert_eq!(update.withdrawn, ["198.51.100.1/32".parse().unwrap()]);
    let advertised = peer.advertised(rib, AdvertisedScope::All);
    let advertised: Vec<String> = advertised.iter().map(|it| it.prefix.to_string()).collect();
    assert_eq!(advertised, ["198.51.100.2/32"]);
}

/// The peer passes nothing on, so only routes of our own are looked at.
#[test]
fn a_route_that_comes_back_while_a_refresh_is_answered_is_said_again() {
    let (mut scripted, id) = told(&[Capability::RouteRefresh]);
    let Scripted { peer, rib, now, .. } = &mut scripted;
    let route = rib.originated().next().unwrap().clone();
    for (number, routes) in [Vec::new(), vec![route]].into_iter().enumerate() {
        rib.set(routes);
        let changes = rib.take_changes();
        peer.pass_on(rib, &mut ExportGroups::default(), &changes);
        if number == 0 {
            assert_eq!(peer.advertised(rib, AdvertisedScope::All).len(), 1, "its withdrawal waits");
            peer.handle(*now, Event::Received(id, &RouteRefresh::request(IPV4).encode()));
            // No room for an UPDATE, but the refresh begins.
            let up = peer.established.as_mut().unwrap();
            up.outbound.begin_refreshes(rib);
        }
    }
    assert_eq!(sent(&mut scripted, id), ["UPDATE", "End-of-RIB"]);
}

//= RFC 7313 §4 MUST: an answer to a refresh begins with BoRR and ends with EoRR.
//= RFC 7313 §4 MUST NOT: marks are sent to who does not know them.
#[test]
fn an_answer_is_marked_for_who_knows_the_marks() {
    let request = RouteRefresh::request(IPV4).encode();
    let (mut scripted, id) = told(&[Capability::RouteRefresh, Capability::EnhancedRouteRefresh]);
    hear(&mut scripted, id, &request);
    assert_eq!(sent(&mut scripted, id), ["mark 1", "UPDATE", "mark 2"]);
    scripted.peer.refresh_out().unwrap();
    assert_eq!(sent(&mut scripted, id), ["mark 1", "UPDATE", "mark 2"], "our own refresh, too");
    let (mut scripted, id) = told(&[Capability::RouteRefresh]);
    hear(&mut scripted, id, &request);
    assert_eq!(sent(&mut scripted, id), ["UPDATE", "End-of-RIB"]);
}

//= RFC 7313 §4 MUST NOT: BoRR is sent before the End-of-RIB marker of its family.
#[test]
fn a_refresh_asked_for_at_once_waits_for_the_first_table() {
    let mut scripted = Scripted::new(config(65_001, FAR_ASN, 1));
    let id = scripted.dial_and_connect();
    let opening = opening(&[Capability::EnhancedRouteRefresh]);
    hear(&mut scripted, id, &[&opening[..], &RouteRefresh::request(IPV4).encode()].concat());
    let said = sent(&mut scripted, id);
    assert_eq!(said, ["KEEPALIVE", "End-of-RIB", "mark 1", "mark 2"]);
}

#[test]
fn a_storm_of_requests_costs_one_answer() {
    let (mut scripted, id) = told(&[Capability::EnhancedRouteRefresh]);
    let request = RouteRefresh::request(IPV4).encode();
    hear(&mut scripted, id, &request.repeat(1000));
    assert_eq!(sent(&mut scripted, id), ["mark 1", "UPDATE", "mark 2"]);
}

/// Announces 203.0.113.`last`/32.
fn announced(last: u8) -> Vec<u8> {
    let next_hop = NextHop::Ipv4([192, 0, 2, 2].into());
    let attributes = PathAttributes::originated(AsPath::sequence(vec![FAR_ASN]), next_hop);
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = BTreeSet::from([format!("203.0.113.{last}/32").parse().unwrap()]);
    announcement(IPV4, false, &block, &mut prefixes, &mut bytes);
    bytes.to_vec()
}

fn held(scripted: &Scripted) -> u32 {
    view(&scripted.peer).prefixes_accepted.ipv4
}

const MARKS: [Capability; 1] = [Capability::EnhancedRouteRefresh];

/// The neighbour has announced routes 1 to 3, and begins to send them again.
fn begun(capabilities: &[Capability]) -> (Scripted, ConnectionId) {
    let (mut scripted, id) = session(capabilities);
    for last in 1..=3 {
        hear(&mut scripted, id, &announced(last));
    }
    hear(&mut scripted, id, &RouteRefresh::begin(IPV4).encode());
    assert_eq!(held(&scripted), 3, "nothing goes before the end");
    (scripted, id)
}

//+ RFC 7313 §4: all routes of the family are stale when a refresh begins.
//+ RFC 7313 §4: routes that are still stale when it ends are removed.
//+ RFC 7313 §4: an end without a beginning is ignored.
#[test]
fn what_a_neighbour_does_not_say_again_is_gone_when_it_ends() {
    let (mut scripted, id) = begun(&MARKS);
    hear(&mut scripted, id, &announced(2));
    while scripted.peer.poll_action().is_some() {}
    hear(&mut scripted, id, &RouteRefresh::end(IPV4).encode());
    let Some(Action::Routes(_, changes)) = scripted.peer.poll_action() else { panic!("they go") };
    let gone: Vec<String> = changes.iter().map(|it| it.nlri.to_string()).collect();
    assert_eq!(gone, ["203.0.113.1/32", "203.0.113.3/32"]);
    for _ in 0..3 {
        hear(&mut scripted, id, &RouteRefresh::end(IPV4).encode());
        assert_eq!(held(&scripted), 1, "an end without a beginning ends nothing");
    }
}

//= RFC 7313 §4 MAY: a refresh that takes too long ends by itself.
#[test]
fn a_refresh_that_never_ends_is_ended() {
    let (mut scripted, id) = begun(&MARKS);
    hear(&mut scripted, id, &announced(2));
    let pass = |scripted: &mut Scripted| {
        hear(scripted, id, &keepalive());
        sent(scripted, id);
        scripted.now = scripted.now + seconds(2);
        scripted.peer.handle(scripted.now, Event::Tick);
    };
    (0..299).for_each(|_| pass(&mut scripted));
    assert_eq!(held(&scripted), 3, "598 seconds are not too long");
    pass(&mut scripted);
    assert_eq!(held(&scripted), 1);
    assert!(scripted.peer.next_deadline() > Some(scripted.now), "a tick settles what was due");
}

/// RFC 2918 §3: the octet of the mark is reserved, and requests routes like any other value.
#[test]
fn who_does_not_know_the_marks_asks_whatever_it_writes_there() {
    let (mut scripted, id) = begun(&[Capability::RouteRefresh]);
    assert_eq!(sent(&mut scripted, id), ["End-of-RIB"], "an answer, of no route");
    hear(&mut scripted, id, &RouteRefresh::end(IPV4).encode());
    assert_eq!(held(&scripted), 3);
    assert_eq!(sent(&mut scripted, id), ["End-of-RIB"]);
}

//= RFC 7313 §4 MUST: BoRR of who restarts gracefully is ignored before its End-of-RIB marker.
#[test]
fn who_restarts_gracefully_says_its_routes_once_before_it_says_them_again() {
    let restart = Capability::Other { code: 64, value: vec![0, 120, 0, 1, 1, 0] };
    let (mut scripted, id) = begun(&[restart, Capability::EnhancedRouteRefresh]);
    hear(&mut scripted, id, &RouteRefresh::end(IPV4).encode());
    assert_eq!(held(&scripted), 3);
    let end_of_rib = framed(MessageType::Update, &[0; 4]).unwrap();
    for message in
        [end_of_rib, RouteRefresh::begin(IPV4).encode(), RouteRefresh::end(IPV4).encode()]
    {
        hear(&mut scripted, id, &message);
    }
    assert_eq!(held(&scripted), 0);
}

#[test]
fn marks_of_families_that_nobody_carries_mean_nothing() {
    let (mut scripted, id) = begun(&MARKS);
    for (afi, safi) in [(2, 1), (1, 2), (25, 70)] {
        let family = AddressFamilyPair { afi, safi };
        hear(&mut scripted, id, &RouteRefresh { family, subtype: RouteRefresh::END }.encode());
    }
    assert_eq!(held(&scripted), 3);
    assert_eq!(sent(&mut scripted, id), Vec::<String>::new());
}
