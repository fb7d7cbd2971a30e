//! What is tried by a neighbor whose sessions come up? The messages that no router sends are in the corpus; these are
//! floods, silence, and routes that are nobody's to announce. Used by the field.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::Trial;
use crate::scene::{QUICK, SERVICES, Scene, prefix, service_text};
use lab::outsider::{
    ASN, KEEPALIVE, NOTIFICATION, OPEN, UPDATE, connected_from, open_session, open_session_as,
    receive, send,
};
use lab::usage::Usage;
use lab::wait::{PATIENCE, now};
use lab::{Family, NODE_INTERFACE, ROUTER_INTERFACE};

/// An address of the node in the range of these neighbors.
const NODE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);

/// How many prefixes one of them may announce.
const LIMIT: u16 = 1_000;

/// How long one of them comes and goes.
const FLAPPING: Duration = Duration::from_secs(3);

const ROUTE_REFRESH: u8 = 5;

const RANGE: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: rack}\n\
                     spec: {myASN: 65001, peerASN: 65010, listenRange: 10.78.0.0/24, listenLimit: 30, \
                     enableGracefulRestart: false, \
                     toReceive: {allowed: {mode: all}, maxPrefixes: {limit: 1000}}}\n";

/// The internal neighbor, and the node beside it.
const CORE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const CORE_NODE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 254);
const OWN_ASN: u16 = 65_001;
/// How many of its routes can be followed.
const INSTALLED: u16 = 2_000;

const CORE_PEER: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: core}\n\
                         spec: {myASN: 65001, peerASN: 65001, peerAddress: 10.79.0.1, passive: true, \
                         installRoutes: true, enableGracefulRestart: false, toReceive: {allowed: {mode: all}}}\n";

const NEIGHBOR: &str = "`show bgp neighbors`; log";
const REFUSED: &str = "`fairway_bgp_refused_routes_total`";
const ENDS: &str = "its session ends, no other notices";
const STAYS: &str = "its session stays, no other notices";

