//! What does one router see while the node restarts? Its tables, on request; every change that takes a route
//! away, as its kernel or GoBGP reports it all the time; and the answers to its probes. Used by the stage.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result};

use crate::announced;
use lab::namespace::Namespace;
use lab::probe::{Prober, Tally};
use lab::resources::Peer;
use lab::routers::{
    Dialling, GracefulRestart, Release, Router, RouterKind, RouterRoute, RouterSpec, Session,
};
use lab::withdrawals::{Withdrawals, with_length};
use lab::{Family, Site, make_directory};

/// The routers that help, all at once.
pub(crate) const KINDS: [RouterKind; 4] = [
    RouterKind::Frr(Release::Bookworm),
    RouterKind::Frr(Release::Trixie),
    RouterKind::Bird(Release::Bookworm),
    RouterKind::Gobgp,
];

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

const PASSWORD: &str = "bound-to-one-another";
const RESTART_SECONDS: u16 = 120;
const NODE_AS: u32 = 65001;
const INTERFACE: &str = "to-node";

/// How much the helpers do for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// Nothing: graceful restart is off at both ends.
    None,
    /// When the connection goes without a NOTIFICATION.
    Silent,
    /// After a NOTIFICATION, too: the N bit.
    Always,
}

/// A router in a namespace of its own, on a cable of its own to the node.
pub(crate) struct Helper {
    pub(crate) kind: RouterKind,
    pub(crate) help: Help,
    pub(crate) spec: RouterSpec,
    withdrawals: Option<Withdrawals>,
    prober: Option<Prober>,
    router: Box<dyn Router>,
    site: Site,
}

/// What a router has at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) session: Session,
    /// Each prefix of the node, and whether it is stale.
    pub(crate) kept: BTreeMap<String, bool>,
    /// The routes of the kernel, as `ip` prints them; GoBGP has none.
    pub(crate) kernel: BTreeSet<String>,
}

impl Sample {
    pub(crate) fn stale(&self) -> usize {
        self.kept.values().filter(|stale| **stale).count()
    }
}

impl Helper {
    /// Lays the cable and starts the router; `number` tells it apart from the others.
    pub(crate) fn start(
        node: &Namespace,
        number: u8,
        kind: RouterKind,
        help: Help,
        directory: &Path,
    ) -> Result<Self> {
        let namespace = Namespace::create(0, kind.word())?;
        let cable = format!("to-{}", kind.word());
        node.connect(&cable, &namespace, INTERFACE)?;
        let end = |host: u8| [format!("10.81.{number}.{host}"), format!("fd81:{number}::{host}")];
        let ([node_ipv4, node_ipv6], [ipv4, ipv6]) = (end(1), end(2));
        for (place, interface, addresses) in [
            (node, cable.as_str(), [&node_ipv4, &node_ipv6]),
            (&namespace, INTERFACE, [&ipv4, &ipv6]),
        ] {
            for (address, length) in addresses.into_iter().zip(["24", "64"]) {
                place.add_address(interface, &format!("{address}/{length}"))?;
            }
        }
        let spec = RouterSpec {
            router_id: [10, 0, 0, number + 1].into(),
            local_as: 65001 + u32::from(number),
            peer_as: NODE_AS,
            families: FAMILIES.to_vec(),
            password: Some(PASSWORD.to_owned()),
            dialling: Dialling::Dials,
            graceful_restart: (help != Help::None).then_some(GracefulRestart {
                restart_seconds: RESTART_SECONDS,
                notifications: help == Help::Always,
                long_lived_seconds: None,
            }),
            ..RouterSpec::between(ipv4.parse()?, ipv6.parse()?, node_ipv4.parse()?)
        };
        let directory = directory.join(kind.word());
        make_directory(&directory)?;
        let site = Site { namespace, directory };
        let mut router = kind.prepare(&site, &spec)?;
        router.start(&site)?;
        Ok(Self { kind, help, spec, withdrawals: None, prober: None, router, site })
    }

    /// The node's other end of the session.
    pub(crate) fn peer(&self) -> String {
        Peer { name: self.kind.word(), ..Peer::towards(&self.spec) }.yaml()
    }

    /// Whether routes reach a kernel.
    pub(crate) fn forwards(&self) -> bool {
        self.kind != RouterKind::Gobgp
    }

    /// Begins to watch for routes that go, and to probe.
    pub(crate) fn watch(&mut self, targets: &[IpAddr]) -> Result<()> {
        let place = &self.site.namespace;
        let file = |name| self.site.directory.join(name);
        let log = file("withdrawals.log");
        if self.forwards() {
            self.withdrawals = Some(Withdrawals::of_kernel(place, &log)?);
            let (report, log) = (file("probes.json"), file("probes.log"));
            self.prober = Some(Prober::start(place, targets, &report, &log)?);
        } else {
            self.withdrawals = Some(Withdrawals::of_gobgp(place, &log)?);
        }
        Ok(())
    }

    /// The lines that report a route of the node that went, since the start.
    pub(crate) fn withdrawals(&mut self, announced: &BTreeSet<String>) -> Result<Vec<String>> {
        let withdrawals = self.withdrawals.as_mut().context("the watch has not started yet")?;
        withdrawals.lines(|prefix| announced.contains(prefix))
    }

    /// None of them where nothing is forwarded.
    pub(crate) fn tallies(&mut self) -> Result<Vec<Tally>> {
        self.prober.as_mut().map_or(Ok(Vec::new()), Prober::tallies)
    }

    pub(crate) fn session(&mut self) -> Result<Session> {
        self.router.check_running()?;
        self.router.session()
    }

    pub(crate) fn sample(&mut self) -> Result<Sample> {
        let session = self.session()?;
        let mut kept = BTreeMap::new();
        let mut kernel = BTreeSet::new();
        for family in FAMILIES {
            kept.extend(self.router.kept(family)?);
            if self.forwards() {
                let option = if family == Family::Ipv6 { "-6" } else { "-4" };
                let text = self.site.namespace.ip(&[option, "route", "show"])?;
                kernel.extend(text.lines().map(plain));
            }
        }
        Ok(Sample { session, kept, kernel })
    }

    pub(crate) fn has_end_of_rib(&self) -> Result<bool> {
        FAMILIES
            .iter()
            .try_fold(true, |all, family| Ok(all && self.router.has_end_of_rib(*family)?))
    }

    /// All that is shown of a route, for those that are probed.
    pub(crate) fn routes(&self) -> Result<Vec<Option<RouterRoute>>> {
        let prefixes = announced::PROBED.map(with_length);
        prefixes.iter().map(|prefix| self.router.route(prefix)).collect()
    }
}

/// A route without the number of its next hop, which FRR changes each time.
fn plain(line: &str) -> String {
    let mut words = line.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "nhid" {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}
