//! What do the hot paths of the speaker cost, without sockets and clocks? Eleven of them, each of which is prepared, then
//! measured: a speaker with its neighbours, and the bytes that they exchange.
//!
//! `cargo bench -p fairway-bgp --bench hot_paths -- [WORD]` prints the time of each for one route and neighbour.
//! `scripts/hot-paths.sh` counts instructions, which do not depend on the machine: what is measured is all in
//! [`measured`].

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock,
#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // and may end.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant as WallClock;

use bytes::BytesMut;
use fairway_bgp::session::{self, Connected, ConnectionId};
use fairway_bgp::speaker::{Event, Speaker};
use fairway_bgp::wire::announce::{AttributeBlock, announcement};
use fairway_bgp::wire::{Capability, Open, header};
use fairway_ground::{
    AddressFamily, AsPath, Asn, HoldTime, ImportPolicy, Instant, LocalNextHops, NextHop, Nlri,
    PeerKey, Prefix, PrefixFilter, RemoteAs, RouterId,
};
use fairway_seam::{Clear, Desired, DesiredRoute, PathAttributes, PeerConfig, RouteAttributes};

const ROUTES: u32 = 10_000;
const LOCAL_ASN: u32 = 65_001;
const ROOM_BYTES: usize = 64 * 1024;

/// The work that is measured.
#[inline(never)]
fn measured(scene: &mut Scene, work: impl FnOnce(&mut Scene)) {
    work(scene);
}

/// A speaker, and neighbours with sessions.
struct Scene {
    speaker: Speaker,
    desired: Desired,
    neighbours: Vec<(PeerKey, ConnectionId)>,
    /// Octets that they were sent.
    sent_bytes: usize,
}

fn address(neighbour: usize) -> IpAddr {
    let number = u32::try_from(neighbour).unwrap();
    Ipv4Addr::from_bits(0x0A53_0001 + number).into()
}

fn asn(neighbour: usize) -> u32 {
    65_100 + u32::try_from(neighbour).unwrap()
}

fn config(neighbour: usize) -> PeerConfig {
    let key = PeerKey::from(address(neighbour));
    let local_asn = Asn::new(LOCAL_ASN).unwrap();
    let remote_as = RemoteAs::Asn(Asn::new(asn(neighbour)).unwrap());
    PeerConfig {
        passive: true,
        import: ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() },
        pass_on: PrefixFilter::Everything,
        ..PeerConfig::new(key, local_asn, remote_as, RouterId::new(1).unwrap())
    }
}

fn originated(count: u32, peers: &Arc<BTreeSet<PeerKey>>) -> Arc<[DesiredRoute]> {
    let attributes = Arc::new(RouteAttributes::default());
    let route = |number| DesiredRoute {
        prefix: Prefix::from_ipv4_bits(0xC612_0000 + number, 32).unwrap(),
        peers: Arc::clone(peers),
        attributes: Arc::clone(&attributes),
    };
    (0..count).map(route).collect()
}

/// The UPDATEs of a neighbour that announces all routes, so many with each set of attributes.
fn announcements(neighbour: usize, per_update: usize) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let numbers: Vec<u32> = (0..ROUTES).collect();
    for (group, numbers) in numbers.chunks(per_update).enumerate() {
        let origin = 100_000 + u32::try_from(group % 997).unwrap();
        let as_path = AsPath::sequence(vec![asn(neighbour), 3356, origin]);
        let IpAddr::V4(next_hop) = address(neighbour) else { return Vec::new() };
        let attributes = PathAttributes::originated(as_path, NextHop::Ipv4(next_hop));
        let block = AttributeBlock::encode(&attributes, true).unwrap();
        let prefix = |number: &u32| Prefix::from_ipv4_bits((0x1_0000 + number) << 8, 24).unwrap();
        let mut prefixes: BTreeSet<Nlri> = numbers.iter().map(|it| prefix(it).into()).collect();
        announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    }
    bytes.to_vec()
}

