//! What do broken files do to a running daemon? Each is named, and nothing that was valid changes.
//! A row of the matrix.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::scene::{Cell, Scene};
use lab::Family;
use lab::wait::PATIENCE;

/// The file that is broken, again and again.
const BROKEN: &str = "broken";

/// A fault and the text that has it. What comes after the kind is its `metadata` and `spec`.
const FAULTS: &[(&str, &str)] = &[
    ("not YAML", "a: [1, 2"),
    ("a tab", "kind: Service\nmetadata:\n\tname: x\n"),
    ("prose", "hello"),
    ("no kind", "apiVersion: v1\nmetadata: {name: x}\n"),
    (
        "no name",
        "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nspec: {addresses: [192.0.2.0/24]}\n",
    ),
    ("an unknown kind", "apiVersion: metallb.io/v1beta1\nkind: Pool\nmetadata: {name: x}\n"),
    ("another version", "apiVersion: metallb.io/v7\nkind: BGPPeer\nmetadata: {name: x}\n"),
    ("a key twice", "apiVersion: v1\nkind: Service\nkind: Service\nmetadata: {name: x}\n"),
    ("no addresses", "IPAddressPool {addresses: []}"),
    ("no prefix", "IPAddressPool {addresses: [192.0.2.0/240]}"),
    ("host bits", "BGPAdvertisement {prefixes: [192.0.2.1/24]}"),
    ("a type misspelt", "Service {type: Loadbalancer}"),
    ("another local preference", "BGPAdvertisement {localPref: 200}"),
    ("a range backwards", "IPAddressPool {addresses: [192.0.2.9-192.0.2.1]}"),
    ("both families in a range", "IPAddressPool {addresses: [\"192.0.2.1-2001:db8::1\"]}"),
    ("a pool over another", "IPAddressPool {addresses: [203.0.113.128/25]}"),
    ("a pool over itself", "IPAddressPool {addresses: [192.0.2.0/24, 192.0.2.0/25]}"),
    ("an unknown field", "IPAddressPool {addresses: [192.0.2.0/24], autoAsign: true}"),
    ("text for a truth value", "IPAddressPool {addresses: [192.0.2.0/24], autoAssign: often}"),
    (
        "a port of 70000",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, peerPort: 70000}",
    ),
    ("AS 0", "BGPPeer {myASN: 0, peerASN: 65009, peerAddress: 192.0.2.9}"),
    ("an AS too large", "BGPPeer {myASN: 65001, peerASN: 4294967296, peerAddress: 192.0.2.9}"),
    ("a name for an address", "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: router}"),
    ("no address", "BGPPeer {myASN: 65001, peerASN: 65009}"),
    (
        "a hold time of 1 s",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, holdTime: 1s}",
    ),
    (
        "a keepalive over the hold time",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, holdTime: 9s, keepaliveTime: 10s}",
    ),
    (
        "two passwords",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, password: a, passwordSecret: {name: b}}",
    ),
    (
        "a secret that is not there",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, passwordSecret: {name: b}}",
    ),
    (
        "multihop inside the AS",
        "BGPPeer {myASN: 65001, peerASN: 65001, peerAddress: 192.0.2.9, ebgpMultiHop: true}",
    ),
    (
        "a profile that is not there",
        "BGPPeer {myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, bfdProfile: fast}",
    ),
    ("a community", "BGPAdvertisement {communities: [\"65536:1\"]}"),
    ("a large community", "BGPAdvertisement {communities: [\"large:1:2\"]}"),
    ("an alias of nothing", "BGPAdvertisement {communities: [nobody]}"),
    ("an aggregation length", "BGPAdvertisement {aggregationLength: 33}"),
    (
        "an operator",
        "BGPAdvertisement {nodeSelectors: [{matchExpressions: [{key: a, operator: Near}]}]}",
    ),
    (
        "two addresses of a family",
        "Service {type: LoadBalancer, loadBalancerIP: \"192.0.2.1,192.0.2.2\"}",
    ),
];

/// Topology: node --- router, eBGP over IPv4, one service announced. Broken files come, one after
/// the other; then one as long as a password may not be, one that repeats an object, and one that
/// is no text; then the folder itself goes away and comes back.
/// Proves: each is exactly one fault, named with its file; route and session are not touched.
pub(super) fn broken_files_are_named_and_change_nothing(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let incarnation = scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32")?;
    let too_long = format!(
        "BGPPeer {{myASN: 65001, peerASN: 65009, peerAddress: 192.0.2.9, password: {}}}",
        "x".repeat(100)
    );
    let twice = fs::read_to_string(scene.fairway.resource("peer"))?;
    let more = [("a password of 100 bytes", too_long.as_str()), ("the same object twice", &twice)];
    for (what, text) in FAULTS.iter().copied().chain(more) {
        scene.fairway.apply(BROKEN, &manifest(text))?;
        scene
            .wait("one fault in the broken file", PATIENCE, |scene| expect_faults(scene, 1))
            .with_context(|| format!("broken by {what}"))?;
        scene.fairway.remove(BROKEN)?;
        scene.wait("no fault any more", PATIENCE, |scene| expect_faults(scene, 0))?;
    }
    scene.route_arrives("203.0.113.10/32")?;

    let folder = scene.fairway.resource(BROKEN).with_file_name("");
    let away = folder.with_file_name("away");
    fs::rename(&folder, &away).context("taking the folder away")?;
    scene.wait("the missing folder is a fault", PATIENCE, |scene| {
        ensure!(!faults(scene)?.is_empty(), "none is shown");
        Ok(())
    })?;
    scene.route_arrives("203.0.113.10/32")?;
    fs::rename(&away, &folder).context("bringing the folder back")?;
    scene.wait("no fault any more", PATIENCE, |scene| expect_faults(scene, 0))?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.expect_same_session(&incarnation)
}

/// `Kind {spec}` written out; other texts as they are.
fn manifest(text: &str) -> String {
    let group = |kind| match kind {
        "BGPPeer" => Some("metallb.io/v1beta2"),
        "IPAddressPool" | "BGPAdvertisement" => Some("metallb.io/v1beta1"),
        "Service" => Some("v1"),
        _ => None,
    };
    let short = text.split_once(" {").and_then(|(kind, spec)| Some((kind, group(kind)?, spec)));
    match short {
        Some((kind, version, spec)) => format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: broken}}\nspec: {{{spec}\n"
        ),
        None => text.to_owned(),
    }
}

fn expect_faults(scene: &Scene, expected: usize) -> Result<()> {
    let faults = faults(scene)?;
    ensure!(faults.len() == expected, "expected {expected}, there are {faults:#?}");
    for fault in &faults {
        let file = fault.get("file").and_then(Value::as_str).unwrap_or_default();
        let repeats = file.ends_with("peer.yaml"); // Of two copies the later file is at fault.
        ensure!(file.ends_with("broken.yaml") || repeats, "it blames {file}");
    }
    Ok(())
}

/// The faults that `show config` lists.
fn faults(scene: &Scene) -> Result<Vec<Value>> {
    let config = scene.fairway.show(&["config"])?;
    let findings = config.get("findings").and_then(Value::as_array);
    let findings = findings.with_context(|| format!("expected findings in {config}"))?;
    let is_fault = |it: &&Value| it.get("severity").and_then(Value::as_str) == Some("fault");
    Ok(findings.iter().filter(is_fault).cloned().collect())
}
