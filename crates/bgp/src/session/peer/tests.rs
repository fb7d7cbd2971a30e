//! Two peers on one virtual clock, joined by byte queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::*;
use crate::example::Example as _;
use crate::rib::{ExportGroups, LocRib};
use crate::wire::Open;
use crate::wire::header::{framed, keepalive};
use fairway_ground::{
    AddressFamily, Asn, FamilySet, GracefulRestart, HoldTime, RemoteAs, RouterId,
};
use fairway_seam::{AdvertisedScope, DesiredRoute, RouteAttributes, ViewScope};

mod add_path;
mod agreed;
mod answers;
mod bfd;
mod changes;
mod collision;
mod comeback;
mod draining;
mod fsm;
mod fsm_table;
mod helper;
mod hold_time;
mod leaving;
mod links;
mod long_lived;
mod monitored;
mod passing_on;
mod receiving;
mod recovery;
mod replaced;
mod restarting;
mod restarts_at_random;
mod scripted;
mod timers;
mod validating;

const ROOM: usize = 65_536;

fn config(local_asn: u32, remote_asn: u32, number: u8) -> PeerConfig {
    PeerConfig {
        local_asn: Asn::new(local_asn).unwrap(),
        remote_as: RemoteAs::Asn(Asn::new(remote_asn).unwrap()),
        ..PeerConfig::example(number)
    }
}

fn ends(number: u8) -> Connected {
    Connected {
        local: ([192, 0, 2, number], 179).into(),
        remote: ([192, 0, 2, 3 - number], 179).into(),
        next_hops: LocalNextHops {
            ipv4: Some([192, 0, 2, number].into()),
            ipv6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(number)].into()),
            ..LocalNextHops::default()
        },
        networks: Vec::new(),
    }
}

/// One side of the pair.
struct Side {
    peer: Peer,
    rib: LocRib,
    /// Our connection to the wire it runs over.
    wires: BTreeMap<ConnectionId, usize>,
    log: Vec<String>,
}

/// A TCP connection: the side that dialled is side 0 of it.
struct Wire {
    ends: [(usize, ConnectionId); 2],
    open: bool,
}

struct Pair {
    now: Instant,
    sides: [Side; 2],
    wires: Vec<Wire>,
    /// Nothing that is sent arrives.
    silent: bool,
    /// Dials fail.
    unreachable: bool,
    dials: usize,
}

impl Pair {
    fn new(left: PeerConfig, right: PeerConfig) -> Self {
        let side = |config, seed| Side {
            peer: Peer::new(Instant::ZERO, config, seed, 0),
            rib: LocRib::default(),
            wires: BTreeMap::new(),
            log: Vec::new(),
        };
        Self {
            now: Instant::ZERO,
            sides: [side(left, 1), side(right, 2)],
            wires: Vec::new(),
            silent: false,
            unreachable: false,
            dials: 0,
        }
    }

    fn ebgp() -> Self {
        Self::new(config(65001, 65002, 1), config(65002, 65001, 2))
    }

    fn act(&mut self, side: usize) {
        while let Some(action) = self.sides[side].peer.poll_action() {
            match action {
                Action::Connect(id) => self.dial(side, id),
                Action::Close(id, last_words) => {
                    let Some(wire) = self.sides[side].wires.remove(&id) else { continue };
                    if let Some(bytes) = last_words {
                        self.carry(side, wire, &bytes);
                    }
                    self.close(side, wire);
                }
                Action::Established => {
                    let Side { peer, rib, log, .. } = &mut self.sides[side];
                    log.push("up".to_owned());
                    peer.announce_all(rib);
                }
                Action::Down(reason) => self.sides[side].log.push(format!("down: {reason}")),
                Action::AttemptFailed(reason) => {
                    self.sides[side].log.push(format!("failed: {reason}"));
                }
                Action::AllRoutes(family) => self.sides[side].peer.note_all_accepted(family),
                Action::Routes(source, changes) => {
                    let Side { peer, rib, .. } = &mut self.sides[side];
                    peer.note_accepted(&changes);
                    rib.learn(&source, changes);
                    let changes = rib.take_changes();
                    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
                }
                Action::Malformed(malformed) => self.sides[side].log.push(malformed.to_string()),
                Action::NearMaximum(family, count) => {
                    self.sides[side].log.push(format!("near maximum: {count} of {family}"));
                }
            }
        }
    }

