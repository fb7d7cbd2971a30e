//! Stories of one speaker and a few scripted neighbours.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::*;
use crate::example::Example as _;
use crate::session::{self, Connected, ConnectionId};
use crate::wire::announce::{AttributeBlock, announcement};
use crate::wire::header::keepalive;
use crate::wire::notification::cease;
use crate::wire::{Capability, Framing, MessageType, Notification, Open, Update, UpdateContext};
use fairway_ground::{
    AddressFamily, AsPath, FamilySet, GracefulRestart, Instant, ListenRange, LocalNextHops,
    NextHop, Nlri, PeerKey, PeerKind, Prefix, PrefixFilter, Remote, RemoteAs,
};
use fairway_seam::{
    Clear, ClearError, Desired, DesiredRoute, DrainState, EarlierRun, Leave, PathAttributes,
    PeerConfig, SessionState, ViewScope,
};

mod told_again;

/// Catches panics, and causes one on request: in the work that is so many away.
#[derive(Debug, Default)]
struct Once(Cell<u32>);

impl Guard for Once {
    fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let work = || {
            let done = work();
            let left = self.0.get();
            self.0.set(left.saturating_sub(1));
            assert!(left != 1, "internal error");
            done
        };
        catch_unwind(AssertUnwindSafe(work)).ok()
    }
}

fn key(number: u8) -> PeerKey {
    PeerKey::from(IpAddr::from([192, 0, 2, number]))
}

/// A neighbour in another AS, with all routes in both directions.
fn config(number: u8) -> PeerConfig {
    PeerConfig {
        key: key(number),
        name: format!("peer-{number}"),
        remote_as: RemoteAs::External,
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        pass_on: PrefixFilter::Everything,
        ..PeerConfig::example(1)
    }
}

fn patient(number: u8) -> PeerConfig {
    PeerConfig { graceful_restart: GracefulRestart::new(120, 0), ..config(number) }
}

fn range(prefix: &str, limit: u32) -> PeerConfig {
    let prefix: Prefix = prefix.parse().unwrap();
    PeerConfig {
        key: PeerKey { remote: Remote::Range(prefix), vrf: None },
        listen_range: Some(ListenRange { prefix, limit }),
        ..config(1)
    }
}

fn route(prefix: &str, to: &[u8]) -> DesiredRoute {
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(to.iter().map(|number| key(*number)).collect()),
        attributes: Arc::default(),
    }
}

fn ends(number: u8) -> Connected {
    Connected {
        local: ([192, 0, 2, 1], 179).into(),
        remote: ([192, 0, 2, number], 179).into(),
        next_hops: LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() },
        networks: Vec::new(),
    }
}

fn opening(number: u8) -> Vec<u8> {
    let asn = 65_000 + u32::from(number);
    let open = Open {
        asn,
        hold_time: PeerConfig::example(1).hold_time,
        router_id: format!("192.0.2.{number}").parse().unwrap(),
        capabilities: vec![
            Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into()),
            Capability::FourOctetAs(asn),
        ],
    };
    [open.encode(), keepalive()].concat()
}

/// The UPDATE of neighbour `number` that announces a prefix.
fn announced(number: u8, prefix: &str) -> BytesMut {
    let path = AsPath::sequence(vec![65_000 + u32::from(number)]);
    let next_hop = NextHop::Ipv4([192, 0, 2, number].into());
    let block = AttributeBlock::encode(&PathAttributes::originated(path, next_hop), true).unwrap();
    let nlri: Nlri = prefix.parse().unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = BTreeSet::from([nlri]);
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    bytes
}

/// What was written for one connection.
#[derive(Debug)]
struct Chunk {
    key: PeerKey,
    id: ConnectionId,
    updates: Vec<Update>,
}

impl Chunk {
    fn announces(&self, prefix: &str) -> bool {
        let groups = self.updates.iter().flat_map(|update| &update.announced);
        groups.flat_map(|group| &group.prefixes).any(|nlri| nlri.to_string() == prefix)
    }

