//! What do all stories have in common? FRR and Fairway on a node, a router beside it that installs what it
//! receives in its kernel, some Services, and waits for what either side reports. Used by every story.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::resources::{Advertisement, Peer, pool, service};
use lab::routers::{Dialling, GracefulRestart, Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::withdrawals::Withdrawals;
use lab::{Family, Lab, NODE_IPV4, Wiring};

/// The router, as FRR and Fairway know it.
pub(crate) const ROUTER: &str = "10.77.0.2";

/// The attributes of every route.
pub(crate) const COMMUNITY: &str = "65001:7";

const POOL: &str = "198.18.0.0/16";

/// The node and its router. Parts are dropped in this order: daemons before their namespaces.
pub(crate) struct Scene {
    pub(crate) fairway: Fairway,
    pub(crate) speaker: Speaker,
    pub(crate) router: Box<dyn Router>,
    spec: RouterSpec,
    pub(crate) lab: Lab,
}

impl Scene {
    /// Builds it; nothing runs yet but the router, which is BIRD.
    pub(crate) fn open(cell: &Cell) -> Result<Self> {
        Self::open_beside(cell, RouterKind::Bird(Release::Bookworm), None)
    }

    /// The same with this router, which keeps routes over restarts of its neighbour in this way.
    pub(crate) fn open_beside(
        cell: &Cell,
        router: RouterKind,
        graceful_restart: Option<GracefulRestart>,
    ) -> Result<Self> {
        Self::build(cell, Wiring::Direct, router, graceful_restart)
    }

    /// With BIRD at the other end of these wires, over several hops if there are.
    pub(crate) fn open_wired(cell: &Cell, wiring: Wiring) -> Result<Self> {
        Self::build(cell, wiring, RouterKind::Bird(Release::Bookworm), None)
    }

    fn build(
        cell: &Cell,
        wiring: Wiring,
        router: RouterKind,
        graceful_restart: Option<GracefulRestart>,
    ) -> Result<Self> {
        let lab = Lab::build(cell.number, &cell.directory, wiring)?;
        let ipv6 = wiring.router_address(Family::Ipv6)?.to_string();
        let spec = RouterSpec {
            dialling: if wiring == Wiring::Direct { Dialling::Dials } else { Dialling::Waits },
            multihop: wiring != Wiring::Direct,
            graceful_restart,
            ..RouterSpec::between(
                wiring.router_address(Family::Ipv4)?,
                ipv6.parse().context("the router's IPv6 address")?,
                NODE_IPV4.parse().context("the node's address")?,
            )
        };
        // Not in the directory of FRR, which it would share.
        let mut router = router.prepare(&lab.router, &spec)?;
        router.start(&lab.router)?;
        let speaker = Speaker::prepare(cell.release, &cell.directory.join("node"))?;
        let fairway = Fairway::prepare(&lab)?;
        let scene = Self { fairway, speaker, router, spec, lab };
        scene.fairway.apply("peer", &Peer::towards(&scene.spec).yaml())?;
        scene.fairway.apply("pool", &pool("main", &[POOL]))?;
        let advertisement =
            Advertisement { name: "main", communities: &[COMMUNITY], ..<_>::default() };
        scene.fairway.apply("advertisement", &advertisement.yaml())?;
        Ok(scene)
    }

    /// Everything runs, and the router has this many Services.
    pub(crate) fn with_services(cell: &Cell, services: usize) -> Result<Self> {
        let mut scene = Self::open(cell)?;
        scene.apply_services("web", 0, services)?;
        scene.start_speaker()?;
        scene.start_fairway()?;
        scene.router_has(services)?;
        Ok(scene)
    }

    /// Services with the addresses `first`.. of the pool, all in one file.
    pub(crate) fn apply_services(&self, file: &str, first: usize, count: usize) -> Result<()> {
        let services = (first..first + count)
            .map(|number| service(&format!("service-{number}"), Some(&address(number))) + "---\n");
        self.fairway.apply(file, &services.collect::<String>())
    }

    pub(crate) fn start_speaker(&mut self) -> Result<()> {
        self.speaker.start(&self.lab.node)
    }

    /// All daemons, one after another.
    pub(crate) fn restart_speaker(&mut self) -> Result<()> {
        self.speaker.stop()?;
        self.start_speaker()
    }

    pub(crate) fn restart_daemon(&mut self, name: &'static str) -> Result<()> {
        self.speaker.start_daemon(&self.lab.node, name)
    }

    /// Fairway with FRR as its speaker.
    pub(crate) fn start_fairway(&mut self) -> Result<()> {
        let folder = self.speaker.directory().display().to_string();
        let words = ["--bgp", "frr", "--frr-socket-dir", &folder];
        self.fairway.extra_arguments = words.map(str::to_owned).to_vec();
        self.fairway.start(&self.lab.node)
    }

    /// Fairway with its own sessions.
    pub(crate) fn start_native(&mut self) -> Result<()> {
        self.fairway.extra_arguments.clear();
        self.fairway.start(&self.lab.node)
    }

    /// Polls until it is so; fails at once when a program has ended.
    pub(crate) fn wait<T>(
        &mut self,
        expected: &str,
        limit: Duration,
        mut look: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        wait_until(expected, limit, || {
            self.fairway.check_running()?;
            self.speaker.check_running()?;
            self.router.check_running()?;
            look(self)
        })
    }

    /// Waits until the router has the routes to the first `count` Services and no others.
    pub(crate) fn router_has(&mut self, count: usize) -> Result<()> {
        self.router_has_exactly(&(0..count).map(prefix).collect())
    }

    pub(crate) fn router_has_exactly(&mut self, expected: &BTreeSet<String>) -> Result<()> {
        let count = expected.len();
        self.wait(&format!("the router has {count} routes"), 2 * PATIENCE, |scene| {
            scene.expect_routes(expected)
        })
    }

    pub(crate) fn expect_routes(&self, expected: &BTreeSet<String>) -> Result<()> {
        let routes = self.router.prefixes(Family::Ipv4)?;
        let missing = expected.difference(&routes).count();
        let other = routes.difference(expected).count();
        ensure!(missing == 0 && other == 0, "{missing} are missing, {other} are too many");
        Ok(())
    }

    /// Waits until the router has this one, beside any others.
    pub(crate) fn router_gets(&mut self, number: usize) -> Result<()> {
        let expected = prefix(number);
        self.wait(&format!("the router has {expected}"), PATIENCE, |scene| {
            ensure!(scene.router.prefixes(Family::Ipv4)?.contains(&expected), "not yet");
            Ok(())
        })
    }

    /// The route to a Service is as the advertisement wants it.
    pub(crate) fn expect_community(&self, number: usize) -> Result<()> {
        let prefix = prefix(number);
        let route = self.router.route(&prefix)?.with_context(|| format!("no {prefix}"))?;
        let is_there = route.communities.contains(COMMUNITY);
        ensure!(is_there, "expected {COMMUNITY} on {prefix}: {route:?}");
        Ok(())
    }

    /// What Fairway answers at this path.
    pub(crate) fn http(&self, path: &str) -> Result<String> {
        self.lab.node.run("curl", &["-sS", &format!("http://127.0.0.1:7472/{path}")])
    }

    /// Waits until `show config` has all of these words, in one line.
    pub(crate) fn fault_is_shown(&mut self, words: &[&str], limit: Duration) -> Result<()> {
        self.wait(&format!("show config has a line with {words:?}"), limit, |scene| {
            let text = scene.fairway.show_text(&["config"])?;
            let has_all = |line: &str| words.iter().all(|word| line.contains(word));
            ensure!(text.lines().any(has_all), "it says:\n{text}");
            Ok(())
        })
    }

    /// Waits until everything is in force.
    pub(crate) fn all_is_in_force(&mut self) -> Result<()> {
        self.wait("show config says that all is in force", 2 * PATIENCE, |scene| {
            let text = scene.fairway.show_text(&["config"])?;
            ensure!(text.contains("Not in force: none"), "it says:\n{text}");
            Ok(())
        })
    }

    pub(crate) fn spec(&self) -> &RouterSpec {
        &self.spec
    }

    /// The same, where ours are in a view.
    pub(crate) fn session_of_view(&self) -> Result<u64> {
        let text =
            self.speaker.vtysh(&[&format!("show bgp view fairway neighbors {ROUTER} json")])?;
        let answer: serde_json::Value = serde_json::from_str(&text).context("FRR's JSON")?;
        let count = answer.pointer(&format!("/{ROUTER}/connectionsEstablished"));
        count.and_then(serde_json::Value::as_u64).with_context(|| format!("{answer}"))
    }

    /// Which session of FRR's with the router this is: the first, the second.
    pub(crate) fn session(&self) -> Result<u64> {
        self.speaker.connections_established(ROUTER)
    }

    /// The session is the same as it was.
    pub(crate) fn expect_same_session(&self, before: u64) -> Result<()> {
        let (session, after) = (self.router.session()?, self.session()?);
        ensure!(session.established, "there is no session: {session:?}");
        ensure!(after == before, "expected session number {before}, it is number {after}");
        Ok(())
    }

    /// Reports each route that goes at the router, if only for an instant.
    pub(crate) fn watch(&self) -> Result<Withdrawals> {
        let log = self.lab.directory.join("withdrawals.log");
        Withdrawals::of_kernel(&self.lab.router.namespace, &log)
    }
}

/// Nothing went of what Services have.
pub(crate) fn expect_none_gone(withdrawals: &mut Withdrawals) -> Result<()> {
    let gone = withdrawals.lines(|prefix| prefix.starts_with("198.18."))?;
    ensure!(gone.is_empty(), "{} routes went, the first as {:?}", gone.len(), gone.first());
    Ok(())
}

/// The address of a Service, from the pool.
pub(crate) fn address(number: usize) -> String {
    format!("198.18.{}.{}", number / 250, number % 250 + 1)
}

pub(crate) fn prefix(number: usize) -> String {
    address(number) + "/32"
}
