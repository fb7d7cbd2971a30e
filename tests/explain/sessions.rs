//! Sessions that do not come up, or do not stay.

use std::net::TcpListener;

use anyhow::{Context, Result, ensure};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};
use serde_json::Value;

use crate::scene::{PEER, Router, Scene, peer};

const HEALTHY: Router = Router::HEALTHY;

/// The two sides before and after what is wrong has been mended.
struct Pair {
    name: &'static str,
    router: Router,
    /// In the spec of the BGPPeer: this part, in place of that.
    change: (&'static str, &'static str),
    /// The word and a part of the first line.
    cause: (&'static str, &'static str),
    mended_router: Router,
    mended_change: (&'static str, &'static str),
}

/// A pair of which the healthy side is the plain one.
const fn pair(
    name: &'static str,
    router: Router,
    change: (&'static str, &'static str),
    cause: (&'static str, &'static str),
) -> Pair {
    Pair { name, router, change, cause, mended_router: HEALTHY, mended_change: ("", "") }
}

const SIGNED: Router = Router { more: "password \"one\";", ..HEALTHY };
const PASSWORD: (&str, &str) = ("connectTime", "password: one, connectTime");

const PAIRS: [Pair; 10] = [
    Pair {
        mended_router: SIGNED,
        mended_change: PASSWORD,
        ..pair(
            "another password",
            Router { more: "password \"two\";", ..HEALTHY },
            PASSWORD,
            ("password", "another TCP-MD5 password"),
        )
    },
    Pair {
        mended_router: SIGNED,
        mended_change: PASSWORD,
        ..pair(
            "a router without the password",
            HEALTHY,
            PASSWORD,
            ("password", "sends without a TCP-MD5 signature"),
        )
    },
    Pair {
        mended_router: SIGNED,
        mended_change: PASSWORD,
        ..pair(
            "a password that only the router has",
            SIGNED,
            ("", ""),
            ("password", "signs with a TCP-MD5 password"),
        )
    },
    pair(
        "another AS of the router",
        HEALTHY,
        ("peerASN: 65010", "peerASN: 65011"),
        ("remoteAs", "another AS than its BGPPeer says (AS 65011)"),
    ),
    pair(
        "another AS of ours",
        Router { node_asn: 65009, ..HEALTHY },
        ("", ""),
        ("localAs", "refuses our AS 65001"),
    ),
    pair(
        "a router that expects somebody else",
        Router { node: "10.0.0.9", ..HEALTHY },
        ("", ""),
        ("closed", "each connection without a reason, so it does not expect this node"),
    ),
    pair(
        "too many prefixes",
        HEALTHY,
        ("mode: all}", "mode: all}, maxPrefixes: {limit: 1}"),
        ("maximumPrefixes", "announces more than is accepted from it"),
    ),
    pair(
        "a shutdown here",
        HEALTHY,
        ("connectTime", "shutdown: {message: moving racks}, connectTime"),
        ("shutdown", "is shut down by its BGPPeer: moving racks"),
    ),
    pair(
        "an address that nobody has",
        HEALTHY,
        ("10.0.0.2", "10.0.0.77"),
        ("unreachable", "does not answer at its address"),
    ),
    pair(
        "a network without a route",
        HEALTHY,
        ("peerAddress: 10.0.0.2", "peerAddress: 192.0.2.77"),
        ("noRoute", "to which this node has no route"),
    ),
];

/// The BGPPeer with a part of it replaced.
fn changed((part, by): (&str, &str)) -> String {
    if part.is_empty() { peer(PEER) } else { peer(&PEER.replacen(part, by, 1)) }
}

/// A story of its own.
type Story = fn(&Cell) -> Result<()>;