    fn withdraws(&self, prefix: &str) -> bool {
        let mut gone = self.updates.iter().flat_map(|update| &update.withdrawn);
        gone.any(|nlri| nlri.to_string() == prefix)
    }

    fn ends_rib(&self) -> bool {
        self.updates.iter().any(|update| update.end_of_rib.is_some())
    }
}

struct Scene {
    speaker: Speaker<Once>,
    now: Instant,
    desired: Desired,
    actions: Vec<Action>,
}

impl Scene {
    fn new(earlier: Option<EarlierRun>) -> Self {
        Self {
            speaker: Speaker::guarded(Once::default(), Instant::ZERO, 7, earlier),
            now: Instant::ZERO,
            desired: Desired::default(),
            actions: Vec::new(),
        }
    }

    /// Sessions with these neighbours, in their order; everything has been written.
    fn with(configs: &[PeerConfig]) -> Self {
        let mut scene = Self::new(None);
        scene.desire(|desired| desired.peers = configs.to_vec());
        for config in configs {
            scene.establish(config.key);
        }
        scene.write_all();
        scene.actions.clear();
        scene
    }

    fn desire(&mut self, change: impl FnOnce(&mut Desired)) {
        change(&mut self.desired);
        self.desired.generation += 1;
        let desired = Arc::new(self.desired.clone());
        self.speaker.handle(self.now, Event::Desired(desired, Some(self.now)));
        self.collect();
    }

    fn collect(&mut self) {
        self.actions.extend(std::iter::from_fn(|| self.speaker.poll_action()));
    }

    /// A turn, and what it gives to sockets.
    fn turn(&mut self) -> Vec<Chunk> {
        self.speaker.handle(self.now, Event::Tick);
        self.collect();
        let mut chunks = Vec::new();
        let mut bytes = BytesMut::new();
        while let Some((key, id)) = self.speaker.poll_transmit(self.now, 4_096, &mut bytes) {
            let mut framing = Framing::default();
            framing.push(&bytes.split());
            let messages = std::iter::from_fn(|| framing.next_message().unwrap());
            let updates = messages.filter(|message| message.kind == MessageType::Update);
            let context = UpdateContext::new(PeerKind::External);
            let updates = updates.map(|it| Update::parse(&it.body, context).unwrap()).collect();
            chunks.push(Chunk { key, id, updates });
        }
        self.collect();
        chunks
    }

    fn written(&mut self, chunks: &[Chunk]) {
        for chunk in chunks {
            self.speaker.handle(self.now, Event::Written(chunk.key, chunk.id));
        }
        self.collect();
    }

