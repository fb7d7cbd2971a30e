//! Do Fairway and the router choose the same path of several? Both hear the same sixty prefixes from the same five
//! speakers of the test's own, which differ in everything that decides. A row of the matrix.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpStream};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::scene::{Cell, NODE_AS, ROUTER_AS, Scene, expect_equal};
use lab::namespace::Namespace;
use lab::outsider::{KEEPALIVE, UPDATE, connected_from, open_session_as, send};
use lab::resources::{Allowed, Peer};
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, NODE_INTERFACE, ROUTER_INTERFACE, Wiring};

const DECISIONS: u8 = 60;
/// Replays the same sixty; any other number gives others.
const SEED: u64 = 26;
/// Steps of the selection that must each decide at least once.
const STEPS: [&str; 6] = ["Local Pref", "AS Path", "Origin", "MED", "Peer Type", "Router ID"];

/// One that announces paths; an internal one has the AS of the machine that hears it.
#[derive(Clone, Copy)]
struct Announcer {
    name: &'static str,
    number: u8,
    /// Of an external one.
    asn: Option<u16>,
}

/// Two of them have one AS: between their paths MED counts.
const ANNOUNCERS: [Announcer; 5] = [
    Announcer { name: "one", number: 1, asn: Some(65_101) },
    Announcer { name: "two", number: 2, asn: Some(65_102) },
    Announcer { name: "three", number: 3, asn: Some(65_101) },
    Announcer { name: "four", number: 4, asn: None },
    Announcer { name: "five", number: 5, asn: None },
];

impl Announcer {
    /// Towards the router it is on the side of the node, and the other way round: no machine hears itself.
    fn address(self, hears: Hearer) -> Ipv4Addr {
        let first = match hears {
            Hearer::Router => 30,
            Hearer::Fairway => 40,
        };
        Ipv4Addr::new(10, 77, 0, first + self.number)
    }

    /// The same for both; nobody has it.
    fn next_hop(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, 100 + self.number)
    }

    fn router_id(self) -> Ipv4Addr {
        // Not in the order of the addresses.
        Ipv4Addr::new(10, 0, 1, 10 - self.number)
    }
}

/// Who hears it.
#[derive(Clone, Copy)]
enum Hearer {
    Router,
    Fairway,
}

/// One of them; the first more often if it is there more often.
fn one_of<T: Copy>(random: &mut fastrand::Rng, values: &[T]) -> Option<T> {
    values.get(random.usize(0..values.len().max(1))).copied()
}

/// Attributes of one path, in octets.
fn attributes(announcer: Announcer, random: &mut fastrand::Rng) -> Vec<u8> {
    let origin = one_of(random, &[0, 0, 0, 1, 2]).unwrap_or_default();
    let mut path: Vec<u16> = announcer.asn.into_iter().collect();
    if announcer.asn.is_none() {
        path.extend(one_of(random, &[65_101, 65_102]));
    }
    path.extend(vec![65_200; one_of(random, &[0, 0, 1]).unwrap_or_default()]);
    let mut bytes = vec![0x40, 1, 1, origin, 0x40, 2];
    let count = u8::try_from(path.len()).unwrap_or(u8::MAX);
    bytes.extend([2 + 2 * count, 2, count]);
    bytes.extend(path.iter().flat_map(|asn| asn.to_be_bytes()));
    bytes.extend([0x40, 3, 4]);
    bytes.extend(announcer.next_hop().octets());
    if let Some(med) = one_of(random, &[None, Some(5_u32), Some(7)]).flatten() {
        bytes.extend([0x80, 4, 4]);
        bytes.extend(med.to_be_bytes());
    }
    if announcer.asn.is_none() {
        let preference = one_of(random, &[100_u32, 100, 100, 90, 110]).unwrap_or_default();
        bytes.extend([0x40, 5, 4]);
        bytes.extend(preference.to_be_bytes());
        // A path that was reflected: its originator is compared, and the length of CLUSTER_LIST.
        if random.bool() {
            let clusters = 1 + random.u8(0..2);
            bytes.extend([0x80, 9, 4, 10, 0, 1, 3, 0x80, 10, 4 * clusters]);
            bytes.extend((0..clusters).flat_map(|it| [192, 0, 2, it]));
        }
    }
    bytes
}

fn prefix(decision: u8) -> String {
    format!("10.90.{decision}.0/24")
}

/// For each decision, what each of those that take part announces.
fn updates() -> Vec<Vec<(usize, Vec<u8>)>> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let decision = |number: u8| {
        let mut taking_part: Vec<usize> = (0..ANNOUNCERS.len()).collect();
        random.shuffle(&mut taking_part);
        taking_part.truncate(random.usize(2..=4));
        let update = |place: usize| {
            let announcer = ANNOUNCERS.get(place)?;
            let attributes = attributes(*announcer, &mut random);
            let length = u16::try_from(attributes.len()).ok()?;
            let mut body = vec![0, 0];
            body.extend(length.to_be_bytes());
            body.extend(attributes);
            body.extend([24, 10, 90, number]);
            Some((place, body))
        };
        taking_part.into_iter().filter_map(update).collect()
    };
    (0..DECISIONS).map(decision).collect()
}