pub(crate) fn add_to(suite: &mut Suite) {
    for pair in &PAIRS {
        suite.add(Case::new(pair.name, move |cell| play(pair, cell)));
    }
    let stories: [(&str, Story); 12] = [
        ("a port where nobody listens", nobody_listens),
        ("a filter on the way", a_filter),
        ("a router behind another one", behind_another),
        ("a shutdown by the router's operator", shut_down_there),
        ("a neighbor that falls silent", falls_silent),
        ("two sides that wait for each other", both_passive),
        ("the same identifier on both sides", same_identifier),
        ("a filter and another AS", two_faults),
        ("BFD that goes down", bfd_goes_down),
        ("a port that another program has", port_taken),
        ("a next hop on no shared network", foreign_next_hop),
        ("a link on the way with a smaller MTU", small_mtu),
    ];
    for (name, play) in stories {
        suite.add(Case::new(name, play));
    }
}

fn play(pair: &Pair, cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(pair.router)?;
    scene.start(&changed(pair.change))?;
    scene.wait_for_cause(pair.cause.0, pair.cause.1)?;
    scene.route(pair.mended_router)?;
    scene.fairway.apply("lab", &changed(pair.mended_change))?;
    scene.wait_for_session()
}

fn nobody_listens(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.start(&peer(PEER))?;
    scene.wait_for_cause("refused", "refuses TCP port 179")?;
    scene.route(HEALTHY)?;
    scene.wait_for_session()
}

fn a_filter(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(HEALTHY)?;
    Scene::filter(&scene.router)?;
    scene.start(&peer(PEER))?;
    scene.wait_for_cause("silent", "does not answer SYNs: a filter drops them")?;
    Scene::hear(&scene.router)?;
    scene.wait_for_session()
}

fn behind_another(cell: &Cell) -> Result<()> {
    let mut scene = Scene::far(cell)?;
    scene.route(Router { more: "multihop;", ..HEALTHY })?;
    let far = |more: &str| peer(&format!("{}{more}", PEER.replace("10.0.0.2", "10.9.0.2")));
    scene.start(&far(""))?;
    // The router between the two says that the packets have come too far.
    scene.wait_for_cause("ttl", "no route to host")?;
    scene.fairway.apply("lab", &far(", ebgpMultiHop: true"))?;
    scene.wait_for_session()
}

fn shut_down_there(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(HEALTHY)?;
    scene.start(&peer(PEER))?;
    scene.wait_for_session()?;
    scene.birdc(&["disable", "node", "\"planned work\""])?;
    scene.wait_for_cause("shutdownThere", "was shut down by its operator: \"planned work\"")?;
    scene.birdc(&["enable", "node"])?;
    scene.wait_for_session()
}

fn falls_silent(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(HEALTHY)?;
    scene.start(&peer(PEER))?;
    scene.wait_for_session()?;
    Scene::filter(&scene.node)?;
    scene.wait_for_cause("holdTimer", "was not heard for the hold time")?;
    Scene::hear(&scene.node)?;
    scene.wait_for_session()
}

fn both_passive(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(Router { more: "passive;", ..HEALTHY })?;
    scene.start(&peer(&format!("{PEER}, passive: true")))?;
    scene.wait_for_cause("passive", "is passive: the router has to connect")?;
    scene.route(HEALTHY)?;
    scene.wait_for_session()
}

fn same_identifier(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    let internal = Router { asn: 65001, ..HEALTHY };
    scene.route(Router { id: "10.0.0.1", ..internal })?;
    scene.start(&changed(("peerASN: 65010", "peerASN: 65001")))?;
    scene.wait_for_cause("routerId", "BGP identifier")?;
    scene.route(internal)?;
    scene.wait_for_session()
}

/// The one that is met first hides the other.
fn two_faults(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(HEALTHY)?;
    Scene::filter(&scene.router)?;
    scene.start(&changed(("peerASN: 65010", "peerASN: 65011")))?;
    scene.wait_for_cause("silent", "does not answer SYNs")?;
    Scene::hear(&scene.router)?;
    scene.wait_for_cause("remoteAs", "another AS than its BGPPeer says")?;
    scene.fairway.apply("lab", &peer(PEER))?;
    scene.wait_for_session()
}