/// The UPDATEs that withdraw them.
fn withdrawals() -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let prefix = |number: u32| Prefix::from_ipv4_bits((0x1_0000 + number) << 8, 24).unwrap();
    let mut prefixes: BTreeSet<Nlri> = (0..ROUTES).map(|number| prefix(number).into()).collect();
    while !prefixes.is_empty() {
        let family = AddressFamily::Ipv4Unicast;
        fairway_bgp::wire::announce::withdrawal(family, false, &mut prefixes, &mut bytes);
    }
    bytes.to_vec()
}

impl Scene {
    /// With so many neighbours, of which the first `up` have sessions.
    fn new(count: usize, up: usize) -> Self {
        let peers = (0..count).map(config).collect();
        let desired = Desired { peers, ..Desired::default() };
        let speaker = Speaker::new(Instant::ZERO, 1, None);
        let neighbours =
            (0..count).map(|it| (PeerKey::from(address(it)), ConnectionId::default())).collect();
        let mut scene = Self { speaker, desired, neighbours, sent_bytes: 0 };
        scene.apply();
        (0..up).for_each(|neighbour| scene.connect(neighbour));
        scene
    }

    fn apply(&mut self) {
        self.desired.generation += 1;
        let desired = Arc::new(self.desired.clone());
        self.speaker.handle(Instant::ZERO, Event::Desired(desired, None));
        self.turn();
    }

    fn everybody(&self) -> Arc<BTreeSet<PeerKey>> {
        Arc::new(self.neighbours.iter().map(|(key, _)| *key).collect())
    }

    fn connect(&mut self, neighbour: usize) {
        let local: Ipv4Addr = [10, 82, 0, 1].into();
        let connected = Connected {
            local: (local, 179).into(),
            remote: (address(neighbour), 40_000).into(),
            next_hops: LocalNextHops { ipv4: Some(local), ..LocalNextHops::default() },
            networks: vec!["10.82.0.0/15".parse().unwrap()],
        };
        let key = self.neighbours[neighbour].0;
        let id = self.speaker.accept(Instant::ZERO, key, connected).unwrap();
        self.neighbours[neighbour].1 = id;
        let open = Open {
            asn: asn(neighbour),
            hold_time: HoldTime::DEFAULT,
            router_id: RouterId::new(100 + u32::try_from(neighbour).unwrap()).unwrap(),
            capabilities: vec![
                Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into()),
                Capability::FourOctetAs(asn(neighbour)),
                Capability::RouteRefresh,
            ],
        };
        self.turn();
        self.receive(neighbour, &open.encode());
        self.receive(neighbour, &header::keepalive());
        self.turn();
    }

    /// As the edge does: reads of 16 KiB, sixteen in a turn.
    fn receive(&mut self, neighbour: usize, bytes: &[u8]) {
        let (key, id) = self.neighbours[neighbour];
        for burst in bytes.chunks(16 * 16 * 1024) {
            for part in burst.chunks(16 * 1024) {
                let event = session::Event::Received(id, part);
                self.speaker.handle(Instant::ZERO, Event::Peer(key, event));
            }
            self.turn();
        }
    }

    /// Every peer acts, and sockets take everything.
    fn turn(&mut self) {
        loop {
            self.speaker.handle(Instant::ZERO, Event::Tick);
            let mut written = Vec::new();
            let mut bytes = BytesMut::with_capacity(ROOM_BYTES);
            while let Some(to) = self.speaker.poll_transmit(Instant::ZERO, ROOM_BYTES, &mut bytes) {
                self.sent_bytes += bytes.len();
                bytes.clear();
                written.push(to);
            }
            while let Some(action) = self.speaker.poll_action() {
                black_box(&action);
            }
            if written.is_empty() {
                return;
            }
            for (key, id) in written {
                self.speaker.handle(Instant::ZERO, Event::Written(key, id));
            }
        }
    }
}

/// Work on a scene, which is measured.
type Measure<'a> = &'a mut dyn FnMut(&mut Scene, &mut dyn FnMut(&mut Scene));