    /// Turns, until everything has been written.
    fn write_all(&mut self) -> Vec<Chunk> {
        let mut all = Vec::new();
        loop {
            let chunks = self.turn();
            if chunks.is_empty() {
                return all;
            }
            self.written(&chunks);
            all.extend(chunks);
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    fn establish(&mut self, key: PeerKey) -> ConnectionId {
        let Some(IpAddr::V4(address)) = key.address() else { panic!("{key} has no address") };
        let number = address.octets()[3];
        let id = self.speaker.accept(self.now, key, ends(number)).unwrap();
        self.hear(number, id, &opening(number));
        assert_eq!(self.state(number), SessionState::Established);
        id
    }

    fn hear(&mut self, number: u8, id: ConnectionId, bytes: &[u8]) {
        let event = session::Event::Received(id, bytes);
        self.speaker.handle(self.now, Event::Peer(key(number), event));
        self.collect();
    }

    fn session(&self, number: u8) -> ConnectionId {
        let connections = self.speaker.peer(key(number)).unwrap().connections();
        connections.into_iter().find(|it| it.1 == SessionState::Established).unwrap().0
    }

    fn state(&self, number: u8) -> SessionState {
        self.speaker.peer(key(number)).unwrap().state()
    }

    /// The generation up to which all was withdrawn, as reported since the last call.
    fn withdrawn(&mut self) -> Option<u64> {
        let said = self.actions.iter().filter_map(|action| match action {
            Action::WithdrawnUpTo(generation) => Some(*generation),
            _ => None,
        });
        let last = said.last();
        self.actions.clear();
        last
    }

    fn farewells(&self) -> Vec<(PeerKey, Bytes)> {
        let farewell = |action: &Action| match action {
            Action::Peer(key, PeerAction::Close(_, Some(bytes))) => Some((*key, bytes.clone())),
            Action::Peer(key, PeerAction::StartedOver(bytes)) => Some((*key, bytes.clone())),
            _ => None,
        };
        self.actions.iter().filter_map(farewell).collect()
    }

    fn dials(&self) -> usize {
        let is_dial = |it: &&Action| matches!(it, Action::Peer(_, PeerAction::Connect(_)));
        self.actions.iter().filter(is_dial).count()
    }
}

/// The peers that `prefix` is announced to.
fn told(chunks: &[Chunk], prefix: &str) -> Vec<PeerKey> {
    chunks.iter().filter(|it| it.announces(prefix)).map(|it| it.key).collect()
}

#[test]
fn a_route_of_one_peer_reaches_the_others_in_the_same_turn() {
    let mut scene = Scene::with(&[config(2), config(3), config(4)]);
    let id = scene.session(2);
    scene.hear(2, id, &announced(2, "10.0.0.0/8"));
    let chunks = scene.turn();
    assert_eq!(told(&chunks, "10.0.0.0/8"), [key(3), key(4)]);
}

#[test]
fn a_socket_without_room_is_given_no_more() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    scene.hear(2, id, &announced(2, "10.0.0.0/8"));
    let first = scene.turn();
    scene.hear(2, id, &announced(2, "11.0.0.0/8"));
    assert!(scene.turn().is_empty(), "the first has not left");
    scene.written(&first);
    assert_eq!(told(&scene.turn(), "11.0.0.0/8"), [key(3)]);
}

#[test]
fn a_panic_starts_one_peer_over_and_its_routes_go() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(3);
    scene.hear(3, id, &announced(3, "10.0.0.0/8"));
    scene.write_all();
    scene.speaker.guard().0.set(1);
    scene.hear(3, id, &keepalive());
    let farewell = Notification::cease(cease::UNSPECIFIC).encode();
    assert_eq!(scene.farewells(), [(key(3), farewell)]);
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.key == key(2) && it.withdraws("10.0.0.0/8")));
    let (view, unshown) = scene.speaker.view(scene.now, ViewScope::SESSIONS);
    assert_eq!(view.peers.iter().map(|it| it.panics).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(unshown, []);
    assert_eq!(scene.state(2), SessionState::Established);
    // The same bytes may cause the panic again.
    scene.wait(5);
    scene.turn();
    assert_eq!(scene.dials(), 0);
    // No event of an old connection reaches it.
    scene.hear(3, id, &announced(3, "10.0.0.0/8"));
    let fresh = scene.speaker.accept(scene.now, key(3), ends(3)).unwrap();
    assert_ne!(fresh, id);
    assert_eq!(scene.speaker.rib().learned().count(), 0);
}

#[test]
fn a_peer_that_cannot_be_shown_is_named() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    scene.speaker.guard().0.set(1);
    let (view, unshown) = scene.speaker.view(scene.now, ViewScope::SESSIONS);
    assert_eq!((view.peers.len(), unshown), (1, vec![key(2)]));
    assert_eq!(scene.withdrawn(), None);
}

