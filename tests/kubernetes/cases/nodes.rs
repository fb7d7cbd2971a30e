//! Nodes change: labels, conditions, marks. Routes follow.

use anyhow::Result;
use serde_json::{Value, json};

use super::announcing::serve;
use crate::objects::{SYSTEM, advertisement, ours, service_at, slice};
use crate::stage::{NODES, SHOP, Stage};

const PREFIX: &str = "192.0.2.40";
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

fn web(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    stage.api.apply_all(&[
        service_at(SHOP, "web", PREFIX, json!({})),
        slice(SHOP, "web", &[("node-a", true)]),
    ])?;
    stage.routes_become(PREFIX, &NODES)
}

fn label(stage: &Stage, node: &str, key: &str, value: Value) -> Result<()> {
    let patch = json!({ "metadata": { "labels": { key: value } } });
    stage.api.patch("Node", "", node, &patch).map(drop)
}

/// Advertisements and peers that select nodes see labels come, change and go.
pub(super) fn routes_follow_labels_of_nodes(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    let selectors = json!([{ "matchLabels": { "rack": "1" } }]);
    let selected = json!({ "nodeSelectors": selectors });
    stage.api.apply(&advertisement("main", &["main"], selected))?;
    stage.routes_become(PREFIX, &[])?;
    label(stage, "node-b", "rack", json!("1"))?;
    stage.routes_become(PREFIX, &["node-b"])?;
    label(stage, "node-c", "rack", json!("1"))?;
    stage.routes_become(PREFIX, &["node-b", "node-c"])?;
    label(stage, "node-b", "rack", json!("2"))?;
    stage.routes_become(PREFIX, &["node-c"])?;
    stage.api.apply(&advertisement("main", &["main"], json!({})))?;
    stage.routes_become(PREFIX, &NODES)?;

    // The same for a peer: without its label a node has no session.
    let edit = |selectors: Value| json!({ "spec": { "nodeSelectors": selectors } });
    stage.api.patch("BGPPeer", SYSTEM, "frr", &edit(selectors))?;
    stage.routes_of_become(&["frr"], PREFIX, &["node-c"])?;
    stage.routes_of_become(&["bird"], PREFIX, &NODES)?;
    label(stage, "node-a", "rack", json!("1"))?;
    stage.routes_of_become(&["frr"], PREFIX, &["node-a", "node-c"])?;
    stage.api.patch("BGPPeer", SYSTEM, "frr", &edit(Value::Null))?;
    stage.routes_become(PREFIX, &NODES)
}

/// Each node announces the networks of its own Pods, also one that serves no load balancer; without the advertisement
/// nobody does.
pub(super) fn networks_of_pods_are_announced_by_their_nodes(stage: &mut Stage) -> Result<()> {
    let network = |number: usize| format!("10.244.{number}.0/24");
    for (number, node) in NODES.iter().enumerate() {
        let networks = json!({ "podCIDR": network(number), "podCIDRs": [network(number)] });
        stage.api.patch("Node", "", node, &json!({ "spec": networks }))?;
    }
    stage.api.apply(&ours("BGPAdvertisement", "pods", json!({ "podCIDRs": true })))?;
    for (number, node) in NODES.iter().enumerate() {
        stage.routes_become(&network(number), &[node])?;
    }
    label(stage, NODES[0], EXCLUDED, json!(""))?;
    stage.routes_stay(&network(0), &NODES[..1])?;
    label(stage, NODES[0], EXCLUDED, Value::Null)?;
    stage.api.delete("BGPAdvertisement", SYSTEM, "pods")?;
    for number in 0..NODES.len() {
        stage.routes_become(&network(number), &[])?;
    }
    Ok(())
}

/// `node.kubernetes.io/exclude-from-external-load-balancers`, whatever its value.
pub(super) fn an_excluded_node_announces_nothing(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    label(stage, "node-a", EXCLUDED, json!(""))?;
    stage.routes_become(PREFIX, &["node-b", "node-c"])?;
    label(stage, "node-a", EXCLUDED, Value::Null)?;
    stage.routes_become(PREFIX, &NODES)
}

/// The condition NetworkUnavailable.
pub(super) fn a_node_without_network_announces_nothing(stage: &mut Stage) -> Result<()> {
    web(stage)?;
    let network = |status: &str| {
        let unavailable =
            json!({ "type": "NetworkUnavailable", "status": status, "reason": "Test" });
        json!({ "conditions": [{ "type": "Ready", "status": "True" }, unavailable] })
    };
    stage.api.patch_status("Node", "", "node-b", &network("True"))?;
    stage.routes_become(PREFIX, &["node-a", "node-c"])?;
    stage.api.patch_status("Node", "", "node-b", &network("False"))?;
    stage.routes_become(PREFIX, &NODES)?;
    // A node that is only not ready, or cordoned, goes on: its Services may well work.
    let cordon = json!({ "spec": { "unschedulable": true } });
    stage.api.patch("Node", "", "node-b", &cordon)?;
    let not_ready = json!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    stage.api.patch_status("Node", "", "node-b", &not_ready)?;
    stage.routes_stay(PREFIX, &NODES)?;
    let uncordon = json!({ "spec": { "unschedulable": null } });
    stage.api.patch("Node", "", "node-b", &uncordon).map(drop)
}
