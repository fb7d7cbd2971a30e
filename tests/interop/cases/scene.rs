//! What do all cases have in common? Set up a lab with a router and fairway, apply resources, and wait for
//! sessions and routes as both sides report them. Used by every case.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::speaker::SpeakerKind;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker as Frr;
use lab::resources::{Advertisement, Peer, pool, service};
use lab::routers::{
    Dialling, FEEDER_AS, Origination, Release, Router, RouterKind, RouterRoute, RouterSpec,
};
use lab::wait::{PATIENCE, holds_for, wait_until};
use lab::{Family, Lab, NODE_INTERFACE, NODE_IPV4, NODE_IPV6, ROUTER_TO_FEEDER, Site, Wiring};

pub(crate) const NODE_AS: u32 = 65001;
pub(crate) const ROUTER_AS: u32 = 65002;

/// The pools that `Scene::announce` uses.
pub(crate) const POOL_IPV4: &str = "203.0.113.0/24";
pub(crate) const POOL_IPV6: &str = "2001:db8:77::/120";

/// How long the suite watches that a session which must not come up does not.
const DISTRUST: Duration = Duration::from_secs(3);

/// One square of the matrix: the input of a case.
pub(crate) struct Cell {
    pub(crate) number: usize,
    pub(crate) router: RouterKind,
    /// The speaker on the node.
    pub(crate) speaker: SpeakerKind,
    pub(crate) directory: PathBuf,
}

/// A lab with fairway in `node` and a router in `router`. Parts are dropped in this order: the
/// daemons before the namespaces that they live in.
pub(crate) struct Scene {
    pub(crate) fairway: Fairway,
    pub(crate) router: Box<dyn Router>,
    /// FRR, where that speaks for fairway. It runs from the beginning to the end of the scene.
    pub(crate) speaker: Option<Frr>,
    kind: RouterKind,
    /// The name of the router in fairway's configuration.
    pub(crate) neighbour: String,
    pub(crate) spec: RouterSpec,
    pub(crate) lab: Lab,
}

/// The router's other neighbour, a BIRD. Its daemon is dropped before its namespace.
pub(crate) struct Feeder {
    pub(crate) router: Box<dyn Router>,
    _site: Site,
}

impl Scene {
    /// Builds the lab; nothing runs yet. `family` is that of the session, `adjust` may change the
    /// configuration of the router. Without it: eBGP, one family, no password, the router waits.
    pub(crate) fn open(
        cell: &Cell,
        wiring: Wiring,
        family: Family,
        adjust: impl FnOnce(&mut RouterSpec) -> Result<()>,
    ) -> Result<Self> {
        let node_address = match family {
            Family::Ipv4 => NODE_IPV4,
            Family::Ipv6 => NODE_IPV6,
        };
        let mut spec = RouterSpec {
            multihop: wiring == Wiring::MiddleHop,
            ..RouterSpec::between(
                wiring.router_address(family)?,
                wiring.router_address(Family::Ipv6)?.to_string().parse()?,
                node_address.parse().context("the node's address")?,
            )
        };
        adjust(&mut spec)?;
        let lab = Lab::build(cell.number, &cell.directory, wiring)?;
        let router = cell.router.prepare(&lab.router, &spec)?;
        let mut fairway = Fairway::prepare(&lab)?;
        let speaker = cell.speaker.join(&mut fairway, &lab.node, &lab.directory)?;
        if speaker.is_some() {
            // FRR dials from the address that the kernel likes best: not one that a router's
            // advertisement made.
            let autoconf = format!("net.ipv6.conf.{NODE_INTERFACE}.autoconf=0");
            lab.node.run("sysctl", &["-q", "-w", &autoconf])?;
        }
        let neighbour = match spec.interface {
            Some(_) => NODE_INTERFACE.to_owned(),
            None => spec.local_address.to_string(),
        };
        Ok(Self { fairway, router, speaker, kind: cell.router, neighbour, spec, lab })
    }

    /// A direct eBGP session of one family, the plainest scene.
    pub(crate) fn plain(cell: &Cell, family: Family) -> Result<Self> {
        Self::open(cell, Wiring::Direct, family, |_| Ok(()))
    }

    /// A direct eBGP IPv4 session for which both sides dial, as in most data centres.
    pub(crate) fn both_dial(cell: &Cell) -> Result<Self> {
        Self::open(cell, Wiring::Direct, Family::Ipv4, |router| {
            router.dialling = Dialling::Dials;
            Ok(())
        })
    }

