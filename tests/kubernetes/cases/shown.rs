//! What does an operator read? Statuses tell what is on the wire, and `kubectl get` prints it.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::announcing::{event, serve};
use crate::api::word;
use crate::objects::{SYSTEM, pool, service_at, slice};
use crate::stage::{NODES, SHOP, Stage};
use lab::wait::{PATIENCE, wait_until};

const ADDRESS: &str = "192.0.2.50";

fn web(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    stage.api.apply_all(&[
        service_at(SHOP, "web", ADDRESS, json!({})),
        slice(SHOP, "web", &[("node-a", true)]),
    ])?;
    stage.routes_become(ADDRESS, &NODES)
}

/// Waits until `kubectl get` of our kinds prints lines that begin with these words, and one that
/// has the words of each of them, in this order.
pub(super) fn prints(stage: &Stage, kind: &str, lines: &[&[&str]]) -> Result<()> {
    wait_until(&format!("kubectl get {kind} prints {lines:?}"), PATIENCE, || {
        let text = stage.kubectl(&["get", kind, "-n", SYSTEM])?;
        for words in lines {
            let has = |line: &str| {
                let mut found = line.split_whitespace();
                words.iter().all(|word| found.any(|it| it.contains(word)))
            };
            ensure!(text.lines().any(has), "it prints:\n{text}");
        }
        Ok(())
    })
}

/// Each table has what its reader asks for.
pub(super) fn kubectl_prints_what_an_operator_needs(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    prints(
        stage,
        "bgppeers",
        &[
            &["NAME", "ADDRESS", "ASN", "BFD", "MULTI"],
            &["frr", "10.90.0.21", "65002"],
            &["bird", "10.90.0.22", "65003"],
        ],
    )?;
    prints(
        stage,
        "ipaddresspools",
        &[&["NAME", "AUTO", "AVOID", "ADDRESSES"], &["main", "true", "false", "192.0.2.0/24"]],
    )?;
    let sessions: Vec<Vec<&str>> = NODES
        .iter()
        .flat_map(|node| {
            ["10.90.0.21", "10.90.0.22"].map(|peer| vec![*node, peer, "Established", "N/A"])
        })
        .collect();
    let sessions: Vec<&[&str]> = sessions.iter().map(Vec::as_slice).collect();
    prints(stage, "bgpsessionstates", &sessions)?;
    prints(
        stage,
        "configurationstates",
        &[
            &["NAME", "RESULT", "ERRORSUMMARY", "AGE"],
            &["controller", "Valid"],
            &["speaker-node-a", "Valid"],
            &["speaker-node-b", "Valid"],
            &["speaker-node-c", "Valid"],
        ],
    )?;
    prints(
        stage,
        "servicebgpstatuses",
        &[
            &["NAME", "NODE", "SERVICE", "NAMESPACE"],
            &["node-a", "web", SHOP],
            &["node-b", "web", SHOP],
            &["node-c", "web", SHOP],
        ],
    )?;
    wait_until("the pool says how full it is", PATIENCE, || {
        let pool = stage.api.get("IPAddressPool", SYSTEM, "main")?;
        let status = &pool["status"];
        ensure!(status["assignedIPv4"] == 1 && status["availableIPv4"] == 255, "it says {status}");
        Ok(())
    })?;
    wait_until("kubectl describe tells of both Events", PATIENCE, || {
        let said = stage.kubectl(&["describe", "service", "web", "-n", SHOP])?;
        ensure!(said.contains("IPAllocated") && said.contains("nodeAssigned"), "{said}");
        Ok(())
    })
}

/// ServiceBGPStatus and BGPSessionState show what is on the wire: a router without a session was sent
/// nothing.
pub(super) fn statuses_follow_the_sessions(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    event(stage, "web", "nodeAssigned")?;
    peers_become(stage, "node-a", &["bird", "frr"])?;
    session_becomes(stage, "node-a", "10.90.0.21", true)?;
    // FRR knows no neighbour of this AS.
    stage.api.patch("BGPPeer", SYSTEM, "frr", &json!({ "spec": { "myASN": 64999 } }))?;
    peers_become(stage, "node-a", &["bird"])?;
    session_becomes(stage, "node-a", "10.90.0.21", false)?;
    stage.api.patch("BGPPeer", SYSTEM, "frr", &json!({ "spec": { "myASN": 65001 } }))?;
    peers_become(stage, "node-a", &["bird", "frr"])?;
    session_becomes(stage, "node-a", "10.90.0.21", true)?;
    // It is not announced any more: there is no status left to name a node.
    stage.api.delete("EndpointSlice", SHOP, "web-1")?;
    wait_until("the statuses of the Service are gone", PATIENCE, || {
        let left = stage.api.list("ServiceBGPStatus", SYSTEM)?;
        ensure!(left.is_empty(), "there are {left:?}");
        Ok(())
    })
}

fn peers_become(stage: &Stage, node: &str, peers: &[&str]) -> Result<()> {
    wait_until(&format!("{peers:?} were sent it by {node}"), PATIENCE, || {
        let all = stage.api.list("ServiceBGPStatus", SYSTEM)?;
        let of_node = all.iter().find(|it| word(it, "/status/node") == node);
        let status = &of_node.with_context(|| format!("no status among {}", all.len()))?["status"];
        ensure!(status["peers"] == json!(peers), "it says {status}");
        let of_service = (&status["serviceName"], &status["serviceNamespace"]);
        ensure!(of_service == (&json!("web"), &json!(SHOP)), "it says {status}");
        Ok(())
    })
}

fn session_becomes(stage: &Stage, node: &str, peer: &str, is_up: bool) -> Result<()> {
    let expected = format!("the session of {node} with {peer} is up: {is_up}");
    wait_until(&expected, PATIENCE, || {
        let all = stage.api.list("BGPSessionState", SYSTEM)?;
        let is_it = |it: &&serde_json::Value| {
            word(it, "/status/node") == node && word(it, "/status/peer") == peer
        };
        let found = all.iter().find(is_it).with_context(|| format!("none of {}", all.len()))?;
        let state = word(found, "/status/bgpStatus");
        ensure!((state == "Established") == is_up, "it is {state}");
        Ok(())
    })
}

/// An object that breaks a rule is named in ConfigurationState; what was in force before stays so.
pub(super) fn a_broken_object_is_named_and_stops_nobody(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    stage.api.apply(&pool("overlapping", &["192.0.2.128/25"]))?;
    wait_until("the controller reports what is wrong", PATIENCE, || {
        let state = stage.api.get("ConfigurationState", SYSTEM, "controller")?;
        let status = &state["status"];
        ensure!(status["result"] == "Invalid", "it says {status}");
        let summary = word(status, "/errorSummary");
        ensure!(summary.contains("overlapping") && summary.contains("192.0.2"), "{summary}");
        Ok(())
    })?;
    // The pool that was there first goes on, and so does everything else.
    stage.api.apply_all(&[
        service_at(SHOP, "more", "192.0.2.51", json!({})),
        slice(SHOP, "more", &[("node-b", true)]),
    ])?;
    stage.routes_become("192.0.2.51", &NODES)?;
    stage.check_routes(&crate::stage::ROUTERS, ADDRESS, &NODES)?;
    stage.api.delete("IPAddressPool", SYSTEM, "overlapping")?;
    wait_until("nothing is wrong any more", PATIENCE, || {
        let state = stage.api.get("ConfigurationState", SYSTEM, "controller")?;
        ensure!(state["status"]["result"] == "Valid", "it says {}", state["status"]);
        Ok(())
    })
}