#[test]
fn a_generation_is_withdrawn_when_everybody_was_written_that() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    scene.desire(|it| it.routes = vec![route("10.0.0.1/32", &[2, 3])].into());
    scene.write_all();
    assert_eq!(scene.withdrawn(), Some(2));
    scene.desire(|it| it.routes = Arc::default());
    let chunks = scene.turn();
    assert!(chunks.len() == 2 && chunks.iter().all(|it| it.withdraws("10.0.0.1/32")));
    assert_eq!(scene.withdrawn(), None, "both are on their way");
    scene.written(&chunks[..1]);
    scene.turn();
    assert_eq!(scene.withdrawn(), None, "one of them is");
    scene.written(&chunks[1..]);
    scene.turn();
    assert_eq!(scene.withdrawn(), Some(3));
    scene.desire(|it| it.peers.clear());
    scene.turn();
    assert_eq!(scene.withdrawn(), Some(4), "no peer is left to send it to");
}

#[test]
fn what_is_gone_has_been_written_although_more_is_being_written() {
    let mut scene = Scene::with(&[config(2)]);
    scene.desire(|it| it.routes = vec![route("10.0.0.1/32", &[2])].into());
    scene.write_all();
    scene.desire(|it| it.routes = Arc::default());
    let gone = scene.turn();
    scene.desire(|it| it.routes = vec![route("10.0.0.2/32", &[2])].into());
    scene.turn();
    scene.actions.clear();
    scene.written(&gone);
    assert_eq!(told(&scene.turn(), "10.0.0.2/32"), [key(2)]);
    assert_eq!(scene.withdrawn(), Some(4));
}

#[test]
fn what_an_earlier_run_announced_is_not_withdrawn_when_a_neighbour_was_told_everything() {
    let earlier = EarlierRun { routes: vec![route("10.0.0.9/32", &[2])], forwarding: true };
    let mut scene = Scene::new(Some(earlier));
    let hasty = PeerConfig { graceful_restart: GracefulRestart::new(20, 0), ..config(2) };
    scene.desire(|it| {
        it.peers = vec![hasty, config(3)];
        it.awaits_sources = true;
    });
    scene.establish(key(2));
    scene.write_all();
    scene.now = Instant::ZERO + Duration::from_secs(10);
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.key == key(2) && it.ends_rib()), "it waits no longer");
    assert_eq!(scene.speaker.rib().originated().count(), 1);
    assert_eq!(scene.withdrawn(), None);
}

#[test]
fn a_change_is_counted_from_when_it_happened_to_when_it_was_written() {
    let mut scene = Scene::with(&[config(2)]);
    scene.desire(|it| it.routes = vec![route("10.0.0.1/32", &[2])].into());
    let chunks = scene.turn();
    scene.wait(2);
    scene.written(&chunks);
    scene.turn();
    let (view, _) = scene.speaker.view(scene.now, ViewScope::SESSIONS);
    assert_eq!(view.changes_told.count(), 1);
    assert_eq!(view.changes_told.sum(), Duration::from_secs(2));
}

#[test]
fn what_changes_is_said_once() {
    let mut scene = Scene::with(&[config(2)]);
    let changed = |scene: &mut Scene| {
        let is_change = |it: &Action| matches!(it, Action::Changed);
        let count = scene.actions.iter().filter(|it| is_change(it)).count();
        scene.actions.clear();
        count
    };
    scene.turn();
    assert_eq!(changed(&mut scene), 0);
    let id = scene.session(2);
    scene.speaker.handle(scene.now, Event::Peer(key(2), session::Event::Closed(id, None)));
    scene.turn();
    scene.turn();
    assert_eq!(changed(&mut scene), 1);
    scene.desire(|it| it.peers.clear());
    scene.turn();
    assert_eq!(changed(&mut scene), 1);
}