/// A path: its name, how often a route reaches a neighbour (or only the speaker), and what is prepared and done.
struct HotPath {
    name: &'static str,
    routes: u32,
    run: fn(Measure<'_>),
}

const HOT_PATHS: &[HotPath] = &[
    HotPath { name: "learn", routes: ROUTES, run: |measure| learn(measure, 1, 100) },
    HotPath {
        name: "learn-and-pass-on-to-1",
        routes: ROUTES,
        run: |measure| learn(measure, 2, 100),
    },
    HotPath {
        name: "learn-and-pass-on-to-10",
        routes: 10 * ROUTES,
        run: |measure| learn(measure, 11, 100),
    },
    HotPath { name: "one-prefix-per-update", routes: ROUTES, run: |measure| learn(measure, 2, 1) },
    HotPath { name: "learn-the-same-again", routes: ROUTES, run: learn_again },
    HotPath { name: "withdraw", routes: ROUTES, run: withdraw },
    HotPath { name: "session-ends", routes: ROUTES, run: session_ends },
    HotPath { name: "table-to-a-new-session", routes: ROUTES, run: new_session },
    HotPath { name: "refresh", routes: ROUTES, run: refresh },
    HotPath { name: "originate-to-8", routes: 8 * ROUTES, run: originate },
    HotPath { name: "one-change-beside-10k", routes: 1, run: one_change },
];

fn learn(measure: Measure<'_>, neighbours: usize, per_update: usize) {
    let mut scene = Scene::new(neighbours, neighbours);
    let bytes = announcements(0, per_update);
    measure(&mut scene, &mut |scene| scene.receive(0, &bytes));
}

fn learn_again(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 2);
    let bytes = announcements(0, 100);
    scene.receive(0, &bytes);
    measure(&mut scene, &mut |scene| scene.receive(0, &bytes));
}

fn withdraw(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 2);
    scene.receive(0, &announcements(0, 100));
    let bytes = withdrawals();
    measure(&mut scene, &mut |scene| scene.receive(0, &bytes));
}

fn session_ends(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 2);
    scene.receive(0, &announcements(0, 100));
    let (key, id) = scene.neighbours[0];
    measure(&mut scene, &mut |scene| {
        let event = session::Event::Closed(id, None);
        scene.speaker.handle(Instant::ZERO, Event::Peer(key, event));
        scene.turn();
    });
}

fn new_session(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 1);
    scene.receive(0, &announcements(0, 100));
    measure(&mut scene, &mut |scene| scene.connect(1));
}

fn refresh(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 2);
    scene.receive(0, &announcements(0, 100));
    let key = scene.neighbours[1].0;
    measure(&mut scene, &mut |scene| {
        scene.speaker.clear(Instant::ZERO, key, Clear::SoftOut).unwrap();
        scene.turn();
    });
}

fn originate(measure: Measure<'_>) {
    let mut scene = Scene::new(8, 8);
    scene.desired.routes = originated(ROUTES, &scene.everybody());
    measure(&mut scene, &mut |scene| scene.apply());
}

fn one_change(measure: Measure<'_>) {
    let mut scene = Scene::new(2, 2);
    let peers = scene.everybody();
    scene.desired.routes = originated(ROUTES, &peers);
    scene.apply();
    let routes = originated(ROUTES + 1, &peers);
    measure(&mut scene, &mut |scene| {
        scene.desired.routes = Arc::clone(&routes);
        scene.apply();
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|it| it == "--list") {
        HOT_PATHS.iter().for_each(|path| println!("{}", path.name));
        return;
    }
    // One path by its whole name, or all with this word.
    let word = arguments.iter().find(|it| !it.starts_with("--")).map_or("", String::as_str);
    let is_name = HOT_PATHS.iter().any(|path| path.name == word);
    let is_chosen =
        |path: &&HotPath| if is_name { path.name == word } else { path.name.contains(word) };
    for path in HOT_PATHS.iter().filter(is_chosen) {
        let mut took = None;
        (path.run)(&mut |scene, work| {
            let before = scene.sent_bytes;
            let start = WallClock::now();
            measured(scene, work);
            took = Some((start.elapsed(), scene.sent_bytes - before));
        });
        let (time, bytes) = took.unwrap_or_default();
        let nanoseconds = time.as_nanos() / u128::from(path.routes);
        println!("{:<28} {nanoseconds:>8} ns a route and neighbor, {bytes:>9} octets", path.name);
    }
}