    fn dial(&mut self, side: usize, id: ConnectionId) {
        self.dials += 1;
        let now = self.now;
        if self.unreachable {
            let event = Event::ConnectFailed(id, "refused".to_owned());
            self.sides[side].peer.handle(now, event);
            return;
        }
        let other = 1 - side;
        let number = |side: usize| u8::try_from(side + 1).unwrap();
        let theirs = self.sides[other].peer.accept(now, ends(number(other)));
        let wire = self.wires.len();
        self.wires.push(Wire { ends: [(side, id), (other, theirs)], open: true });
        self.sides[side].wires.insert(id, wire);
        self.sides[other].wires.insert(theirs, wire);
        self.sides[side].peer.handle(now, Event::Connected(id, ends(number(side))));
        self.act(other);
    }

    fn far_end(&self, side: usize, wire: usize) -> (usize, ConnectionId) {
        let [a, b] = self.wires[wire].ends;
        if a.0 == side { b } else { a }
    }

    fn carry(&mut self, from: usize, wire: usize, bytes: &[u8]) {
        if self.silent || !self.wires[wire].open {
            return;
        }
        let (to, id) = self.far_end(from, wire);
        // Cut in two, so that framing is always at work.
        let (front, back) = bytes.split_at(bytes.len() / 3);
        for part in [front, back] {
            self.sides[to].peer.handle(self.now, Event::Received(id, part));
        }
    }

    fn close(&mut self, from: usize, wire: usize) {
        if std::mem::replace(&mut self.wires[wire].open, false) && !self.silent {
            let (to, id) = self.far_end(from, wire);
            self.sides[to].wires.remove(&id);
            self.sides[to].peer.handle(self.now, Event::Closed(id, None));
            self.act(to);
        }
    }

    /// Lets both sides act and exchange messages until nothing more happens at this instant.
    fn settle(&mut self) {
        loop {
            let mut idle = true;
            for side in 0..2 {
                self.act(side);
                for (id, wire) in self.sides[side].wires.clone() {
                    let mut bytes = BytesMut::new();
                    let Side { peer, rib, .. } = &mut self.sides[side];
                    let groups = &mut ExportGroups::default();
                    peer.poll_transmit(self.now, id, rib, groups, ROOM, &mut bytes);
                    if !bytes.is_empty() {
                        idle = false;
                        self.carry(side, wire, &bytes);
                    }
                }
            }
            if idle {
                return;
            }
        }
    }

    fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        while let Some(next) = self.sides.iter().filter_map(|it| it.peer.next_deadline()).min() {
            if next > end {
                break;
            }
            assert!(next >= self.now, "time goes forward");
            self.now = next;
            for side in 0..2 {
                self.sides[side].peer.handle(next, Event::Tick);
                let deadline = self.sides[side].peer.next_deadline();
                assert!(deadline.is_none_or(|it| it > next), "a tick settles what was due");
            }
            self.settle();
        }
        self.now = end;
    }

    fn advertised(&self, side: usize) -> Vec<fairway_seam::PeerRoute> {
        let Side { peer, rib, .. } = &self.sides[side];
        peer.advertised(rib, AdvertisedScope::All)
    }

    fn states(&self) -> [SessionState; 2] {
        [self.sides[0].peer.state(), self.sides[1].peer.state()]
    }

    fn assert_up(&self) {
        assert_eq!(self.states(), [SessionState::Established; 2], "{:?}", self.logs());
        let open = self.wires.iter().filter(|wire| wire.open).count();
        assert_eq!(open, 1, "one connection is left");
    }

    fn logs(&self) -> [&[String]; 2] {
        [&self.sides[0].log, &self.sides[1].log]
    }

    fn originate(&mut self, side: usize, prefixes: &[&str]) {
        let Side { peer, rib, .. } = &mut self.sides[side];
        let peers = Arc::new(BTreeSet::from([peer.config().route_key()]));
        let attributes = Arc::new(RouteAttributes::default());
        let route = |prefix: &&str| DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::clone(&peers),
            attributes: Arc::clone(&attributes),
        };
        rib.set(prefixes.iter().map(route).collect::<Vec<_>>());
        let changes = rib.take_changes();
        peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

