//! Which learned routes are in the kernel of the node? `ip route` is the witness. A second router of the same kind, on a
//! cable of its own. Rows of the matrix.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::scene::{Cell, Scene, expect_equal};
use super::transit::Transit;
use lab::process::Process;
use lab::resources::{Advertisement, Allowed, Peer};
use lab::routers::Origination;
use lab::wait::PATIENCE;
use lab::{Family, NODE_INTERFACE, SECOND};

const SECOND_AS: u32 = 65003;
const ONE: &str = "10.90.1.0/24";
const SHARED: &str = "10.90.2.0/24";
const IPV6: &str = "2001:db8:90::/48";
const ROUTER: &str = "10.77.0.2";

/// Routes of ours in the kernel of the node: protocol bgp and our metric.
type Installed = BTreeMap<String, Vec<String>>;

/// A scene with both routers, whose routes are all accepted and installed.
fn open(cell: &Cell) -> Result<(Transit, Peer, Peer)> {
    let transit = Transit::open_with(cell, SECOND_AS, |router| {
        router.families = vec![Family::Ipv4, Family::Ipv6];
        router.originated = [ONE, SHARED, IPV6].map(Origination::plain).to_vec();
    })?;
    let installed = |peer| Peer { to_receive: Some(Allowed::All), install_routes: true, ..peer };
    let (router, second) = (installed(transit.scene.peer()), installed(transit.second_peer()));
    Ok((transit, router, second))
}

fn installed(transit: &Transit) -> Result<Installed> {
    let mut installed = Installed::new();
    for family in ["-4", "-6"] {
        let lines = ["-j", family, "route", "show", "table", "main", "proto", "bgp"];
        let text = transit.scene.lab.node.ip(&lines)?;
        let routes: Vec<Value> = match text.trim() {
            "" => Vec::new(),
            text => serde_json::from_str(text).with_context(|| format!("ip's routes: {text}"))?,
        };
        for route in routes {
            ensure!(route.get("metric").and_then(Value::as_u64) == Some(1790), "it has {route}");
            let prefix = route.get("dst").and_then(Value::as_str).context("no destination")?;
            let several = route.get("nexthops").and_then(Value::as_array);
            let hops = several.map_or_else(|| vec![&route], |hops| hops.iter().collect());
            let address = |hop: &&Value| {
                let text = hop.pointer("/via/host").or(hop.get("gateway"))?.as_str()?;
                Some(text.to_owned())
            };
            let mut hops: Vec<String> = hops.iter().filter_map(address).collect();
            hops.sort();
            installed.insert(prefix.to_owned(), hops);
        }
    }
    Ok(installed)
}

/// What the first router announces, the shared prefix by way of `hops`, and IPv6 by way of `ipv6`. An IPv4-mapped address,
/// GoBGP's, is no next hop that a kernel has.
fn routes(hops: &[&str], ipv6: &str) -> Installed {
    let owned = |hops: &[&str]| hops.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut routes =
        Installed::from([(ONE.to_owned(), owned(&[ROUTER])), (SHARED.to_owned(), owned(hops))]);
    if !ipv6.starts_with("::ffff:") {
        routes.insert(IPV6.to_owned(), owned(&[ipv6]));
    }
    routes
}

fn without_one(routes: &Installed) -> Installed {
    let mut routes = routes.clone();
    routes.remove(ONE);
    routes
}

fn become_these(transit: &mut Transit, what: &str, expected: &Installed) -> Result<()> {
    transit.wait(&format!("the kernel has the routes {what}"), 2 * PATIENCE, |transit| {
        expect_equal("routes in the kernel", &installed(transit)?, expected)
    })
}

/// What the kernel of the node reports about its routes meanwhile.
struct Monitor {
    _process: Process,
    log: PathBuf,
}

impl Monitor {
    fn start(transit: &Transit) -> Result<Self> {
        let log = PathBuf::from(transit.scene.fairway.directory_of("routes.log"));
        let words = ["-4", "monitor", "route"].map(str::to_owned);
        let process = Process::spawn(&transit.scene.lab.node, Path::new("ip"), &words, &log)?;
        Ok(Self { _process: process, log })
    }

    fn end(self) -> Result<String> {
        std::fs::read_to_string(&self.log).context("reading what the kernel reported")
    }
}