    /// Starts the feeder that `RouterSpec::feeder` names, which originates this.
    pub(crate) fn add_feeder(&self, cell: &Cell, originated: Origination) -> Result<Feeder> {
        let address = self.spec.feeder.context("the router knows no feeder")?;
        let site = self.lab.add_feeder(cell.number)?;
        let spec = RouterSpec {
            router_id: Ipv4Addr::new(10, 0, 0, 9),
            local_as: FEEDER_AS,
            peer_as: ROUTER_AS,
            dialling: Dialling::Dials,
            originated: vec![originated],
            ..RouterSpec::between(
                address.into(),
                self.spec.local_ipv6,
                ROUTER_TO_FEEDER.parse().context("the router's address")?,
            )
        };
        let mut router = RouterKind::Bird(Release::Bookworm).prepare(&site, &spec)?;
        router.start(&site)?;
        Ok(Feeder { router, _site: site })
    }

    /// The BGPPeer that fits the router.
    pub(crate) fn peer(&self) -> Peer {
        Peer::towards(&self.spec)
    }

    pub(crate) fn apply_peer(&self, peer: &Peer) -> Result<()> {
        self.fairway.apply("peer", &peer.yaml())
    }

    /// A pool of both families, advertised without attributes.
    pub(crate) fn apply_pool(&self) -> Result<()> {
        self.apply_pool_only()?;
        let advertisement = Advertisement { name: "plain", pools: &["main"], ..<_>::default() };
        self.fairway.apply("advertisement", &advertisement.yaml())
    }

    pub(crate) fn apply_pool_only(&self) -> Result<()> {
        self.fairway.apply("pool", &pool("main", &[POOL_IPV4, POOL_IPV6]))
    }

    /// Pool, advertisement and the service `web` with these addresses.
    pub(crate) fn announce(&self, addresses: &str) -> Result<()> {
        self.apply_pool()?;
        self.fairway.apply("web", &service("web", Some(addresses)))
    }

    /// The router's own peer, the service `web` with these addresses, and both sides started; waits
    /// for the session, and gives the router's mark of this incarnation of it.
    pub(crate) fn bring_up(&mut self, addresses: &str) -> Result<String> {
        self.apply_peer(&self.peer())?;
        self.announce(addresses)?;
        self.start()?;
        self.established()
    }

    /// Starts the router, then fairway.
    pub(crate) fn start(&mut self) -> Result<()> {
        self.start_router()?;
        self.start_fairway()
    }

    pub(crate) fn start_router(&mut self) -> Result<()> {
        self.router.start(&self.lab.router)
    }

    pub(crate) fn start_fairway(&mut self) -> Result<()> {
        self.fairway.start(&self.lab.node)
    }

    /// Waits for the session on both sides; the router's mark of this incarnation of it.
    pub(crate) fn established(&mut self) -> Result<String> {
        self.established_within(self.kind.patience())
    }

    pub(crate) fn established_within(&mut self, limit: Duration) -> Result<String> {
        self.wait("the session is established on both sides", limit, |scene| {
            let session = scene.router.session()?;
            ensure!(session.established, "the router says {}", session.state);
            let neighbour = scene.fairway.neighbour(&scene.neighbour)?;
            ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
            Ok(session.incarnation)
        })
    }

    /// How long the router may take for a session.
    pub(crate) fn patience(&self) -> Duration {
        self.kind.patience()
    }

    /// The session is up and is still the one that `established` has seen.
    pub(crate) fn expect_same_session(&self, incarnation: &str) -> Result<()> {
        self.expect_router_kept(incarnation)?;
        let neighbour = self.fairway.neighbour(&self.neighbour)?;
        ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
        expect_equal("fairway's connectionsEstablished", &neighbour.connections_established, &1)
    }

    /// The same in the words of the router alone.
    pub(crate) fn expect_router_kept(&self, incarnation: &str) -> Result<()> {
        let session = self.router.session()?;
        ensure!(session.established, "expected the session to stay up, it is {}", session.state);
        if !is_one_moment(&session.incarnation, incarnation) {
            expect_equal("the router's session", &session.incarnation, &incarnation.to_owned())?;
        }
        Ok(())
    }

    /// Watches for some seconds that neither side reports the session as up.
    pub(crate) fn expect_no_session(&mut self) -> Result<()> {
        holds_for("no session on either side", DISTRUST, || {
            self.check_running()?;
            let session = self.router.session()?;
            ensure!(!session.established, "the router says {}", session.state);
            let neighbour = self.fairway.neighbour(&self.neighbour)?;
            ensure!(!neighbour.is_established(), "fairway says {}", neighbour.state);
            Ok(())
        })
    }