//= RFC 4271 §6.8 MUST: when two connections collide, one of them is closed.
#[test]
fn two_that_dial_at_the_same_instant_end_with_one_session() {
    for (left_id, right_id) in [(1, 2), (2, 1)] {
        let mut pair = Pair::ebgp();
        pair.sides[0].peer.config.router_id = RouterId::new(left_id).unwrap();
        pair.sides[1].peer.config.router_id = RouterId::new(right_id).unwrap();
        pair.run_for(seconds(40));
        pair.assert_up();
    }
}

//= RFC 4271 §4.4 MUST: KEEPALIVEs are sent often enough that the hold timer of the other side does not expire.
//= RFC 4271 §8.2.2 MUST: a KEEPALIVE in Established restarts the hold timer.
#[test]
fn a_session_lives_on_keepalives_alone() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(7 * 24 * 3600));
    pair.assert_up();
    assert_eq!(pair.logs(), [["up"], ["up"]]);
}

//= RFC 4271 §6.5 MUST: silence for the hold time is answered with Hold Timer Expired, 4/0, and the end.
#[test]
fn hold_timer_expiry_sends_notification_and_dials_again() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    pair.silent = true;
    pair.run_for(seconds(10));
    assert!(pair.states().iter().all(|state| *state < SessionState::OpenSent || pair.silent));
    for side in &pair.sides {
        assert!(side.log[1].starts_with("down: notification sent: Hold Timer Expired (4/0)"));
    }
    pair.silent = false;
    pair.run_for(seconds(60));
    pair.assert_up();
}

//= RFC 4271 §4.4 MUST NOT: KEEPALIVEs are sent in intervals when the hold time is zero.
//+ RFC 4271 §8.2.2: with a hold time of zero neither the hold timer nor KeepaliveTimer runs in Established.
#[test]
fn a_hold_time_of_zero_means_no_timer_and_no_keepalives() {
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.config.hold_time = HoldTime::OFF;
    pair.run_for(seconds(3600));
    pair.assert_up();
    // The one that confirms OPEN.
    assert_eq!(pair.sides[0].peer.messages.sent.keepalives, 1);
}

//+ RFC 4271 §8.2.2: ConnectRetryTimer that expires in Active leads to a new dial and to Connect.
#[test]
fn retries_are_spread_out_and_never_stop() {
    let mut pair = Pair::ebgp();
    pair.unreachable = true;
    pair.run_for(seconds(3600));
    // Two sides, one dial in at most 5 s and at least 3.75 s each.
    assert!((1300..2000).contains(&pair.dials), "{}", pair.dials);
    pair.unreachable = false;
    pair.run_for(seconds(6));
    pair.assert_up();
}

//= RFC 4271 §6.2 MUST: an AS that is not the one that was configured is answered with Bad Peer AS, 2/2.
//= RFC 4271 §8 MAY: a peer that oscillates is damped.
#[test]
fn a_neighbour_that_always_refuses_is_not_hammered() {
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.config.remote_as = RemoteAs::Asn(Asn::new(65099).unwrap());
    pair.run_for(seconds(3600));
    assert!(pair.dials < 500, "{}", pair.dials);
    let refused = "failed: notification sent: OPEN Message Error/Bad Peer AS (2/2): OPEN: the \
                   neighbor says it is AS 65002; expected AS 65099";
    assert!(pair.sides[0].log.iter().any(|line| line == refused), "{:?}", pair.sides[0].log);
    let wanted = config(65001, 65002, 1);
    pair.sides[0].peer.reconfigure(pair.now, wanted);
    pair.run_for(seconds(35));
    pair.assert_up();
}

