//! Does TCP-AO keep out peers without the key, and do its keys change without an effect on the session?

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::node::{LIMIT, Node};
use lab::Site;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::resources::{Advertisement, pool, service};
use lab::routers::{AoKey, Dialling, Release, RouterKind, RouterSpec};
use lab::wait::{holds_for, wait_until};

const ROUTE: &str = "203.0.113.10/32";

/// Long enough for a few keepalives under the new keys, of which there is one each second.
const CALM: Duration = Duration::from_secs(8);

const OLD: AoKey = AoKey { send_id: 1, recv_id: 11, algorithm: "hmac-sha-1-96", secret: "Old-7" };
const NEW: AoKey = AoKey { send_id: 2, recv_id: 12, algorithm: "aes-128-cmac-96", secret: "New-7" };
const LAST: AoKey =
    AoKey { send_id: 3, recv_id: 13, algorithm: "hmac-sha-256-96", secret: "Last-7" };

/// The same key as the other end has it.
fn mirrored(key: AoKey) -> AoKey {
    AoKey { send_id: key.recv_id, recv_id: key.send_id, ..key }
}

/// The peer and its Secret in one file, so that they change at once.
fn peer(asns: (u32, u32), address: &str, keys: &[AoKey]) -> String {
    let mut text =
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\nstringData:\n".to_owned();
    for AoKey { send_id, secret, .. } in keys {
        text += &format!("  key-{send_id}: {secret}\n");
    }
    text += &format!(
        "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: other\nspec:\n  \
         myASN: {}\n  peerASN: {}\n  peerAddress: {address}\n  holdTime: 30s\n  \
         keepaliveTime: 1s\n  toReceive:\n    allowed: {{mode: all}}\n  tcpAO:\n    keys:\n",
        asns.0, asns.1
    );
    for AoKey { send_id, recv_id, algorithm, .. } in keys {
        text += &format!(
            "    - sendID: {send_id}\n      recvID: {recv_id}\n      algorithm: {algorithm}\n      \
             secret: {{name: keys, key: key-{send_id}}}\n"
        );
    }
    text
}

fn announce(node: &Node) -> Result<()> {
    node.fairway.apply("pool", &pool("main", &["203.0.113.0/24"]))?;
    let advertisement = Advertisement { name: "plain", pools: &["main"], ..<_>::default() };
    node.fairway.apply("advertisement", &advertisement.yaml())?;
    node.fairway.apply("web", &service("web", Some("203.0.113.10")))
}

/// Two nodes on a cable; the first announces a Service.
struct Pair {
    left: Node,
    right: Node,
}

impl Pair {
    fn prepare(number: usize, directory: &Path) -> Result<Self> {
        let left = Node::prepare(number, "left", directory)?;
        let right = Node::prepare(number, "right", directory)?;
        left.namespace.connect("to-right", &right.namespace, "to-left")?;
        left.namespace.add_address("to-right", "10.77.0.1/24")?;
        right.namespace.add_address("to-left", "10.77.0.2/24")?;
        announce(&left)?;
        Ok(Self { left, right })
    }

    fn left_has(&self, keys: &[AoKey]) -> Result<()> {
        self.left.fairway.apply("peer", &peer((65001, 65002), "10.77.0.2", keys))
    }

    fn right_has(&self, keys: &[AoKey]) -> Result<()> {
        let keys: Vec<AoKey> = keys.iter().copied().map(mirrored).collect();
        self.right.fairway.apply("peer", &peer((65002, 65001), "10.77.0.1", &keys))
    }

    fn established(&mut self) -> Result<()> {
        self.left.established("10.77.0.2")?;
        self.right.established("10.77.0.1")?;
        self.right.learns(&[ROUTE])
    }

    /// Watches for a while that the first session goes on and carries its route.
    fn goes_on(&mut self) -> Result<()> {
        holds_for("the first session goes on", CALM, || {
            for (node, peer) in [(&self.left, "10.77.0.2"), (&self.right, "10.77.0.1")] {
                let neighbour = node.fairway.neighbour(peer)?;
                ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
                let count = neighbour.connections_established;
                ensure!(count == 1, "it was established {count} times");
            }
            ensure!(self.right.learned()?.contains(ROUTE), "the route is gone");
            Ok(())
        })
    }
}

