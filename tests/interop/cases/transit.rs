//! What do other routers receive of routes that fairway has received? A second router of the same kind,
//! on a cable of its own. Rows of the matrix.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::scene::{Cell, NODE_AS, ROUTER_AS, Scene, expect_equal, expect_next_hop};
use lab::resources::{Allowed, Peer, Range, service};
use lab::routers::{Origination, Router, RouterRoute, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, NODE_TO_SECOND, SECOND, Site, Wiring};

const SECOND_AS: u32 = 65003;
const BOTH: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// A scene with a second router behind fairway: router --- node --- second. Parts are dropped in
/// this order: the daemons before the namespaces that they live in.
pub(super) struct Transit {
    pub(super) second: Box<dyn Router>,
    pub(super) second_spec: RouterSpec,
    pub(super) scene: Scene,
    site: Site,
}

impl Transit {
    /// Both routers speak both families over an IPv4 session; nothing runs yet.
    fn open(
        cell: &Cell,
        router_as: u32,
        second_as: u32,
        originated: Vec<Origination>,
    ) -> Result<Self> {
        let configure = |router: &mut RouterSpec| {
            router.local_as = router_as;
            router.families = BOTH.to_vec();
            router.originated = originated;
        };
        Self::open_with(cell, second_as, configure)
    }

    /// Likewise; the second router has the settings of the first, but its own AS, and originates nothing.
    pub(super) fn open_with(
        cell: &Cell,
        second_as: u32,
        configure: impl FnOnce(&mut RouterSpec),
    ) -> Result<Self> {
        let scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
            configure(router);
            Ok(())
        })?;
        let second_spec = RouterSpec {
            router_id: Ipv4Addr::new(10, 0, 0, 3),
            local_as: second_as,
            local_address: SECOND[0].parse().context("the second router's address")?,
            local_ipv6: SECOND[1].parse().context("the second router's IPv6 address")?,
            peer_address: NODE_TO_SECOND[0].parse().context("the node's address")?,
            originated: Vec::new(),
            ..scene.spec.clone()
        };
        let site = scene.lab.add_second_router(cell.number)?;
        let second = cell.router.prepare(&site, &second_spec)?;
        Ok(Self { second, second_spec, scene, site })
    }

    /// Everything is received from the first router; `allowed` of it goes on to the second. Waits
    /// for both sessions.
    fn bring_up(&mut self, allowed: Allowed, limit: Duration) -> Result<()> {
        let mut router = self.scene.peer();
        router.to_receive = Some(Allowed::All);
        let mut second = self.second_peer();
        second.to_advertise = Some(allowed);
        self.join(&router, &second, limit)
    }

    pub(super) fn second_peer(&self) -> Peer {
        Peer { name: "second", ..Peer::towards(&self.second_spec) }
    }

    /// Starts everything, and waits for both sessions.
    pub(super) fn join(&mut self, router: &Peer, second: &Peer, limit: Duration) -> Result<()> {
        self.scene.apply_peer(router)?;
        self.scene.fairway.apply("second", &second.yaml())?;
        self.second.start(&self.site)?;
        self.scene.start()?;
        self.scene.established()?;
        self.wait("the session with the second router is established", limit, |transit| {
            let session = transit.second.session()?;
            ensure!(session.established, "the second router says {}", session.state);
            let neighbour = transit.scene.fairway.neighbour(SECOND[0])?;
            ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
            Ok(())
        })
    }

    pub(super) fn wait<T>(
        &mut self,
        expected: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<T>,
    ) -> Result<T> {
        wait_until(expected, limit, || {
            self.second.check_running()?;
            self.scene.fairway.check_running()?;
            look(self)
        })
    }

    pub(super) fn arrives(&mut self, prefix: &str) -> Result<RouterRoute> {
        self.wait(&format!("the second router has a usable route to {prefix}"), PATIENCE, |it| {
            let route = it.second.route(prefix)?.context("it has none")?;
            ensure!(route.usable, "it does not use {route:?}");
            Ok(route)
        })
    }

    pub(super) fn leaves(&mut self, prefix: &str) -> Result<()> {
        self.wait(&format!("the second router has no route to {prefix}"), PATIENCE, |transit| {
            match transit.second.route(prefix)? {
                None => Ok(()),
                Some(route) => bail!("it has {route:?}"),
            }
        })
    }

    /// The second router has received everything that fairway had to send until now, and of `family` it has
    /// these: a service that is announced last is there, too.
    pub(super) fn has_exactly(&mut self, family: Family, expected: &[&str]) -> Result<()> {
        self.scene.apply_pool()?;
        self.scene.fairway.apply("web", &service("web", Some("203.0.113.10")))?;
        self.arrives("203.0.113.10/32")?;
        let mut expected: BTreeSet<String> =
            expected.iter().map(|prefix| (*prefix).to_owned()).collect();
        if family == Family::Ipv4 {
            expected.insert("203.0.113.10/32".to_owned());
        }
        expect_equal("prefixes at the second router", &self.second.prefixes(family)?, &expected)
    }

    /// Waits until fairway has this many routes of the first router in each family.
    fn fairway_has(&mut self, ipv4: u64, ipv6: u64) -> Result<()> {
        self.wait("fairway has received the routes", PATIENCE, |transit| {
            let summary = transit.scene.fairway.show(&["bgp", "summary"])?;
            for (family, count) in [("ipv4Unicast", ipv4), ("ipv6Unicast", ipv6)] {
                let pointer = format!("/{family}/peers/10.77.0.2/pfxRcd");
                let found = summary.pointer(&pointer).and_then(serde_json::Value::as_u64);
                expect_equal(&pointer, &found, &Some(count))?;
            }
            Ok(())
        })
    }
}