/// Opens all sessions from `from` to `to`, and announces everything. They last as long as what is returned.
fn announce(hears: Hearer, from: &Namespace, to: Ipv4Addr, asn: u32) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for announcer in ANNOUNCERS {
        let address = announcer.address(hears);
        let own = announcer.asn.map_or_else(|| u16::try_from(asn), Ok).context("an AS")?;
        let stream = wait_until(&format!("{address} has a session"), PATIENCE, || {
            let mut stream = from.enter(|| connected_from(address, to))?;
            open_session_as(&mut stream, own, announcer.router_id())?;
            Ok(stream)
        })?;
        streams.push(stream);
    }
    for updates in updates() {
        for (place, body) in updates {
            let stream = streams.get_mut(place).context("no such speaker")?;
            send(stream, UPDATE, &body)?;
        }
    }
    // The hold time begins again after the UPDATEs.
    streams.iter_mut().try_for_each(|stream| send(stream, KEEPALIVE, &[]))?;
    Ok(streams)
}

/// The best path of Fairway.
struct Chosen {
    next_hop: String,
    /// The step that decided.
    reason: String,
    all: Value,
}

fn chosen(scene: &Scene, prefix: &str, paths: usize) -> Result<Chosen> {
    let entry = scene.fairway.show(&["bgp", "ipv4", "unicast", prefix])?;
    let all = entry.get("paths").and_then(Value::as_array).context("no paths")?;
    ensure!(all.len() == paths, "{} of {paths} paths", all.len());
    let best =
        all.iter().find(|path| path.pointer("/bestpath/overall") == Some(&Value::Bool(true)));
    let best = best.with_context(|| format!("no best path: {entry}"))?;
    let word = |pointer: &str| best.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let next_hop = word("/nexthops/0/ip").context("no next hop")?;
    let reason = word("/bestpath/selectionReason").unwrap_or_default();
    Ok(Chosen { next_hop, reason, all: entry })
}

/// Topology: node (AS 65001) --- router (AS 65002), without a session between them; five speakers announce sixty prefixes to
/// both, with random AS paths, origins, MEDs, preferences, originators and clusters.
/// Proves: both choose the same path for each, and each step of the selection decides some.
pub(super) fn sixty_decisions_have_the_winner_of_the_router(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        let others = ANNOUNCERS.iter();
        router.others = others
            .map(|it| (it.address(Hearer::Router), it.asn.map_or(ROUTER_AS, u32::from)))
            .collect();
        Ok(())
    })?;
    for announcer in ANNOUNCERS {
        let near = announcer.address(Hearer::Router).to_string();
        scene.lab.node.add_address(NODE_INTERFACE, &format!("{near}/24"))?;
        let address = announcer.address(Hearer::Fairway);
        scene.lab.router.namespace.add_address(ROUTER_INTERFACE, &format!("{address}/24"))?;
        let peer = Peer {
            name: announcer.name,
            peer_as: announcer.asn.map_or(NODE_AS, u32::from),
            address: address.into(),
            passive: true,
            to_receive: Some(Allowed::All),
            ..scene.peer()
        };
        scene.fairway.apply(announcer.name, &peer.yaml())?;
    }
    scene.start()?;
    let node = "10.77.0.1".parse().context("the node's address")?;
    let router = "10.77.0.2".parse().context("the router's address")?;
    let to_fairway = announce(Hearer::Fairway, &scene.lab.router.namespace, node, NODE_AS)?;
    let to_router = announce(Hearer::Router, &scene.lab.node, router, ROUTER_AS)?;
    let mut reasons = BTreeSet::new();
    for (decision, updates) in (0..DECISIONS).zip(updates()) {
        let prefix = prefix(decision);
        let chosen = scene.wait(&format!("{prefix} is decided"), PATIENCE, |scene| {
            let chosen = chosen(scene, &prefix, updates.len())?;
            let theirs = scene.router.route(&prefix)?.context("the router has no route")?;
            let theirs: Vec<String> = theirs.next_hops.iter().map(ToString::to_string).collect();
            expect_equal("next hop of the router", &theirs, &vec![chosen.next_hop.clone()])
                .with_context(|| format!("of these paths: {}", chosen.all))?;
            Ok(chosen)
        })?;
        reasons.insert(chosen.reason);
    }
    for step in STEPS {
        ensure!(reasons.iter().any(|it| it.contains(step)), "{step} never decides: {reasons:?}");
    }
    drop((to_fairway, to_router));
    Ok(())
}