pub(super) const TRIALS: &[Trial] = &[
    Trial::new(
        "a neighbor announces more prefixes than maxPrefixes allows",
        "Cease 6/1; no other notices",
        "`fairway_bgp_limit_exceeded_total`; log",
        |scene| {
            let mut neighbor = Neighbor::up(scene, 1)?;
            for number in 0..=LIMIT {
                neighbor.announce(number, &PATH)?;
            }
            neighbor.ends_with([6, 1])
        },
    ),
    Trial::new(
        "a neighbor announces the address of a Service",
        "our own route stays the best one",
        "`show bgp ipv4 unicast PREFIX`",
        |scene| {
            let mut neighbor = Neighbor::up(scene, 2)?;
            neighbor.update(&PATH, NEXT_HOP_OWN, &[32, 198, 18, 0, 4])?;
            neighbor.has_accepted(scene, 1)?;
            scene.expect_all_routes()
        },
    ),
    Trial::new(
        "a neighbor announces a route with our own AS in its path",
        "the route is refused (RFC 4271 §9.1.2)",
        REFUSED,
        |scene| {
            let mut neighbor = Neighbor::up(scene, 3)?;
            neighbor.announce(1, &[2, 2, 0xFD, 0xF2, 0xFD, 0xE9])?;
            neighbor.has_refused(scene)
        },
    ),
    Trial::new(
        "a neighbor announces a route whose next hop is loopback",
        "the route is refused",
        REFUSED,
        |scene| {
            let mut neighbor = Neighbor::up(scene, 4)?;
            neighbor.update(&PATH, [127, 0, 0, 1], &[24, 10, 9, 9])?;
            neighbor.has_refused(scene)
        },
    ),
    Trial::new(
        "a neighbor announces a route whose next hop is this node",
        "the route is refused (RFC 4271 §5.1.3)",
        REFUSED,
        |scene| {
            let mut neighbor = Neighbor::up(scene, 5)?;
            neighbor.update(&PATH, NODE.octets(), &[24, 10, 9, 9])?;
            neighbor.has_refused(scene)
        },
    ),
    Trial::new(
        "a path of 255 AS numbers, the most that one segment holds",
        STAYS,
        NEIGHBOR,
        |scene| {
            let mut neighbor = Neighbor::up(scene, 6)?;
            let mut path = vec![2, 255];
            path.extend([0xFD, 0xF2].repeat(255));
            neighbor.announce(1, &path)?;
            neighbor.stays(scene)
        },
    ),
    Trial::new("50,000 KEEPALIVEs at once", STAYS, NEIGHBOR, |scene| {
        let mut neighbor = Neighbor::up(scene, 7)?;
        (0..50_000).try_for_each(|_| send(&mut neighbor.stream, KEEPALIVE, &[]))?;
        neighbor.stays(scene)
    }),
    Trial::new(
        "5,000 ROUTE-REFRESHes at once",
        "they are answered at a bounded rate; no other notices",
        "`fairway_bgp_route_refreshes_received_total`",
        |scene| {
            let mut neighbor = Neighbor::up(scene, 8)?;
            for _ in 0..5_000 {
                // It may end the session.
                if send(&mut neighbor.stream, ROUTE_REFRESH, &[0, 1, 0, 1]).is_err() {
                    break;
                }
            }
            Ok(())
        },
    ),
    Trial::new("one prefix is announced and withdrawn 20,000 times", STAYS, NEIGHBOR, |scene| {
        let mut neighbor = Neighbor::up(scene, 9)?;
        for _ in 0..20_000 {
            neighbor.announce(1, &PATH)?;
            send(&mut neighbor.stream, UPDATE, &[0, 4, 24, 10, 0, 1, 0, 0])?;
        }
        neighbor.stays(scene)
    }),
    Trial::new(
        "a neighbor stops reading while 200 changes are made",
        "others get each change; nothing piles up",
        "`show bgp neighbors`: OutQ; log",
        |scene| {
            let neighbor = Neighbor::up(scene, 10)?;
            for number in 0..200 {
                scene.apply("service-extra", &service_text(SERVICES + 1 + number))?;
            }
            scene.fairway.remove("service-extra")?;
            drop(neighbor);
            Ok(())
        },
    ),
    Trial::new(
        "a neighbor sends half a message and falls silent",
        "its session ends by its hold timer; no other notices",
        NEIGHBOR,
        |scene| {
            let mut neighbor = Neighbor::with_hold_time(scene, 11, 3)?;
            std::io::Write::write_all(&mut neighbor.stream, &[0xFF; 10]).context("sending")?;
            neighbor.ends_with([4, 0])
        },
    ),
    Trial::new(
        "a neighbor agrees on a hold time of 3 s and falls silent",
        "NOTIFICATION 4/0 after 3 s",
        NEIGHBOR,
        |scene| Neighbor::with_hold_time(scene, 12, 3)?.ends_with([4, 0]),
    ),
    Trial::new("an OPEN with another AS", "NOTIFICATION 2/2", NEIGHBOR, |scene| {
        let mut neighbor = Neighbor::connected(scene, 13)?;
        send(&mut neighbor.stream, OPEN, &[4, 0xFD, 0xF3, 0, 90, 10, 78, 0, 13, 0])?;
        neighbor.ends_with([2, 2])
    }),
    Trial::new(
        "an OPEN byte by byte that never ends",
        "the connection makes room when others come",
        NEIGHBOR,
        |scene| {
            let mut neighbor = Neighbor::connected(scene, 14)?;
            for _ in 0..18 {
                std::io::Write::write_all(&mut neighbor.stream, &[0xFF]).context("sending")?;
            }
            Ok(())
        },
    ),
    Trial::new(
        "a neighbor comes up and resets the connection for 3 s, as fast as it can",
        "later ones wait; no other notices; few lines in the log",
        "`fairway_bgp_connections_dropped_total`; `fairway_bound_reached_total{bound=\"log-line\"}`",
        comes_and_goes,
    ),
    Trial::new(
        "a NOTIFICATION with escape sequences in its shutdown message (RFC 9003)",
        "it is printed escaped",
        NEIGHBOR,
        |scene| {
            let mut neighbor = Neighbor::up(scene, 16)?;
            let text = b"\x1b[2J\r\nroot:";
            let body = [&[6, 2, 12][..], text].concat();
            send(&mut neighbor.stream, NOTIFICATION, &body)?;
            scene.wait("the log has it", PATIENCE, |scene| {
                ensure!(scene.log()?.contains("root:"), "not yet");
                Ok(())
            })?;
            ensure!(!scene.log()?.contains('\u{1b}'), "the log has an escape sequence");
            Ok(())
        },
    ),
    Trial::new(
        "1,000 routes, each with other attributes, and the connection is reset",
        ENDS,
        "`fairway_bgp_received_attribute_bytes`",
        |scene| {
            let mut neighbor = Neighbor::up(scene, 17)?;
            for number in 0..LIMIT {
                let [high, low] = number.to_be_bytes();
                neighbor.announce(number, &[2, 2, 0xFD, 0xF2, high | 0x10, low])?;
            }
            neighbor.has_accepted(scene, LIMIT)?;
            drop(neighbor);
            Usage::of(scene.fairway.process_id()?)?.expect_peak_below(128.0)
        },
    ),
    Trial::new(
        "an internal neighbor announces 500 next hops a second that cannot be reached, beside 2,000 installed routes",
        "its routes are not used; changes of others are applied meanwhile",
        "`show bgp ipv4 unicast PREFIX`: inaccessible",
        next_hops_that_cannot_be_reached,
    ),
];

