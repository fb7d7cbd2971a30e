//! Do the operator's sessions notice Fairway? Their transit has their network and nothing else, and their kernel keeps the
//! transit's routes, while Fairway's files change all the time.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;

use crate::Cell;
use crate::operators::becomes;
use crate::scene::{COMMUNITY, ROUTER, Scene, prefix};
use lab::resources::{Advertisement, Peer};
use lab::routers::{Origination, Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, holds_for, wait_until};
use lab::withdrawals::Withdrawals;
use lab::{Family, NODE_TO_SECOND, SECOND, Site};

const SOME: usize = 10;

const OWN_NETWORK: &str = "203.0.113.0/24";

/// An operator with a transit that would take any route.
const WITH_TRANSIT: &[&str] = &[
    "ip route 203.0.113.0/24 Null0",
    "route-map FROM-TRANSIT permit 10",
    "route-map TO-TRANSIT permit 10",
    "router bgp 65001",
    "bgp router-id 10.77.0.1",
    "neighbor 10.79.0.2 remote-as 65066",
    "address-family ipv4 unicast",
    "network 203.0.113.0/24",
    "neighbor 10.79.0.2 route-map FROM-TRANSIT in",
    "neighbor 10.79.0.2 route-map TO-TRANSIT out",
];

const TRANSIT_ROUTES: usize = 20;

fn is_of_transit(prefix: &str) -> bool {
    prefix.starts_with("100.64.")
}

/// The operator's transit, on a cable of its own. It is dropped before its namespace.
struct Transit {
    router: Box<dyn Router>,
    _site: Site,
}

impl Transit {
    fn start(cell: &Cell, scene: &Scene) -> Result<Self> {
        let site = scene.lab.add_second_router(cell.number)?;
        let ([ipv4, ipv6], [node, _]) = (SECOND, NODE_TO_SECOND);
        let originated = |number| Origination::plain(&format!("100.64.{number}.0/24"));
        let spec = RouterSpec {
            router_id: Ipv4Addr::new(10, 0, 0, 3),
            local_as: 65066,
            originated: (0..TRANSIT_ROUTES).map(originated).collect(),
            ..RouterSpec::between(
                ipv4.parse().context("the transit's address")?,
                ipv6.parse().context("the transit's IPv6 address")?,
                node.parse().context("the node's address")?,
            )
        };
        let mut router = RouterKind::Bird(Release::Bookworm).prepare(&site, &spec)?;
        router.start(&site)?;
        Ok(Self { router, _site: site })
    }

    /// The transit has the operator's network, and no Service.
    fn expect_theirs_alone(&self) -> Result<()> {
        let routes = self.router.prefixes(Family::Ipv4)?;
        let expected = BTreeSet::from([OWN_NETWORK.to_owned()]);
        ensure!(routes == expected, "the transit has {routes:?}");
        Ok(())
    }
}

fn expect_transit_in_kernel(scene: &Scene) -> Result<()> {
    let text = scene.lab.node.ip(&["route", "show"])?;
    let count = text.lines().filter(|line| is_of_transit(line)).count();
    ensure!(count == TRANSIT_ROUTES, "{count} routes of the transit are in\n{text}");
    Ok(())
}

const EDITS: usize = 100;
const SEED: u64 = 7;

/// At least this long after each edit the transit is looked at.
const AFTER_EDIT: Duration = Duration::from_millis(50);

/// Files of more Services that come and go, and the Services in each.
const FILES: usize = 8;
const EACH: usize = 5;

/// Changes of Fairway's files.
struct Edits {
    random: Rng,
    /// Files that are there now and may go.
    files: BTreeSet<String>,
}