/// Topology: as above; both routers announce one prefix, and a rule prepends to the path of the second, which is told all
/// routes.
/// Proves: the route leads to the first router, and to the second at once when the interface of the first goes down, long
/// before its session ends; what only the first announces is withdrawn from the second then, and is said to be
/// inaccessible; and all is back when the interface is up again.
//= RFC 4271 §9.1.2 MUST: a route whose next hop cannot be resolved is not chosen where routes are installed.
pub(super) fn a_route_moves_when_an_interface_goes_down(cell: &Cell) -> Result<()> {
    let (mut transit, router, second) = open(cell)?;
    let longer = Some("- {set: {asPathPrepend: 3}}\n");
    let to_advertise = Some(Allowed::All);
    let second = Peer { receive_rules: longer, to_advertise, ..second };
    transit.join(&router, &second, cell.router.patience())?;
    transit.second.originate(&[Origination::plain(SHARED)])?;
    transit.wait("both paths are learned", PATIENCE, |transit| {
        let routes = transit.scene.fairway.show(&["bgp", "ipv4", "unicast", SHARED])?;
        ensure!(routes.pointer("/paths/1").is_some(), "there is {routes}");
        Ok(())
    })?;
    kernel_leads(&mut transit, SHARED, Some(ROUTER))?;
    transit.arrives(ONE)?;
    transit.scene.lab.node.ip(&["link", "set", NODE_INTERFACE, "down"])?;
    kernel_leads(&mut transit, SHARED, Some(SECOND[0]))?;
    transit.leaves(ONE)?;
    let entry = transit.scene.fairway.show(&["bgp", "ipv4", "unicast", ONE])?;
    expect_equal(
        "accessible",
        &entry.pointer("/paths/0/nexthops/0/accessible"),
        &Some(&false.into()),
    )?;
    let neighbour = transit.scene.fairway.neighbour(ROUTER)?;
    ensure!(neighbour.is_established(), "the session ended before: {}", neighbour.state);
    transit.scene.lab.node.ip(&["link", "set", NODE_INTERFACE, "up"])?;
    kernel_leads(&mut transit, SHARED, Some(ROUTER))?;
    transit.arrives(ONE).map(drop)
}

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003), both families over IPv4; `installRoutes` is on
/// for the first router alone.
/// Proves: its routes are in the kernel, those of the other are not, and they go without the field. So, too, where FRR
/// installs them.
pub(super) fn the_routes_of_one_neighbour_are_installed_alone(cell: &Cell) -> Result<()> {
    const OTHER: &str = "10.90.7.0/24";
    let (mut transit, router, second) = open(cell)?;
    let second = Peer { install_routes: false, ..second };
    transit.join(&router, &second, cell.router.patience())?;
    transit.second.originate(&[Origination::plain(OTHER)])?;
    kernel_leads(&mut transit, ONE, Some(ROUTER))?;
    transit.wait("the route of the second router is learned", PATIENCE, |transit| {
        let routes = transit.scene.fairway.show(&["bgp", "ipv4", "unicast", OTHER])?;
        ensure!(routes.pointer("/paths/0").is_some(), "there is {routes}");
        Ok(())
    })?;
    kernel_leads(&mut transit, OTHER, None)?;
    transit.scene.apply_peer(&Peer { install_routes: false, ..router })?;
    kernel_leads(&mut transit, ONE, None)
}

/// The gateway of the kernel's route of BGP to `prefix`; `None` where there is no such route.
fn kernel_leads(transit: &mut Transit, prefix: &str, gateway: Option<&str>) -> Result<()> {
    transit.wait(&format!("the kernel leads to {prefix} by {gateway:?}"), 2 * PATIENCE, |transit| {
        let words = ["-4", "route", "show", "proto", "bgp", "exact", prefix];
        let text = transit.scene.lab.node.ip(&words)?;
        let mut words = text.split_whitespace().skip_while(|word| *word != "via").skip(1);
        expect_equal("the gateway", &words.next(), &gateway)
    })
}

/// Topology: router --- node, eBGP over IPv4; an advertisement announces an aggregate of each family, with `blackhole: true`.
/// Proves: the kernel of the node drops what nobody takes of them, and nothing of the addresses in use; a static route to one
/// of them stays alone; without the field, and without the advertisement, the routes go.
pub(super) fn what_nobody_takes_of_an_aggregate_is_dropped(cell: &Cell) -> Result<()> {
    const AGGREGATES: [&str; 2] = ["10.20.0.0/16", "2001:db8:20::/48"];
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let prefixes = AGGREGATES.map(str::to_owned);
    let own = Advertisement {
        name: "own",
        prefixes: &prefixes,
        blackhole: true,
        ..Advertisement::default()
    };
    scene.fairway.apply("own", &own.yaml())?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives(AGGREGATES[0])?;
    drops_become(&mut scene, &AGGREGATES)?;
    let theirs = ["route", "add", AGGREGATES[0], "via", ROUTER];
    scene.lab.node.ip(&theirs)?;
    drops_become(&mut scene, &AGGREGATES[1..])?;
    scene.lab.node.ip(&["route", "del", AGGREGATES[0], "via", ROUTER])?;
    drops_become(&mut scene, &AGGREGATES)?;
    scene.fairway.apply("own", &Advertisement { blackhole: false, ..own }.yaml())?;
    drops_become(&mut scene, &[])
}