/// One more Service reaches the router while the neighbor goes on; the kernel has the routes that can be followed alone.
fn next_hops_that_cannot_be_reached(scene: &mut Scene) -> Result<()> {
    scene.lab.node.add_address(NODE_INTERFACE, &format!("{CORE_NODE}/24"))?;
    let router = &scene.lab.router.namespace;
    router.add_address(ROUTER_INTERFACE, &format!("{CORE}/24"))?;
    scene.apply("core", CORE_PEER)?;
    let stream = scene.wait("Fairway accepts the connection", PATIENCE, |scene| {
        let mut stream = scene.lab.router.namespace.enter(|| connected_from(CORE, CORE_NODE))?;
        open_session_as(&mut stream, OWN_ASN, CORE)?;
        Ok(stream)
    })?;
    let mut neighbor = Neighbor { address: CORE, stream };
    for number in 0..INSTALLED {
        let [high, low] = number.to_be_bytes();
        neighbor.update(&[], NEXT_HOP_OWN, &[24, 20, high, low])?;
    }
    scene.wait("the routes are installed", PATIENCE, |scene| {
        ensure!(installed(scene)? == usize::from(INSTALLED), "not yet");
        Ok(())
    })?;
    let begin = now();
    let mut sent = 0_u16;
    scene.apply(&format!("service-{SERVICES}"), &service_text(SERVICES))?;
    scene.wait("the router has the Service", QUICK, |scene| {
        let due = u16::try_from(begin.elapsed().as_millis() / 2)?;
        while sent < due {
            let [high, low] = sent.to_be_bytes();
            neighbor.update(&[], [172, 16, high, low], &[24, 30, high, low])?;
            sent += 1;
        }
        ensure!(
            sent > 100 && scene.router.prefixes(Family::Ipv4)?.contains(&prefix(SERVICES)),
            "not yet"
        );
        Ok(())
    })?;
    scene.fairway.remove(&format!("service-{SERVICES}"))?;
    let [high, low] = (sent - 1).to_be_bytes();
    scene.wait("its last route is inaccessible", PATIENCE, |scene| {
        let prefix = format!("30.{high}.{low}.0/24");
        let route = scene.fairway.show_text(&["bgp", "ipv4", "unicast", &prefix])?;
        ensure!(route.contains("inaccessible"), "it says:\n{route}");
        Ok(())
    })?;
    ensure!(installed(scene)? == usize::from(INSTALLED), "the kernel has {}", installed(scene)?);
    drop(neighbor);
    scene.wait("its routes go", PATIENCE, |scene| {
        ensure!(installed(scene)? == 0, "not yet");
        Ok(())
    })?;
    scene.fairway.remove("core")
}

/// Routes in the kernel of the node that Fairway has installed.
fn installed(scene: &Scene) -> Result<usize> {
    Ok(scene.lab.node.ip(&["route", "show", "proto", "bgp"])?.lines().count())
}

/// A neighbor of which the log tells only so much.
fn comes_and_goes(scene: &mut Scene) -> Result<()> {
    let (logged, begin) = (scene.log()?.len(), now());
    while begin.elapsed() < FLAPPING {
        // It is closed at once while it waits.
        let _ = Neighbor::connected(scene, 15).map(|mut it| open_session(&mut it.stream));
    }
    scene.bound_was_reached("log-line")?;
    let log = scene.log()?;
    let lines = log.get(logged..).unwrap_or_default().lines();
    let is_told = |line: &&str| {
        line.contains("session ") && line.contains("peer=10.78.0.15 ") && !line.contains("DEBUG")
    };
    let count = lines.filter(is_told).count();
    // Sixty at once, and then one in 5 s.
    let allowed = 60 + usize::try_from(begin.elapsed().as_secs() / 5 + 1)?;
    ensure!(count <= allowed, "its sessions fill {count} lines of the log, and may fill {allowed}");
    Ok(())
}

/// Neighbors of this range may connect.
pub(super) fn prepare(scene: &mut Scene) -> Result<()> {
    scene.lab.node.add_address(NODE_INTERFACE, &format!("{NODE}/24"))?;
    let router = &scene.lab.router.namespace;
    for number in 1..=30 {
        router.add_address(ROUTER_INTERFACE, &format!("10.78.0.{number}/24"))?;
    }
    scene.apply("rack", RANGE)?;
    scene.wait("Fairway accepts connections of the range", PATIENCE, |scene| {
        let text = scene.fairway.show_text(&["bgp", "summary"])?;
        ensure!(text.contains("10.78.0.0/24"), "it says:\n{text}");
        Ok(())
    })
}