//= RFC 4271 §5.1.2 MUST: the originator is the only AS in the path that an external peer is told.
//= RFC 4271 §5.1.3 SHOULD: the next hop of our own routes is our address on the interface of the session.
#[test]
fn routes_are_announced_and_withdrawn() {
    let mut pair = Pair::ebgp();
    pair.originate(0, &["198.51.100.1/32", "2001:db8:1::1/128"]);
    pair.run_for(seconds(5));
    assert_eq!(pair.sides[1].rib.learned().count(), 2);
    let advertised = pair.advertised(0);
    assert_eq!(advertised.len(), 2);
    assert_eq!(advertised[0].attributes.as_path.to_string(), "65001");
    assert_eq!(advertised[1].attributes.next_hop.to_string(), "2001:db8::1");
    let view = pair.sides[0].peer.view(pair.now, ViewScope::EVERYTHING);
    let session = view.session.unwrap();
    assert!(session.end_of_rib_sent.ipv4 && session.end_of_rib_sent.ipv6);
    assert!(session.end_of_rib_received.ipv4 && session.end_of_rib_received.ipv6);

    pair.originate(0, &["198.51.100.1/32"]);
    pair.run_for(seconds(1));
    assert_eq!(pair.advertised(0).len(), 1);
    assert_eq!(pair.sides[1].rib.learned().count(), 1);
}

#[test]
fn a_route_without_a_next_hop_is_held_back_with_its_reason() {
    let mut pair = Pair::ebgp();
    for side in &mut pair.sides {
        side.peer.config.families = FamilySet::only(AddressFamily::Ipv4Unicast);
    }
    pair.originate(0, &["198.51.100.1/32", "2001:db8:1::1/128"]);
    pair.run_for(seconds(5));
    let view = pair.sides[0].peer.view(pair.now, ViewScope::EVERYTHING);
    assert_eq!(pair.advertised(0).len(), 1);
    assert_eq!(view.unannounced[0].1, "the session does not carry IPv6 Unicast");
}

//= RFC 4271 §5.1.5 MUST: LOCAL_PREF is sent to internal peers.
//= RFC 4271 §5.1.2 MUST: an internal peer is told our own routes with an empty AS_PATH.
#[test]
fn internal_peers_get_a_local_preference_and_an_empty_path() {
    let mut pair = Pair::new(config(65001, 65001, 1), config(65001, 65001, 2));
    pair.originate(0, &["198.51.100.1/32"]);
    pair.run_for(seconds(40));
    let advertised = pair.advertised(0);
    assert_eq!(advertised[0].attributes.local_pref, Some(100));
    assert_eq!(advertised[0].attributes.as_path.to_string(), "");
}

//= RFC 4486 §4 SHOULD: a session that ends for another change of configuration ends with 6/6.
#[test]
fn only_a_change_that_must_resets_the_session() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let mut wanted = config(65001, 65002, 1);
    wanted.name = "renamed".to_owned();
    wanted.connect_retry_interval = seconds(2);
    wanted.keepalive_interval = Some(seconds(1));
    pair.sides[0].peer.reconfigure(pair.now, wanted.clone());
    let before = pair.sides[1].peer.messages.received.keepalives;
    pair.run_for(seconds(60));
    assert_eq!(pair.logs(), [["up"], ["up"]]);
    assert!(pair.sides[1].peer.messages.received.keepalives > before + 50);

    wanted.hold_time = HoldTime::DEFAULT;
    pair.sides[0].peer.reconfigure(pair.now, wanted);
    pair.run_for(seconds(10));
    pair.assert_up();
    assert!(pair.sides[1].log[1].contains("Cease/Other Configuration Change (6/6)"));
}

//= RFC 4486 §4 SHOULD: the session of a peer that is removed ends with Peer De-configured, 6/3.
#[test]
fn a_removed_peer_is_told_so_and_left_alone() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let dials = pair.dials;
    pair.sides[0].peer.stop(pair.now, cease::PEER_DECONFIGURED, "the peer was removed");
    pair.settle();
    assert!(pair.sides[1].log[1].contains("Cease/Peer Unconfigured (6/3)"));
    assert_eq!(pair.sides[0].peer.next_deadline(), None);
    assert_eq!(pair.dials, dials);
}