impl Edits {
    fn make(&mut self, scene: &Scene) -> Result<()> {
        let towards = Peer::towards(scene.spec());
        match self.random.u8(..6) {
            0 | 1 => {
                let number = self.random.usize(..FILES);
                let first = SOME + number * EACH;
                self.toggle(scene, &file_of(number), |file| scene.apply_services(file, first, EACH))
            }
            2 => advertise(scene, &format!("65001:{}", self.random.u16(1..=3))),
            3 => {
                let address = "10.77.0.99".parse().context("nobody's address")?;
                let nobody = Peer { name: "nobody", address, ..towards }.yaml();
                self.toggle(scene, "nobody", |file| scene.fairway.apply(file, &nobody))
            }
            4 => {
                let text = extras(self.random.u16(1..=3));
                self.toggle(scene, "extras", |file| scene.fairway.apply(file, &text))
            }
            _ => {
                let keepalive = 10 * self.random.u16(1..=3);
                let timers = Some((3 * keepalive, keepalive));
                scene.fairway.apply("peer", &Peer { timers, ..towards }.yaml())
            }
        }
    }

    /// Removes the file, or adds it.
    fn toggle(
        &mut self,
        scene: &Scene,
        file: &str,
        add: impl FnOnce(&str) -> Result<()>,
    ) -> Result<()> {
        if self.files.remove(file) {
            return scene.fairway.remove(file);
        }
        self.files.insert(file.to_owned());
        add(file)
    }

    /// The prefixes of all Services that are there now.
    fn prefixes(&self) -> BTreeSet<String> {
        let there = (0..FILES).filter(|number| self.files.contains(&file_of(*number)));
        let more = there.flat_map(|number| (0..EACH).map(move |it| SOME + number * EACH + it));
        (0..SOME).chain(more).map(prefix).collect()
    }
}

fn file_of(number: usize) -> String {
    format!("more-{number}")
}

fn advertise(scene: &Scene, community: &str) -> Result<()> {
    let advertisement = Advertisement { name: "main", communities: &[community], ..<_>::default() };
    scene.fairway.apply("advertisement", &advertisement.yaml())
}

fn extras(interval: u16) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bgpextras\ndata:\n  extras: |\n    \
         router bgp 65001\n     neighbor {ROUTER} advertisement-interval {interval}\n    exit\n"
    )
}

pub(crate) fn the_operators_sessions_survive_a_hundred_edits(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let transit = Transit::start(cell, &scene)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    scene.speaker.configure(WITH_TRANSIT)?;
    scene.wait("operator and transit have each other's routes", 2 * PATIENCE, |scene| {
        transit.expect_theirs_alone()?;
        expect_transit_in_kernel(scene)
    })?;
    let [neighbor, _] = SECOND;
    let before = scene.speaker.running_configuration()?;
    let session = scene.speaker.connections_established(neighbor)?;
    let log = cell.directory.join("transit.log");
    let mut withdrawals = Withdrawals::of_kernel(&scene.lab.node, &log)?;

    scene.start_fairway()?;
    scene.router_has(SOME)?;
    let mut edits = Edits { random: Rng::with_seed(SEED), files: BTreeSet::new() };
    for number in 1..=EDITS {
        edits.make(&scene)?;
        let is_so = "the transit has the operator's network alone";
        holds_for(is_so, AFTER_EDIT, || transit.expect_theirs_alone())
            .with_context(|| format!("after edit {number}"))?;
        if number % 10 == 0 {
            scene.all_is_in_force()?;
            scene.expect_running(&before)?;
        }
    }
    advertise(&scene, COMMUNITY)?;
    scene.router_has_exactly(&edits.prefixes())?;
    scene.wait("the last edit is in force", PATIENCE, |scene| scene.expect_community(0))?;
    scene.all_is_in_force()?;
    scene.expect_running(&before)?;
    scene.leave_for_good()?;
    becomes(&mut scene, &before)?;

    transit.expect_theirs_alone()?;
    expect_transit_in_kernel(&scene)?;
    let after = scene.speaker.connections_established(neighbor)?;
    ensure!(after == session, "expected session number {session}, it is number {after}");
    let gone = withdrawals.lines(is_of_transit)?;
    ensure!(gone.is_empty(), "{} routes went, the first as {:?}", gone.len(), gone.first());

    // Had one gone, it would have been reported.
    scene.speaker.configure(&["no router bgp 65001"])?;
    wait_until("the kernel reports that all routes of the transit went", PATIENCE, || {
        let count = withdrawals.lines(is_of_transit)?.len();
        ensure!(count == TRANSIT_ROUTES, "it reports {count}");
        Ok(())
    })
}