/// A path of the neighbor's own AS.
const PATH: [u8; 4] = [2, 1, 0xFD, 0xF2];

/// What a route of an internal neighbor, whose path is empty, has beside.
const LOCAL_PREF: [u8; 7] = [0x40, 5, 4, 0, 0, 0, 100];

/// In place of a next hop: the neighbor's own address.
const NEXT_HOP_OWN: [u8; 4] = [0; 4];

/// One of the range, with an address of its own: what becomes of one does not slow another one down.
struct Neighbor {
    address: Ipv4Addr,
    stream: TcpStream,
}

impl Neighbor {
    fn connected(scene: &mut Scene, number: u8) -> Result<Self> {
        let address = Ipv4Addr::new(10, 78, 0, number);
        let stream = scene.lab.router.namespace.enter(|| connected_from(address, NODE))?;
        Ok(Self { address, stream })
    }

    fn up(scene: &mut Scene, number: u8) -> Result<Self> {
        let mut neighbor = Self::connected(scene, number)?;
        open_session(&mut neighbor.stream)?;
        Ok(neighbor)
    }

    fn with_hold_time(scene: &mut Scene, number: u8, seconds: u8) -> Result<Self> {
        let mut neighbor = Self::connected(scene, number)?;
        let [high, low] = ASN.to_be_bytes();
        let stream = &mut neighbor.stream;
        send(stream, OPEN, &[4, high, low, 0, seconds, 10, 78, 0, number, 0])?;
        receive(stream)?;
        send(stream, KEEPALIVE, &[])?;
        Ok(neighbor)
    }

    fn announce(&mut self, number: u16, path: &[u8]) -> Result<()> {
        let [high, low] = number.to_be_bytes();
        self.update(path, NEXT_HOP_OWN, &[24, 10, high, low])
    }

    fn update(&mut self, path: &[u8], next_hop: [u8; 4], prefix: &[u8]) -> Result<()> {
        let next_hop = if next_hop == NEXT_HOP_OWN { self.address.octets() } else { next_hop };
        let [path_high, path_low] = u16::try_from(path.len()).context("a path")?.to_be_bytes();
        let mut attributes = vec![0x40, 1, 1, 0, 0x50, 2, path_high, path_low];
        attributes.extend(path);
        attributes.extend([0x40, 3, 4]);
        attributes.extend(next_hop);
        if path.is_empty() {
            attributes.extend(LOCAL_PREF);
        }
        let length = u16::try_from(attributes.len()).context("attributes")?.to_be_bytes();
        let body = [&[0, 0], &length[..], &attributes, prefix].concat();
        send(&mut self.stream, UPDATE, &body)
    }

    /// The next NOTIFICATION has this code and subcode.
    fn ends_with(&mut self, expected: [u8; 2]) -> Result<()> {
        self.stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        loop {
            match receive(&mut self.stream)? {
                (NOTIFICATION, body) => {
                    ensure!(body.starts_with(&expected), "the NOTIFICATION is {body:?}");
                    return Ok(());
                }
                (OPEN | KEEPALIVE | UPDATE, _) => {}
                (kind, _) => bail!("there is a message of type {kind}"),
            }
        }
    }

    /// Waits until that many of its routes were accepted.
    fn has_accepted(&self, scene: &mut Scene, count: u16) -> Result<()> {
        self.counts(scene, "fairway_bgp_received_prefixes", &format!(" {count}"))
    }

    fn has_refused(&self, scene: &mut Scene) -> Result<()> {
        self.counts(scene, "fairway_bgp_refused_routes_total", " 1")
    }

    fn counts(&self, scene: &mut Scene, metric: &str, end: &str) -> Result<()> {
        let label = format!("{metric}{{peer=\"{}:", self.address);
        scene.wait(&format!("{metric} is{end}"), PATIENCE, |scene| {
            let page = scene.http("metrics")?;
            let lines: Vec<&str> = page.lines().filter(|it| it.starts_with(&label)).collect();
            ensure!(lines.iter().any(|line| line.ends_with(end)), "there is {lines:?}");
            Ok(())
        })
    }

    /// What it sent is read, and its session is there.
    fn stays(&mut self, scene: &mut Scene) -> Result<()> {
        // The last of it: a route that nothing before it announced.
        self.update(&PATH, NEXT_HOP_OWN, &[24, 10, 200, 200])?;
        scene.wait("all that it sent is read", PATIENCE, |scene| {
            let routes = scene.fairway.show_text(&["bgp", "ipv4", "unicast"])?;
            ensure!(routes.contains("10.200.200.0/24"), "not yet");
            let neighbour = scene.fairway.neighbour(&self.address.to_string())?;
            ensure!(neighbour.is_established(), "its session is {}", neighbour.state);
            Ok(())
        })
    }
}