//= RFC 4271 §8.2.2 MUST: an UPDATE that is sent restarts KeepaliveTimer.
#[test]
fn an_update_puts_off_the_next_keepalive() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    let keepalives = |pair: &Pair| pair.sides[0].peer.messages.sent.keepalives;
    let before = keepalives(&pair);
    for number in 0..20 {
        pair.originate(0, &[&format!("198.51.100.{number}/32")]);
        pair.run_for(seconds(1));
    }
    assert_eq!(keepalives(&pair), before, "an UPDATE each second says as much");
    pair.run_for(seconds(4));
    assert!(keepalives(&pair) > before);
    pair.assert_up();
}

//+ RFC 2918 §4: a ROUTE-REFRESH is answered with the Adj-RIB-Out of its family.
#[test]
fn a_refresh_sends_everything_again() {
    let mut pair = Pair::ebgp();
    pair.originate(0, &["198.51.100.1/32"]);
    pair.run_for(seconds(5));
    let updates = |pair: &Pair| pair.sides[1].peer.messages.received.updates;
    let before = updates(&pair);
    let refresh = framed(MessageType::RouteRefresh, &[0, 1, 0, 1]).unwrap();
    let id = pair.sides[0].peer.established.as_ref().unwrap().connection;
    pair.sides[0].peer.handle(pair.now, Event::Received(id, &refresh));
    pair.settle();
    assert_eq!(updates(&pair), before + 1);
    assert_eq!(pair.sides[1].peer.messages.received.route_refreshes, 2); // the marks around it
    pair.assert_up();
}

/// A peer with one accepted connection, and the bytes it answers.
fn answers(messages: &[Bytes]) -> (Peer, Vec<u8>) {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    let id = peer.accept(Instant::ZERO, ends(1));
    for message in messages {
        peer.handle(Instant::ZERO, Event::Received(id, message));
    }
    let mut bytes = BytesMut::new();
    let groups = &mut ExportGroups::default();
    peer.poll_transmit(Instant::ZERO, id, &LocRib::default(), groups, ROOM, &mut bytes);
    while let Some(action) = peer.poll_action() {
        if let Action::Close(_, Some(last_words)) = action {
            bytes.extend_from_slice(&last_words);
        }
    }
    (peer, bytes.to_vec())
}

fn open_of(asn: u32) -> Bytes {
    Open {
        asn,
        hold_time: HoldTime::DEFAULT,
        router_id: RouterId::new(9).unwrap(),
        capabilities: vec![crate::wire::Capability::FourOctetAs(asn)],
    }
    .encode()
}

//= RFC 6608 §4 MUST: a message that OpenSent does not allow is answered with 5/1.
//= RFC 6608 §4 MUST: a message that OpenConfirm does not allow is answered with 5/2.
//= RFC 6608 §4 MUST: a message that Established does not allow is answered with 5/3.
//= RFC 6608 §4 MUST: the data of these NOTIFICATIONs is the type of the message.
//= RFC 4271 §6.6 MUST: an unexpected message is a Finite State Machine Error, code 5.
//= RFC 4271 §9 MUST: an UPDATE in any state but Established is an error.
#[test]
fn messages_that_the_state_does_not_allow_get_its_subcode() {
    let update = framed(MessageType::Update, &[0; 4]).unwrap();
    let cases: [(&[Bytes], u8, u8); 3] = [
        (std::slice::from_ref(&update), 1, 2),
        (&[open_of(65002), update.clone()], 2, 2),
        (&[open_of(65002), keepalive(), open_of(65002)], 3, 1),
    ];
    for (messages, subcode, message) in cases {
        let (_, bytes) = answers(messages);
        assert!(bytes.ends_with(&[0, 22, 3, 5, subcode, message]), "{bytes:?}");
    }
}