/// Topology: left (Fairway) --- right (Fairway).
/// Proves: a session under a key; the key is replaced, first beside the old one, then whole, by
/// either side first, and the session goes on with its route; a new dial uses the new key.
pub(super) fn keys_change_between_two_of_ours(number: usize, directory: &Path) -> Result<()> {
    let mut pair = Pair::prepare(number, directory)?;
    pair.left_has(&[OLD])?;
    pair.right_has(&[OLD])?;
    pair.left.start()?;
    pair.right.start()?;
    pair.established()?;
    // As RFC 5925 has it: both hold both keys for a while.
    pair.left_has(&[NEW, OLD])?;
    pair.goes_on()?;
    pair.right_has(&[NEW, OLD])?;
    pair.goes_on()?;
    pair.right_has(&[NEW])?;
    pair.left_has(&[NEW])?;
    pair.goes_on()?;
    // And in one step, one side later than the other.
    pair.right_has(&[LAST])?;
    pair.goes_on()?;
    pair.left_has(&[LAST])?;
    pair.goes_on()?;
    pair.left.fairway.clear(&["10.77.0.2"])?;
    wait_until("another session is up", LIMIT, || {
        let neighbour = pair.left.fairway.neighbour("10.77.0.2")?;
        ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
        let count = neighbour.connections_established;
        ensure!(count == 2, "it was established {count} times");
        Ok(())
    })?;
    pair.established()
}

/// Topology: left (Fairway) --- right (Fairway), the same numbers, another secret.
/// Proves: no session, the kernels count what they refused; with the right secret it comes up, and
/// another secret under the same numbers ends it.
pub(super) fn a_wrong_secret_never_comes_up(number: usize, directory: &Path) -> Result<()> {
    let wrong = AoKey { secret: "Wrong-7", ..OLD };
    let mut pair = Pair::prepare(number, directory)?;
    pair.left_has(&[OLD])?;
    pair.right_has(&[wrong])?;
    pair.left.start()?;
    pair.right.start()?;
    wait_until("a kernel has refused a segment", LIMIT, || {
        let refused = pair.right.namespace.tcp_counter("TCPAOBad")?;
        ensure!(refused > 0, "none yet");
        Ok(())
    })?;
    pair.left.expect_no_session("10.77.0.2")?;
    pair.right_has(&[OLD])?;
    pair.established()?;
    pair.left_has(&[wrong])?;
    wait_until("the session is down", LIMIT, || {
        let neighbour = pair.left.fairway.neighbour("10.77.0.2")?;
        ensure!(!neighbour.is_established(), "it is up");
        Ok(())
    })?;
    pair.left.expect_no_session("10.77.0.2")
}

/// Topology: node (Fairway) --- router (BIRD 3).
/// Proves: a session under a key, and that it goes on while both sides go over to another.
pub(super) fn keys_change_with_bird(number: usize, directory: &Path) -> Result<()> {
    let mut node = Node::prepare(number, "node", directory)?;
    let namespace = Namespace::create(number, "router")?;
    node.namespace.connect("to-router", &namespace, "to-node")?;
    node.namespace.add_address("to-router", "10.77.0.1/24")?;
    namespace.add_address("to-node", "10.77.0.2/24")?;
    let directory = directory.join("router");
    make_directory(&directory)?;
    let site = Site { namespace, directory };
    let ipv6 = "fd77::2".parse().context("an address of the lab")?;
    let mut spec = RouterSpec::between("10.77.0.2".parse()?, ipv6, "10.77.0.1".parse()?);
    spec.dialling = Dialling::Dials;
    spec.hold_time = 30;
    spec.ao_keys = vec![mirrored(OLD)];
    let mut bird = RouterKind::Bird(Release::Trixie).prepare(&site, &spec)?;
    announce(&node)?;
    node.fairway.apply("peer", &peer((65001, 65002), "10.77.0.2", &[OLD]))?;
    bird.start(&site)?;
    node.start()?;
    node.established("10.77.0.2")?;
    wait_until("BIRD has the route", LIMIT, || bird.route(ROUTE)?.context("it has none"))?;
    let incarnation = bird.session()?.incarnation;
    let goes_on = |bird: &dyn lab::routers::Router| {
        holds_for("the first session goes on", CALM, || {
            let session = bird.session()?;
            ensure!(session.established, "BIRD says {}", session.state);
            ensure!(session.incarnation == incarnation, "BIRD has another session");
            let count = node.fairway.neighbour("10.77.0.2")?.connections_established;
            ensure!(count == 1, "it was established {count} times");
            bird.route(ROUTE)?.context("the route is gone").map(drop)
        })
    };
    for (ours, its) in [
        // The steps that docs/peers.md gives.
        (&[OLD, NEW][..], None),
        (&[OLD, NEW], Some(&[OLD, NEW][..])),
        (&[NEW, OLD], None),
        (&[NEW, OLD], Some(&[NEW, OLD])),
        (&[NEW], Some(&[NEW])),
        // And with as few as it takes.
        (&[LAST], None),
        (&[LAST], Some(&[LAST, NEW])),
        (&[LAST], Some(&[LAST])),
    ] {
        node.fairway.apply("peer", &peer((65001, 65002), "10.77.0.2", ours))?;
        if let Some(its) = its {
            bird.change_keys(its.iter().copied().map(mirrored).collect())?;
        }
        goes_on(bird.as_ref())?;
    }
    Ok(())
}