pub(super) fn with_communities(prefix: &str, communities: &[&str]) -> Origination {
    let communities = communities.iter().map(|community| (*community).to_owned()).collect();
    Origination { communities, med: Some(50), ..Origination::plain(prefix) }
}

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003), both families over
/// IPv4; `toAdvertise` of the second lists two prefixes and what is inside them.
/// Proves: the second router gets what is listed, with the AS path `node router`, the node as the
/// next hop and the communities kept, and nothing else; it goes when the first router withdraws it,
/// and when the first session ends.
//+ RFC 4271 §5.1.2: our AS is put in front of the path towards an external peer.
//+ RFC 4271 §5.1.3: a route that is passed on to an external peer has our address as next hop.
//+ RFC 4271 §6: the end of a session clears its Adj-RIB-In and the Loc-RIB of its routes.
//+ RFC 4271 §9.1.3: policy keeps a route from a peer.
//= RFC 4271 §9.1.4 SHOULD NOT: routes are de-aggregated.
pub(super) fn received_routes_travel_on_to_a_second_router(cell: &Cell) -> Result<()> {
    let listed = with_communities("10.90.1.0/24", &["65002:100", "65535:65000"]);
    let originated = vec![
        listed.clone(),
        Origination::plain("2001:db8:90::/48"),
        Origination::plain("10.91.0.0/24"),
        Origination::plain("2001:db8:91::/48"),
    ];
    let mut transit = Transit::open(cell, ROUTER_AS, SECOND_AS, originated)?;
    let allowed = vec![Range::up_to("10.90.0.0/16", 24), Range::exact("2001:db8:90::/48")];
    transit.bring_up(Allowed::Filtered(allowed), cell.router.patience())?;
    transit.fairway_has(2, 2)?;
    for (prefix, next_hop) in
        [("10.90.1.0/24", NODE_TO_SECOND[0]), ("2001:db8:90::/48", NODE_TO_SECOND[1])]
    {
        let route = transit.arrives(prefix)?;
        expect_equal("AS path", &route.as_path, &vec![NODE_AS, ROUTER_AS])?;
        expect_next_hop(&route, next_hop).with_context(|| format!("route to {prefix}"))?;
    }
    let route = transit.arrives("10.90.1.0/24")?;
    let kept = ["65002:100", "65535:65000"].map(str::to_owned).into();
    expect_equal("communities", &route.communities, &kept)?;
    transit.has_exactly(Family::Ipv4, &["10.90.1.0/24"])?;
    transit.has_exactly(Family::Ipv6, &["2001:db8:90::/48"])?;

    transit.scene.router.originate(&[Origination::plain("2001:db8:90::/48")])?;
    transit.leaves("10.90.1.0/24")?;
    transit.arrives("2001:db8:90::/48")?;
    transit.scene.router.originate(&[listed, Origination::plain("2001:db8:90::/48")])?;
    transit.arrives("10.90.1.0/24")?;
    transit.scene.router.stop()?;
    transit.leaves("10.90.1.0/24")?;
    transit.leaves("2001:db8:90::/48")?;
    transit.arrives("203.0.113.10/32").map(drop)
}

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65001), both families over
/// IPv4; the second reaches the first one's network by way of the node.
/// Proves: towards an internal router the route is as it was received, AS path, next hop and communities
/// unchanged, and LOCAL_PREF is 100.
//+ RFC 4271 §5.1.2: AS_PATH is changed towards an internal peer.
//+ RFC 4271 §5.1.3: NEXT_HOP is changed towards an internal peer.
//+ RFC 4271 §9.1.1: the preference of an external route is passed on as LOCAL_PREF inside the AS.
pub(super) fn received_routes_keep_their_next_hop_on_the_way_to_an_internal_router(
    cell: &Cell,
) -> Result<()> {
    let originated = vec![
        with_communities("10.90.1.0/24", &["65002:100"]),
        Origination::plain("2001:db8:90::/48"),
    ];
    let mut transit = Transit::open(cell, ROUTER_AS, NODE_AS, originated)?;
    transit.bring_up(Allowed::All, cell.router.patience())?;
    let ipv6_next_hop = cell.router.ipv6_next_hop(&transit.scene.spec);
    for (prefix, next_hop) in
        [("10.90.1.0/24", "10.77.0.2"), ("2001:db8:90::/48", ipv6_next_hop.as_str())]
    {
        let route = transit.arrives(prefix)?;
        expect_equal("AS path", &route.as_path, &vec![ROUTER_AS])?;
        expect_next_hop(&route, next_hop).with_context(|| format!("route to {prefix}"))?;
        expect_equal("LOCAL_PREF", &route.local_preference, &Some(100))?;
    }
    let communities = transit.arrives("10.90.1.0/24")?.communities;
    expect_equal("communities", &communities, &["65002:100".to_owned()].into())
}