#[test]
fn a_neighbour_of_a_range_has_a_place_until_it_is_at_rest() {
    let mut scene = Scene::new(None);
    let all = range("192.0.2.0/24", 1);
    scene.desire(|it| it.peers = vec![all.clone()]);
    let dialler = |number: u8| IpAddr::from([192, 0, 2, number]);
    let join = |scene: &mut Scene, number: u8| {
        let joined = scene.speaker.join(scene.now, all.key, dialler(number));
        joined.map(|it| (it.key, it.in_place_of))
    };
    let joins = |number: u8| Ok((key(number), None));
    assert_eq!(join(&mut scene, 2), joins(2));
    let id = scene.establish(key(2));
    assert_eq!(join(&mut scene, 2), joins(2), "once more");
    scene.write_all();
    let full = Refused::Full { limit: 1, turned_away: Some(1) };
    assert_eq!(join(&mut scene, 3), Err(full));
    // Other settings of the range are its own at once.
    let wider = range("192.0.2.0/24", 2);
    scene.desire(|it| it.peers = vec![PeerConfig { name: "rack".to_owned(), ..wider }]);
    assert_eq!(scene.speaker.peer(key(2)).unwrap().config().name, "rack");
    assert_eq!(join(&mut scene, 3), joins(3));
    scene.speaker.handle(scene.now, Event::Peer(key(2), session::Event::Closed(id, None)));
    scene.write_all();
    assert!(scene.speaker.peer(key(2)).is_none(), "it waits for nothing");
    let removed = scene
        .actions
        .iter()
        .any(|it| matches!(it, Action::Peer(gone, PeerAction::Removed) if *gone == key(2)));
    assert!(removed);
    assert_eq!(join(&mut scene, 4), joins(4));
}

#[test]
fn of_those_that_have_sent_no_open_the_first_makes_room_in_a_range() {
    let mut scene = Scene::new(None);
    let all = range("192.0.2.0/24", 3);
    scene.desire(|it| it.peers = vec![all.clone()]);
    let join = |scene: &mut Scene, number: u8| {
        scene.now = scene.now + Duration::from_millis(1);
        let joined = scene.speaker.join(scene.now, all.key, [192, 0, 2, number].into());
        if joined.is_ok() {
            scene.speaker.accept(scene.now, key(number), ends(number)).unwrap();
        }
        joined
    };
    for number in 2..5 {
        assert!(join(&mut scene, number).is_ok());
    }
    // The second one is a true neighbour.
    scene.establish(key(3));
    let full = |turned_away| Some(Refused::Full { limit: 3, turned_away });
    let joined = |number, in_place_of| Ok(Joined { key: key(number), in_place_of });
    assert_eq!(join(&mut scene, 5), joined(5, full(Some(1))));
    assert!(scene.speaker.peer(key(2)).is_none() && scene.speaker.peer(key(3)).is_some());
    assert_eq!(join(&mut scene, 6), joined(6, full(None)));
    assert!(scene.speaker.peer(key(4)).is_none());
    scene.establish(key(5));
    scene.establish(key(6));
    assert!(join(&mut scene, 7).is_err(), "all of them have sessions");
}

#[test]
fn a_neighbour_goes_with_its_range_or_moves_to_another() {
    let mut scene = Scene::new(None);
    let (wide, narrow) = (range("192.0.0.0/16", 9), range("192.0.2.0/24", 1));
    scene.desire(|it| it.peers = vec![wide.clone()]);
    assert!(scene.speaker.join(scene.now, wide.key, [192, 0, 2, 2].into()).is_ok());
    scene.establish(key(2));
    scene.desire(|it| it.peers = vec![wide.clone(), narrow.clone()]);
    let members = |scene: &Scene| {
        let (view, _) = scene.speaker.view(scene.now, ViewScope::SESSIONS);
        view.listen_ranges.iter().map(|it| it.members).collect::<Vec<_>>()
    };
    assert_eq!(members(&scene).iter().sum::<u32>(), 1);
    let full = scene.speaker.join(scene.now, narrow.key, [192, 0, 2, 3].into());
    assert!(matches!(full, Err(Refused::Full { limit: 1, .. })), "{full:?}");
    scene.desire(|it| it.peers.clear());
    assert!(scene.speaker.peer(key(2)).is_none());
    let gone = scene.speaker.join(scene.now, wide.key, [192, 0, 2, 3].into());
    assert_eq!(gone, Err(Refused::Gone));
}