/// The session was up, and the packets of BFD stop; those of BGP pass.
fn bfd_goes_down(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(Router { more: "bfd;", ..HEALTHY })?;
    let profile = "apiVersion: metallb.io/v1beta1\nkind: BFDProfile\nmetadata: {name: quick}\n\
                   spec: {receiveInterval: 100, transmitInterval: 100, detectMultiplier: 3}\n---\n";
    scene.start(&format!("{profile}{}", peer(&format!("{PEER}, bfdProfile: quick"))))?;
    scene.wait_for_session()?;
    wait_until("BFD is up on both sides", PATIENCE, || {
        let shown = scene.birdc(&["show", "bfd", "sessions"])?;
        ensure!(shown.contains(" Up "), "{shown}");
        Ok(())
    })?;
    Scene::filter_bfd(&scene.node)?;
    scene.wait_for_cause("bfd", "has a session, but BFD")?;
    Scene::hear(&scene.node)?;
    scene.wait_for_session()
}

/// Nobody can connect to this node, and it does not connect either.
fn port_taken(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    let taken = scene.node.enter(|| {
        let at = |address: &str| TcpListener::bind(address).context("port 179 of the node");
        Ok([at("0.0.0.0:179")?, at("[::1]:179")?])
    })?;
    scene.route(HEALTHY)?;
    scene.start(&peer(&format!("{PEER}, passive: true")))?;
    scene
        .wait_for_cause("notAccepted", "cannot connect to this node: this node does not listen")?;
    drop(taken);
    scene.wait_for_session()
}

/// The routers on the way do not say that packets are too large for them: a filter drops ICMP.
fn small_mtu(cell: &Cell) -> Result<()> {
    let mut scene = Scene::far(cell)?;
    scene.route(Router { more: "multihop;", ..HEALTHY })?;
    let between = scene.between.as_ref().context("a router between the two")?;
    between.ip(&["link", "set", "eth1", "mtu", "1000"])?;
    let rules = "add table ip silence; add chain ip silence output { type filter hook output priority 0; }; \
                 add rule ip silence output icmp type destination-unreachable drop";
    between.run("nft", &[rules])?;
    let peer = peer(&format!("{}, ebgpMultiHop: true", PEER.replace("10.0.0.2", "10.9.0.2")));
    scene.start(&peer)?;
    scene.wait_for_session()?;
    // More than one packet.
    scene.fairway.apply("lab", &format!("{peer}---\n{}", many_services(900)))?;
    scene.wait_for_cause("mtu", "the MTU of the path is too small")?;
    let explained = scene.explained(&["service", "web-7"])?;
    ensure!(
        explained.to_string().contains("but peer tor has a session, but segments of"),
        "{explained}"
    );
    let between = scene.between.as_ref().context("a router between the two")?;
    between.ip(&["link", "set", "eth1", "mtu", "1500"])?;
    scene.wait_for_session()
}

/// So many Services, each with a route.
fn many_services(count: usize) -> String {
    let service = |number| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: web-{number}}}\nspec: {{type: LoadBalancer, \
             ports: [{{port: 80}}]}}\n"
        )
    };
    let services: String = (0..count).map(service).collect();
    format!(
        "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: main}}\nspec: {{addresses: \
         [203.0.112.0/22]}}\n---\napiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {{name: all}}\n\
         spec: {{}}\n{services}"
    )
}

/// A route whose next hop is elsewhere is refused, and its explanation says so.
fn foreign_next_hop(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    let foreign = "filter { bgp_next_hop = 192.0.2.77; accept; }";
    scene.route(Router { export: foreign, ..HEALTHY })?;
    scene.start(&peer(PEER))?;
    scene.wait_for_session()?;
    let verdict_has = |scene: &Scene, phrase: &str| {
        wait_until(&format!("the first line has {phrase:?}"), PATIENCE, || {
            let explained = scene.explained(&["prefix", "198.51.100.0/24"])?;
            let verdict = explained.get("verdict").and_then(Value::as_str).unwrap_or_default();
            ensure!(verdict.contains(phrase), "{explained}");
            Ok(())
        })
    };
    verdict_has(
        &scene,
        "was received from 10.0.0.2 and refused: the next hop is not on a network",
    )?;
    scene.route(HEALTHY)?;
    scene.wait_for_session()?;
    verdict_has(&scene, "it was received")
}