fn drops_become(scene: &mut Scene, expected: &[&str]) -> Result<()> {
    scene.wait(&format!("the kernel drops packets to {expected:?}"), 2 * PATIENCE, |scene| {
        let mut dropped = Vec::new();
        for family in ["-4", "-6"] {
            let words = [family, "route", "show", "table", "main", "type", "blackhole"];
            let text = scene.lab.node.ip(&words)?;
            let lines = text.lines().filter(|line| line.contains("proto bgp metric 1790"));
            let prefix = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
            dropped.extend(lines.filter_map(prefix));
        }
        expect_equal(
            "blackhole routes",
            &dropped,
            &expected.iter().map(|it| (*it).to_owned()).collect(),
        )
    })
}

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003), both families over IPv4; both announce one
/// prefix, and `installRoutes` is on for both.
/// Proves: the node has their routes in its kernel, the shared one with both next hops; a static route to one of the prefixes
/// stays alone, and ours is back when it goes; a next hop that stops goes, and without `installRoutes` all routes do.
pub(super) fn learned_routes_are_in_the_kernel(cell: &Cell) -> Result<()> {
    let (mut transit, router, second) = open(cell)?;
    transit.join(&router, &second, cell.router.patience())?;
    let ipv6 = cell.router.ipv6_next_hop(&transit.scene.spec);
    let with_shared = |hops| routes(hops, &ipv6);
    become_these(&mut transit, "of the first router", &with_shared(&[ROUTER]))?;
    transit.second.originate(&[Origination::plain(SHARED)])?;
    let shared = with_shared(&[ROUTER, SECOND[0]]);
    become_these(&mut transit, "of both routers", &shared)?;

    let node = |transit: &Transit, verb: &str| {
        let line = ["route", verb, ONE, "via", SECOND[0], "proto", "static"];
        transit.scene.lab.node.ip(&line).map(drop)
    };
    node(&transit, "add")?;
    become_these(&mut transit, "beside a static one", &without_one(&shared))?;
    let all = transit.scene.lab.node.ip(&["route", "show", ONE])?;
    ensure!(all.contains("proto static"), "the static route is gone: {all}");
    node(&transit, "del")?;
    become_these(&mut transit, "of both routers again", &shared)?;

    transit.scene.router.stop()?;
    let of_second = Installed::from([(SHARED.to_owned(), vec![SECOND[0].to_owned()])]);
    become_these(&mut transit, "of the second router", &of_second)?;
    let second = Peer { install_routes: false, ..second };
    transit.scene.fairway.apply("second", &second.yaml())?;
    become_these(&mut transit, "of nobody", &Installed::new())
}

/// Topology: as above.
/// Proves: a fairway that is killed leaves its routes in the kernel; the next one takes over those that are announced still,
/// without a gap, and removes what was withdrawn meanwhile.
//= RFC 4724 §4.1 MUST: routes of our own from before a restart are marked as stale and go after the selection.
pub(super) fn a_killed_fairway_leaves_its_routes_for_the_next_one(cell: &Cell) -> Result<()> {
    let (mut transit, router, second) = open(cell)?;
    transit.join(&router, &second, cell.router.patience())?;
    let ipv6 = cell.router.ipv6_next_hop(&transit.scene.spec);
    let before = routes(&[ROUTER], &ipv6);
    become_these(&mut transit, "of the first router", &before)?;
    transit.scene.fairway.kill()?;
    transit.scene.router.originate(&[SHARED, IPV6].map(Origination::plain))?;
    expect_equal("routes of a killed fairway", &installed(&transit)?.len(), &before.len())?;
    let monitor = Monitor::start(&transit)?;
    transit.scene.fairway.start(&transit.scene.lab.node)?;
    become_these(&mut transit, "that are announced still", &without_one(&before))?;
    let changes = monitor.end()?;
    // `ip` also says what it cannot look up, of links to other namespaces.
    let of_others = |line: &&str| line.contains("proto bgp") && !line.contains(ONE);
    let of_others = changes.lines().filter(of_others).count();
    ensure!(of_others == 0, "the other routes were touched: {changes}");
    Ok(())
}