//= RFC 4271 §6.4 MUST NOT: a NOTIFICATION is answered with a NOTIFICATION.
#[test]
fn a_notification_is_never_answered() {
    let notification = Notification::cease(cease::ADMINISTRATIVE_SHUTDOWN).encode();
    let (peer, bytes) = answers(&[open_of(65002), keepalive(), notification]);
    // The connection is closed, and there are no last words.
    assert!(bytes.is_empty(), "{bytes:?}");
    assert_eq!(peer.state(), SessionState::Idle);
}

#[test]
fn a_silent_connection_gives_its_slot_back() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    peer.accept(Instant::ZERO, ends(1));
    assert_eq!(peer.state(), SessionState::OpenSent);
    peer.handle(Instant::ZERO + seconds(30), Event::Tick);
    assert!(peer.incoming.is_none());
}

#[test]
fn random_bytes_never_panic_and_never_establish() {
    for seed in 0..2_000 {
        let mut rng = Rng::seeded(seed);
        let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), seed, 0);
        let id = peer.accept(Instant::ZERO, ends(1));
        let mut bytes: Vec<u8> = open_of(65002).to_vec();
        for _ in 0..3 {
            let at = usize::try_from(rng.next_u64()).unwrap() % bytes.len();
            bytes[at] = rng.next_u64().to_be_bytes()[0];
        }
        peer.handle(Instant::ZERO, Event::Received(id, &bytes));
        assert!(peer.state() < SessionState::Established);
    }
}

#[test]
fn late_news_of_a_removed_peer_never_reach_its_successor() {
    let mut first = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    let mut second = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 1);
    let (old, new) = (first.accept(Instant::ZERO, ends(1)), second.accept(Instant::ZERO, ends(1)));
    assert_ne!(old, new);
    second.handle(Instant::ZERO, Event::Closed(old, None));
    assert_eq!(second.state(), SessionState::OpenSent);
}

//= RFC 7313 §5 MUST: a ROUTE-REFRESH of another subtype than 0, 1 and 2 is ignored.
#[test]
fn only_a_plain_request_is_a_refresh() {
    let mut pair = Pair::ebgp();
    pair.originate(0, &["198.51.100.1/32"]);
    pair.run_for(seconds(5));
    let id = pair.sides[0].peer.established.as_ref().unwrap().connection;
    for subtype in 1..=u8::MAX {
        let refresh = framed(MessageType::RouteRefresh, &[0, 1, subtype, 1]).unwrap();
        pair.sides[0].peer.handle(pair.now, Event::Received(id, &refresh));
    }
    assert!(!pair.sides[0].peer.wants_to_transmit(id));
    pair.assert_up();
}

#[test]
fn a_late_tick_is_our_own_standstill_and_not_the_neighbours() {
    let (mut peer, id) = established();
    // Stopped for longer than the hold time; what came meanwhile is still unread.
    let late = Instant::ZERO + seconds(95);
    peer.handle(late, Event::Tick);
    assert_eq!(peer.state(), SessionState::Established);
    peer.handle(late, Event::Received(id, &keepalive()));
    peer.handle(late + seconds(1), Event::Tick);
    assert_eq!(peer.state(), SessionState::Established);
    // A neighbour that was silent indeed gets a second more, and only one.
    peer.handle(late + seconds(91), Event::Tick);
    peer.handle(late + seconds(92), Event::Tick);
    assert_eq!(peer.state(), SessionState::Idle);
}

/// A peer with one accepted session.
fn established() -> (Peer, ConnectionId) {
    established_with(90)
}

/// The same, with a hold time of so many seconds.
fn established_with(hold_time: u64) -> (Peer, ConnectionId) {
    let hold_time = HoldTime::from_seconds(hold_time).unwrap();
    let config = PeerConfig { hold_time, ..config(65001, 65002, 1) };
    let mut peer = Peer::new(Instant::ZERO, config, 7, 0);
    let id = peer.accept(Instant::ZERO, ends(1));
    let open = Open { hold_time, ..Open::parse(&open_of(65002)[19..]).unwrap() };
    for message in [open.encode(), keepalive()] {
        peer.handle(Instant::ZERO, Event::Received(id, &message));
    }
    assert_eq!(peer.state(), SessionState::Established);
    (peer, id)
}

