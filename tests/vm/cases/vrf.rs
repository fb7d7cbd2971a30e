//! Do sessions stay in their VRF?

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::node::{LIMIT, Node};
use lab::Site;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::resources::{Advertisement, pool, service};
use lab::routers::{Dialling, Origination, Release, Router, RouterKind, RouterSpec};
use lab::wait::wait_until;

/// The same on every cable: that is what VRFs are for.
const NODE: &str = "10.77.0.1";
const ROUTER: &str = "10.77.0.2";

/// A router and where it lives; the router goes first.
struct Far {
    router: Box<dyn Router>,
    site: Site,
}

/// A router at the other end of a cable from `node` that belongs to VRF `vrf`, and announces `prefix`.
fn join(
    number: usize,
    directory: &Path,
    node: &Node,
    vrf: &str,
    kind: RouterKind,
    adjust: impl FnOnce(&mut RouterSpec),
) -> Result<Far> {
    let table = if vrf == "red" { "100" } else { "200" };
    node.namespace.ip(&["link", "add", vrf, "type", "vrf", "table", table])?;
    node.namespace.ip(&["link", "set", vrf, "up"])?;
    let namespace = Namespace::create(number, vrf)?;
    let cable = format!("to-{vrf}");
    node.namespace.connect(&cable, &namespace, "to-node")?;
    node.namespace.ip(&["link", "set", &cable, "master", vrf])?;
    node.namespace.add_address(&cable, &format!("{NODE}/24"))?;
    namespace.add_address("to-node", &format!("{ROUTER}/24"))?;
    let directory = directory.join(vrf);
    make_directory(&directory)?;
    let site = Site { namespace, directory };
    let ipv6 = "fd77::2".parse().context("an address of the lab")?;
    let mut spec = RouterSpec::between(ROUTER.parse()?, ipv6, NODE.parse()?);
    adjust(&mut spec);
    let router = kind.prepare(&site, &spec)?;
    Ok(Far { router, site })
}

fn peer(name: &str, vrf: Option<&str>, passive: bool) -> String {
    let vrf = vrf.map(|vrf| format!("  vrf: {vrf}\n")).unwrap_or_default();
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: {name}\nspec:\n  \
         myASN: 65001\n  peerASN: 65002\n  peerAddress: {ROUTER}\n{vrf}  passive: {passive}\n  \
         toReceive:\n    allowed: {{mode: all}}\n"
    )
}

fn announce(node: &Node) -> Result<()> {
    node.fairway.apply("pool", &pool("main", &["203.0.113.0/24"]))?;
    let advertisement = Advertisement { name: "plain", pools: &["main"], ..<_>::default() };
    node.fairway.apply("advertisement", &advertisement.yaml())?;
    node.fairway.apply("web", &service("web", Some("203.0.113.10")))
}

fn gets_the_service(far: &Far) -> Result<()> {
    wait_until("the router has the route of the Service", LIMIT, || {
        let route = far.router.route("203.0.113.10/32")?.context("it has none")?;
        ensure!(route.usable, "it does not use {route:?}");
        Ok(())
    })
}

/// Topology: node === red (FRR), node === blue (BIRD), each cable in a VRF of its own, the same
/// addresses on both. Fairway dials red and is dialled by blue.
/// Proves: both sessions come up, each router gets the route of the Service, and the routes of both are
/// learned.
pub(super) fn two_with_the_same_addresses(number: usize, directory: &Path) -> Result<()> {
    let mut node = Node::prepare(number, "node", directory)?;
    let frr = RouterKind::Frr(Release::Bookworm);
    let mut red = join(number, directory, &node, "red", frr, |spec| {
        spec.originated = vec![Origination::plain("198.51.100.0/24")];
    })?;
    let bird = RouterKind::Bird(Release::Bookworm);
    let mut blue = join(number, directory, &node, "blue", bird, |spec| {
        spec.dialling = Dialling::Dials;
        spec.originated = vec![Origination::plain("192.0.2.0/24")];
    })?;
    node.fairway.apply("red", &peer("red", Some("red"), false))?;
    node.fairway.apply("blue", &peer("blue", Some("blue"), true))?;
    announce(&node)?;
    for far in [&mut red, &mut blue] {
        far.router.start(&far.site)?;
    }
    node.start()?;
    for vrf in ["red", "blue"] {
        node.established(&format!("{ROUTER} vrf {vrf}"))?;
    }
    gets_the_service(&red)?;
    gets_the_service(&blue)?;
    node.learns(&["198.51.100.0/24", "192.0.2.0/24"])
}