#[test]
fn end_of_rib_waits_for_the_sources_and_for_the_routes_of_others() {
    let earlier = EarlierRun { routes: vec![route("10.0.0.9/32", &[2])], forwarding: true };
    let mut scene = Scene::new(Some(earlier));
    scene.desire(|it| {
        it.peers = vec![patient(2), patient(3)];
        it.awaits_sources = true;
    });
    let ids = [2, 3].map(|number| scene.establish(key(number)));
    let chunks = scene.write_all();
    assert_eq!(told(&chunks, "10.0.0.9/32"), [key(2)], "its withdrawal is not sent yet");
    assert!(!chunks.iter().any(Chunk::ends_rib));
    assert_eq!(scene.withdrawn(), None, "what the earlier run announced is not gone");
    scene.desire(|it| it.awaits_sources = false);
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.withdraws("10.0.0.9/32")));
    // Each waits for the other's routes; the script of these sends no marker, and owes none.
    assert!(chunks.iter().any(Chunk::ends_rib));
    assert_eq!(scene.withdrawn(), Some(2));
    assert_eq!(ids.len(), 2);
}

#[test]
fn a_source_that_never_speaks_is_not_waited_for_longer_than_half_the_restart_time() {
    let earlier = EarlierRun { routes: vec![route("10.0.0.9/32", &[2])], forwarding: true };
    let mut scene = Scene::new(Some(earlier));
    scene.desire(|it| {
        it.peers = vec![patient(2), patient(3)];
        it.awaits_sources = true;
    });
    scene.establish(key(2));
    scene.write_all();
    let half = Instant::ZERO + Duration::from_secs(60);
    assert_eq!(scene.speaker.rib().originated().count(), 1);
    let deadline = scene.speaker.next_deadline();
    assert!(deadline.is_some_and(|it| it <= half), "{deadline:?}");
    scene.now = half;
    scene.turn();
    scene.write_all();
    let is_silence = |it: &&Action| matches!(it, Action::SourcesSilent);
    assert_eq!(scene.actions.iter().filter(is_silence).count(), 1, "that is reported once");
    assert_eq!(scene.speaker.rib().originated().count(), 0);
    let next = scene.speaker.next_deadline();
    assert!(next.is_none_or(|it| it > half), "nothing is left to do: {next:?}");
}

#[test]
fn a_peer_is_as_drained_as_the_node_whenever_it_comes() {
    let mut scene = Scene::with(&[config(2)]);
    scene.desire(|it| it.routes = vec![route("10.0.0.1/32", &[2, 3])].into());
    scene.write_all();
    scene.desire(|it| it.drain = DrainState::Drained);
    assert!(scene.write_all().iter().any(|it| it.withdraws("10.0.0.1/32")));
    scene.desire(|it| it.peers.push(config(3)));
    scene.establish(key(3));
    assert_eq!(told(&scene.write_all(), "10.0.0.1/32"), []);
    scene.desire(|it| it.drain = DrainState::InService);
    assert_eq!(told(&scene.write_all(), "10.0.0.1/32").len(), 2);
}

#[test]
fn a_peer_of_a_range_that_joins_a_drained_node_is_told_nothing() {
    let mut scene = Scene::new(None);
    let all = range("192.0.2.0/24", 1);
    let peers = Arc::new(BTreeSet::from([all.key]));
    scene.desire(|it| {
        it.peers = vec![all.clone()];
        it.routes = vec![DesiredRoute { peers, ..route("10.0.0.1/32", &[]) }].into();
        it.drain = DrainState::Drained;
    });
    scene.speaker.join(scene.now, all.key, [192, 0, 2, 2].into()).unwrap();
    scene.establish(key(2));
    assert_eq!(told(&scene.write_all(), "10.0.0.1/32"), []);
    scene.desire(|it| it.drain = DrainState::InService);
    assert_eq!(told(&scene.write_all(), "10.0.0.1/32"), [key(2)]);
}