    /// Waits for a route, and for the router to trust its next hop.
    pub(crate) fn route_arrives(&mut self, prefix: &str) -> Result<RouterRoute> {
        self.wait(&format!("the router has a usable route to {prefix}"), PATIENCE, |scene| {
            let route = scene.router.route(prefix)?.context("it has none")?;
            ensure!(route.usable, "it does not use {route:?}");
            Ok(route)
        })
    }

    pub(crate) fn route_leaves(&mut self, prefix: &str) -> Result<()> {
        self.wait(&format!("the router has no route to {prefix}"), PATIENCE, |scene| {
            match scene.router.route(prefix)? {
                None => Ok(()),
                Some(route) => bail!("it has {route:?}"),
            }
        })
    }

    /// Waits until the neighbour's routes of `family` are exactly these.
    pub(crate) fn prefixes_become(
        &mut self,
        family: Family,
        expected: &BTreeSet<String>,
    ) -> Result<()> {
        let count = expected.len();
        self.wait(&format!("the router has these {count} prefixes"), 2 * PATIENCE, |scene| {
            let found = scene.router.prefixes(family)?;
            let missing = expected.difference(&found).next();
            let surplus = found.difference(expected).next();
            ensure!(
                missing.is_none() && surplus.is_none(),
                "it has {} ({missing:?} is missing, {surplus:?} is too much)",
                found.len()
            );
            Ok(())
        })
    }

    /// The next hops of a route in the kernel of the router, `None` while it has none.
    pub(crate) fn kernel_next_hops(&self, prefix: &str) -> Result<Option<Vec<IpAddr>>> {
        let family = if Family::of(prefix) == Family::Ipv6 { "-6" } else { "-4" };
        let text = self.lab.router.namespace.ip(&["-j", family, "route", "show", prefix])?;
        let routes: Value =
            serde_json::from_str(&text).with_context(|| format!("ip's routes: {text}"))?;
        let Some(route) = routes.get(0) else {
            return Ok(None);
        };
        let several = route.get("nexthops").and_then(Value::as_array);
        let hops = several.map_or_else(|| vec![route], |hops| hops.iter().collect());
        // A next hop of the other family is `via`, one of the route's own is `gateway`.
        let address = |hop: &&Value| {
            let text = hop.pointer("/via/host").or(hop.get("gateway"))?.as_str()?;
            text.parse().ok()
        };
        Ok(Some(hops.iter().filter_map(address).collect()))
    }

    /// Polls, but gives up at once when a daemon has ended.
    pub(crate) fn wait<T>(
        &mut self,
        expected: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<T>,
    ) -> Result<T> {
        wait_until(expected, limit, || {
            self.check_running()?;
            look(self)
        })
    }

    pub(crate) fn check_running(&mut self) -> Result<()> {
        self.router.check_running()?;
        self.speaker.as_mut().map_or(Ok(()), Frr::check_running)?;
        self.fairway.check_running()
    }
}

/// An error that shows both when they differ.
pub(crate) fn expect_equal<T: PartialEq + Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<()> {
    ensure!(found == expected, "{what}: expected {expected:?}, got {found:?}");
    Ok(())
}

pub(crate) fn expect_next_hop(route: &RouterRoute, expected: &str) -> Result<()> {
    let address: IpAddr = expected.parse().context("the expected next hop")?;
    // A link-local address may come beside the global one.
    let global = route.next_hops.iter().find(|hop| !hop.to_string().starts_with("fe80:"));
    ensure!(
        global.map(IpAddr::to_canonical) == Some(address.to_canonical()),
        "next hop: expected {expected}, got {:?}",
        route.next_hops
    );
    Ok(())
}

/// What BIRD's times of day may differ by. BIRD counts each back from now and reads its two clocks one
/// after the other: the time for which it is preempted between them goes into the result. A session
/// that was reset is further off: it came up before the test began to change anything.
const CLOCKS_APART_MILLISECONDS_MAX: i64 = 100;

/// Whether both are the same time of day.
fn is_one_moment(one: &str, other: &str) -> bool {
    let milliseconds = |text: &str| -> Option<i64> {
        let (hours, rest) = text.strip_prefix("since ")?.split_once(':')?;
        let (minutes, rest) = rest.split_once(':')?;
        let (seconds, rest) = rest.split_once('.')?;
        let number = |text: &str| text.parse::<i64>().ok();
        let minutes = number(hours)? * 60 + number(minutes)?;
        Some((minutes * 60 + number(seconds)?) * 1000 + number(rest)?)
    };
    let moments = milliseconds(one).zip(milliseconds(other));
    moments.is_some_and(|(one, other)| (one - other).abs() <= CLOCKS_APART_MILLISECONDS_MAX)
}