/// Topology: node === blue (BIRD, which dials), the cable in a VRF.
/// Proves: a peer of the same address without `vrf` gets no session, and gets one as soon as it has the
/// VRF.
pub(super) fn the_main_table_is_another(number: usize, directory: &Path) -> Result<()> {
    let mut node = Node::prepare(number, "node", directory)?;
    let bird = RouterKind::Bird(Release::Bookworm);
    let mut blue = join(number, directory, &node, "blue", bird, |spec| {
        spec.dialling = Dialling::Dials;
    })?;
    node.fairway.apply("blue", &peer("blue", None, false))?;
    announce(&node)?;
    blue.router.start(&blue.site)?;
    node.start()?;
    node.expect_no_session(ROUTER)?;
    node.fairway.apply("blue", &peer("blue", Some("blue"), false))?;
    node.established(&format!("{ROUTER} vrf blue"))?;
    gets_the_service(&blue)
}

/// Topology: node === red (FRR), node === blue (BIRD), as above; both announce the same prefix. `installRoutes` is on for
/// both, and an aggregate is announced with `blackhole: true`.
/// Proves: the table of each VRF has the route by way of its own router, and drops what nobody takes of the aggregate; the
/// main table has neither. When one router stops, its route goes and the other stays.
pub(super) fn routes_are_in_the_table_of_their_vrf(number: usize, directory: &Path) -> Result<()> {
    const LEARNED: &str = "198.51.100.0/24";
    const DROPPED: &str = "blackhole 10.20.0.0/16";
    let mut node = Node::prepare(number, "node", directory)?;
    let originates = |spec: &mut RouterSpec| spec.originated = vec![Origination::plain(LEARNED)];
    let frr = RouterKind::Frr(Release::Bookworm);
    let mut red = join(number, directory, &node, "red", frr, originates)?;
    let bird = RouterKind::Bird(Release::Bookworm);
    let mut blue = join(number, directory, &node, "blue", bird, originates)?;
    for vrf in ["red", "blue"] {
        let installed = peer(vrf, Some(vrf), false) + "  installRoutes: true\n";
        node.fairway.apply(vrf, &installed)?;
    }
    let prefixes = ["10.20.0.0/16".to_owned()];
    let own = Advertisement { name: "own", prefixes: &prefixes, blackhole: true, ..<_>::default() };
    node.fairway.apply("own", &own.yaml())?;
    for far in [&mut red, &mut blue] {
        far.router.start(&far.site)?;
    }
    node.start()?;
    for vrf in ["red", "blue"] {
        let learned = format!("{LEARNED} via {ROUTER} dev to-{vrf}");
        has_routes(&node, &["vrf", vrf], &[DROPPED, &learned])?;
    }
    has_routes(&node, &["table", "main"], &[])?;
    drop(blue.router);
    has_routes(&node, &["vrf", "blue"], &[DROPPED])?;
    let learned = format!("{LEARNED} via {ROUTER} dev to-red");
    has_routes(&node, &["vrf", "red"], &[DROPPED, &learned])
}

/// The routes of ours in a table begin with these words, in their order.
fn has_routes(node: &Node, table: &[&str], expected: &[&str]) -> Result<()> {
    wait_until(&format!("{table:?} has the routes {expected:?}"), LIMIT, || {
        let words = [&["-4", "route", "show"], table, &["proto", "bgp"]].concat();
        let text = node.namespace.ip(&words)?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_as = |(line, expected): (&&str, &&str)| line.starts_with(expected);
        let is_same = lines.len() == expected.len() && lines.iter().zip(expected).all(is_as);
        ensure!(is_same, "it has {lines:?}");
        Ok(())
    })
}

/// Topology: node === red (FRR), the cable in a VRF; the BGPPeer has `autoDiscovery`, and VRF red gets a default route.
/// Proves: the default gateway of the VRF is the peer, and that of the main table is not.
pub(super) fn the_default_gateway_is_the_peer(number: usize, directory: &Path) -> Result<()> {
    let mut node = Node::prepare(number, "node", directory)?;
    let frr = RouterKind::Frr(Release::Bookworm);
    let mut red = join(number, directory, &node, "red", frr, |_| {})?;
    let found = peer("red", Some("red"), false).replace(
        &format!("peerAddress: {ROUTER}"),
        "autoDiscovery: {mode: DefaultGateway, addressFamily: ipv4}",
    );
    node.fairway.apply("red", &found)?;
    announce(&node)?;
    red.router.start(&red.site)?;
    node.start()?;
    let route = ["route", "add", "default", "via", ROUTER];
    node.namespace.ip(&[&route[..], &["vrf", "red"]].concat())?;
    node.established(&format!("{ROUTER} vrf red"))?;
    gets_the_service(&red)
}
