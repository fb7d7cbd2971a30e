//! Does a neighbour receive what was intended, and does it notice when FRR is given the same again? One FRR
//! with a rendered configuration, and a neighbour that accepts everything.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::daemons::Daemons;
use lab::namespace::Namespace;
use lab::routers::Release;
use lab::suite::Cell;
use lab::wait::{PATIENCE, holds_for, wait_until};

const NODE: &str = "192.0.2.1";
const ROUTER: &str = "192.0.2.2";
/// Longer than FRR waits before a changed route map counts (`bgp route-map delay-timer`).
const DELAY: Duration = Duration::from_secs(6);
const PREFIX: &str = "203.0.113.10/32";

/// The router of the goldens.
const ROUTER_CONFIGURATION: &str = "\
router bgp 65010
 bgp router-id 192.0.2.2
 no bgp ebgp-requires-policy
 neighbor 192.0.2.1 remote-as 65001
 neighbor 192.0.2.1 timers connect 1
exit
";

pub(crate) fn survives(release: Release, cell: &Cell) -> Result<()> {
    let Cell { number, directory } = cell;
    let (node, router) =
        (Namespace::create(*number, "node")?, Namespace::create(*number, "router")?);
    node.connect("to-router", &router, "to-node")?;
    node.add_address("to-router", &format!("{NODE}/24"))?;
    router.add_address("to-node", &format!("{ROUTER}/24"))?;
    let neighbour = Daemons::start(release, &router, &directory.join("router"))?;
    neighbour.load(ROUTER_CONFIGURATION)?;
    let daemons = Daemons::start(release, &node, &directory.join("node"))?;
    let text = golden("attributes-external")?;
    daemons.load(&text)?;
    wait_until("the router receives the prefix", PATIENCE, || path(&neighbour).map(drop))?;
    let path = path(&neighbour)?;
    // Two more than the one that every external path has.
    expect(&path, "/aspath/string", &json!("65001 65001 65001"))?;
    expect(&path, "/community/string", &json!("65001:100 no-export"))?;
    expect(&path, "/largeCommunity/string", &json!("65001:1:2 65001:1:3"))?;
    expect(&path, "/metric", &json!(50))?;
    let bandwidth = path.pointer("/extendedCommunity/string").and_then(Value::as_str);
    let bandwidth = bandwidth.with_context(|| format!("no bandwidth in {path:#}"))?;
    ensure!(bandwidth.contains("LB:65001:1250000000"), "{bandwidth}");
    let before = settled(&neighbour)?;
    for _ in 0..2 {
        daemons.load_again(&text)?;
    }
    holds_for("the same session, and no UPDATE", DELAY, || {
        let after = updates(&neighbour)?;
        ensure!(before == after, "a session and its UPDATEs were {before:?}, and are {after:?}");
        Ok(())
    })?;
    // What is drained is taken back, and the session stays.
    daemons.load("router bgp 65001\naddress-family ipv4 unicast\nno network 203.0.113.10/32\n")?;
    wait_until("the router forgets the prefix", PATIENCE, || {
        ensure!(self::path(&neighbour).is_err(), "it is still there");
        Ok(())
    })?;
    let (connections, _) = updates(&neighbour)?;
    ensure!(connections == before.0, "there were {} sessions, and {connections} now", before.0);
    Ok(())
}

fn golden(name: &str) -> Result<String> {
    let path = lab::checkout().join(crate::GOLDEN).join(format!("{name}.conf"));
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// The one path to the prefix.
fn path(router: &Daemons) -> Result<Value> {
    let answer = router.json(&format!("show bgp ipv4 unicast {PREFIX}"))?;
    let path = answer.pointer("/paths/0").cloned();
    path.with_context(|| format!("no path in {answer:#}"))
}

/// What [`updates`] returns once nothing more comes.
fn settled(router: &Daemons) -> Result<(u64, u64)> {
    wait_until("the router has received everything", PATIENCE, || {
        let before = updates(router)?;
        holds_for("no UPDATE", Duration::from_secs(2), || {
            ensure!(updates(router)? == before, "there was one");
            Ok(())
        })?;
        Ok(before)
    })
}

/// How many sessions there were, and how many UPDATEs came.
fn updates(router: &Daemons) -> Result<(u64, u64)> {
    let answer = router.json(&format!("show bgp neighbors {NODE}"))?;
    let number = |pointer: &str| {
        let number = answer.pointer(pointer).and_then(Value::as_u64);
        number.with_context(|| format!("no {pointer} in {answer:#}"))
    };
    let sessions = number(&format!("/{NODE}/connectionsEstablished"))?;
    Ok((sessions, number(&format!("/{NODE}/messageStats/updatesRecv"))?))
}

fn expect(path: &Value, pointer: &str, wanted: &Value) -> Result<()> {
    let found = path.pointer(pointer);
    ensure!(found == Some(wanted), "{pointer}: expected {wanted}, found {found:?} in {path:#}");
    Ok(())
}