#[test]
fn who_knocks_and_leaves_does_not_put_off_our_own_dials() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    let mut dials = 0;
    for second in 0..3600 {
        let now = Instant::ZERO + seconds(second);
        if second % 5 == 0 {
            let id = peer.accept(now, ends(1));
            peer.handle(now, Event::Closed(id, None));
        }
        peer.handle(now, Event::Tick);
        while let Some(action) = peer.poll_action() {
            if let Action::Connect(id) = action {
                dials += 1;
                peer.handle(now, Event::ConnectFailed(id, "refused".to_owned()));
            }
        }
    }
    assert!(dials > 600, "{dials} dials in an hour");
}

#[test]
fn a_silent_neighbour_without_hold_time_gives_its_slot_back() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    let id = peer.accept(Instant::ZERO, ends(1));
    let open = Open { hold_time: HoldTime::OFF, ..Open::parse(&open_of(65002)[19..]).unwrap() };
    peer.handle(Instant::ZERO, Event::Received(id, &open.encode()));
    assert_eq!(peer.state(), SessionState::OpenConfirm);
    peer.handle(Instant::ZERO + seconds(30), Event::Tick);
    assert!(peer.incoming.is_none());
}

#[test]
fn a_lost_dial_is_given_up_and_repeated() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    peer.handle(Instant::ZERO, Event::Tick);
    assert_eq!(peer.state(), SessionState::Connect);
    peer.handle(Instant::ZERO + seconds(15), Event::Tick);
    assert_eq!(peer.state(), SessionState::Active);
    assert!(peer.next_deadline().is_some());
}

//= RFC 2918 §4 MUST: a ROUTE-REFRESH of a family that we did not offer is ignored.
#[test]
fn a_refresh_of_a_family_that_was_not_agreed_on_is_ignored() {
    let mut pair = Pair::ebgp();
    for side in &mut pair.sides {
        side.peer.config.families = FamilySet::only(AddressFamily::Ipv4Unicast);
    }
    pair.run_for(seconds(5));
    let refresh = framed(MessageType::RouteRefresh, &[0, 2, 0, 1]).unwrap();
    let id = pair.sides[0].peer.established.as_ref().unwrap().connection;
    pair.sides[0].peer.handle(pair.now, Event::Received(id, &refresh));
    assert!(!pair.sides[0].peer.wants_to_transmit(id));
}

#[test]
fn an_address_that_comes_later_brings_its_routes() {
    let mut pair = Pair::ebgp();
    pair.originate(0, &["198.51.100.1/32", "2001:db8:1::1/128"]);
    pair.run_for(seconds(5));
    let Side { peer, rib, .. } = &mut pair.sides[0];
    let without = LocalNextHops { ipv6: None, ..ends(1).next_hops };
    assert!(peer.set_next_hops(rib, without));
    pair.settle();
    let view = pair.sides[0].peer.view(pair.now, ViewScope::EVERYTHING);
    assert_eq!((pair.advertised(0).len(), view.unannounced.len()), (1, 1));
    let Side { peer, rib, .. } = &mut pair.sides[0];
    assert!(peer.set_next_hops(rib, ends(1).next_hops));
    assert!(!peer.set_next_hops(rib, ends(1).next_hops));
    pair.settle();
    let view = pair.sides[0].peer.view(pair.now, ViewScope::EVERYTHING);
    assert_eq!((pair.advertised(0).len(), view.unannounced.len()), (2, 0));
}

#[test]
fn a_peer_that_is_stopped_while_dialling_has_not_failed() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    peer.handle(Instant::ZERO, Event::Tick);
    while peer.poll_action().is_some() {}
    peer.stop(Instant::ZERO, cease::ADMINISTRATIVE_SHUTDOWN, "leaving");
    assert!(matches!(peer.poll_action(), Some(Action::Close(_, None))));
    assert!(peer.poll_action().is_none() && peer.last_reset.is_none());
}