/// Topology: router (AS 65001) --- node (AS 65001) --- second router (AS 65003), both families over
/// IPv4; the first marks one of its routes NO_EXPORT, and `toAdvertise` lets everything through.
/// Proves: what an internal router originates leaves the AS with the AS in its path and the node as
/// its next hop, and what is marked NO_EXPORT does not leave it.
//+ RFC 1997 §Well-known Communities: a received route with NO_EXPORT is told outside the AS.
pub(super) fn received_routes_marked_no_export_stay_in_the_as(cell: &Cell) -> Result<()> {
    let originated = vec![
        Origination::plain("10.90.1.0/24"),
        with_communities("10.90.2.0/24", &["65535:65281"]),
        Origination::plain("2001:db8:90::/48"),
        with_communities("2001:db8:91::/48", &["65535:65281"]),
    ];
    let mut transit = Transit::open(cell, NODE_AS, SECOND_AS, originated)?;
    transit.bring_up(Allowed::All, cell.router.patience())?;
    transit.fairway_has(2, 2)?;
    for (prefix, next_hop) in
        [("10.90.1.0/24", NODE_TO_SECOND[0]), ("2001:db8:90::/48", NODE_TO_SECOND[1])]
    {
        let route = transit.arrives(prefix)?;
        expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
        expect_next_hop(&route, next_hop).with_context(|| format!("route to {prefix}"))?;
    }
    transit.has_exactly(Family::Ipv4, &["10.90.1.0/24"])?;
    transit.has_exactly(Family::Ipv6, &["2001:db8:90::/48"])
}

/// Topology: router (AS 65001) --- node (AS 65001) --- second router (AS 65001), and `toAdvertise`
/// lets everything through.
/// Proves: fairway accepts the internal routes, and passes none of them on to the other internal router: it
/// is no route reflector.
//+ RFC 4271 §9.2: a route of an internal peer is told to other internal peers.
pub(super) fn received_routes_of_an_internal_router_reach_no_other_internal_one(
    cell: &Cell,
) -> Result<()> {
    let originated =
        vec![Origination::plain("10.90.1.0/24"), Origination::plain("2001:db8:90::/48")];
    let mut transit = Transit::open(cell, NODE_AS, NODE_AS, originated)?;
    transit.bring_up(Allowed::All, cell.router.patience())?;
    transit.fairway_has(1, 1)?;
    transit.has_exactly(Family::Ipv4, &[])?;
    transit.has_exactly(Family::Ipv6, &[])
}