#[test]
fn a_peer_that_is_set_aside_or_removed_has_no_session_and_no_routes() {
    let mut scene = Scene::with(&[config(2), config(3), config(4)]);
    for (number, prefix) in [(2, "10.0.0.0/8"), (3, "11.0.0.0/8")] {
        let id = scene.session(number);
        scene.hear(number, id, &announced(number, prefix));
    }
    scene.write_all();
    assert!(scene.speaker.set_aside(scene.now, key(2), Some("no such key".to_owned())));
    assert!(!scene.speaker.set_aside(scene.now, key(2), Some("no such key".to_owned())));
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.key == key(4) && it.withdraws("10.0.0.0/8")));
    scene.desire(|it| it.peers.retain(|config| config.key != key(3)));
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.key == key(4) && it.withdraws("11.0.0.0/8")));
    let farewell = Notification::cease(cease::PEER_DECONFIGURED).encode();
    assert!(scene.farewells().contains(&(key(3), farewell)));
    scene.actions.clear();
    scene.wait(1);
    scene.turn();
    assert_eq!(scene.dials(), 0);
    let cleared = scene.speaker.clear(scene.now, key(3), Clear::Hard);
    assert_eq!(cleared, Err(ClearError::NoSuchPeer));
}

#[test]
fn a_hold_timer_runs_out_without_anybody_touching_the_peer() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let silent = scene.now + Duration::from_secs(9);
    while scene.now < silent {
        let deadline = scene.speaker.next_deadline().unwrap();
        assert!(deadline > scene.now && deadline <= silent, "{deadline:?}");
        scene.now = deadline;
        let chunks = scene.turn();
        scene.written(&chunks);
        scene.turn();
    }
    assert!(scene.state(2) < SessionState::Established);
}

#[test]
fn a_speaker_that_leaves_takes_its_leave_of_everybody_and_dials_nobody() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    scene.speaker.handle(scene.now, Event::Leave(Leave::ForGood));
    scene.collect();
    let farewell = Notification::cease(cease::ADMINISTRATIVE_SHUTDOWN).encode();
    assert_eq!(scene.farewells(), [(key(2), farewell.clone()), (key(3), farewell)]);
    scene.wait(100);
    scene.turn();
    assert_eq!(scene.dials(), 0);
}

#[test]
fn routes_are_reported_one_by_one_only_where_that_is_asked_for() {
    let mut scene = Scene::with(&[config(2)]);
    let id = scene.session(2);
    let reported = |scene: &mut Scene| {
        let is_report =
            |it: &&Action| matches!(it, Action::Peer(_, PeerAction::Report(Report::Routes(_))));
        let count = scene.actions.iter().filter(is_report).count();
        scene.actions.clear();
        count
    };
    scene.hear(2, id, &announced(2, "10.0.0.0/8"));
    assert_eq!(reported(&mut scene), 0);
    scene.speaker.report_routes(true);
    scene.hear(2, id, &announced(2, "11.0.0.0/8"));
    assert_eq!(reported(&mut scene), 1);
}

#[test]
fn the_neighbour_with_the_most_routes_gives_them_up_and_no_other() {
    let mut scene = Scene::with(&[config(2), config(3), config(4)]);
    assert_eq!(scene.speaker.relieve(scene.now, "too much"), None);
    for (number, prefix) in [(2, "10.0.0.0/24"), (3, "10.0.1.0/24"), (3, "10.0.2.0/24")] {
        let id = scene.session(number);
        scene.hear(number, id, &announced(number, prefix));
    }
    for (relieved, left) in [(3, vec![2, 4]), (2, vec![4])] {
        let gone = scene.speaker.relieve(scene.now, "too much").map(|(key, _)| key);
        assert_eq!(gone, Some(key(relieved)));
        let is_up = |it: &u8| scene.state(*it) == SessionState::Established;
        assert_eq!((2..5).filter(is_up).collect::<Vec<u8>>(), left);
    }
    assert_eq!((scene.speaker.held_bytes(), scene.speaker.relieve(scene.now, "")), (0, None));
}
