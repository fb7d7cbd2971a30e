//! An L2Advertisement: one node answers on the segment, and the API says which.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::shown::prints;
use crate::api::word;
use crate::objects::{SYSTEM, ours, pool, service_at, slice};
use crate::stage::{NODES, SHOP, Stage};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::wait::{PATIENCE, wait_until};

const ADDRESS: &str = "10.90.0.200";
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The node that the ServiceL2Status names, once there is exactly one.
fn owner(stage: &Stage) -> Result<&'static str> {
    let all = stage.api.list("ServiceL2Status", SYSTEM)?;
    let [status] = all.as_slice() else {
        let nodes: BTreeSet<&str> = all.iter().map(|it| word(it, "/status/node")).collect();
        anyhow::bail!("statuses of {nodes:?}")
    };
    let of_service =
        (word(status, "/status/serviceName"), word(status, "/status/serviceNamespace"));
    ensure!(of_service == ("web", SHOP), "it is of {of_service:?}");
    let node = word(status, "/status/node");
    NODES.into_iter().find(|it| *it == node).with_context(|| format!("the node is {node:?}"))
}

/// The hardware addresses that answer the hub.
fn who_has(stage: &Stage) -> Result<BTreeSet<String>> {
    let words = format!("arping -b -c 2 -w 1 -I wire {ADDRESS} || true");
    let text = stage.hub.run("sh", &["-c", &words])?;
    let mac = |line: &str| {
        let line = line.split(['[', ']']).nth(1)?;
        Some(line.to_lowercase())
    };
    Ok(text.lines().filter(|it| it.contains("reply from")).filter_map(mac).collect())
}

fn mac(stage: &Stage, node: &str) -> Result<String> {
    let place = NODES.iter().position(|it| *it == node).context("a node")?;
    let text = stage.nodes[place].ip(&["-json", "link", "show", "dev", "eth0"])?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(value[0]["address"].as_str().context("an address")?.to_lowercase())
}

/// Exactly one node answers, the one that the status names; an Event of that node says so.
fn one_answers(stage: &mut Stage, without: Option<&str>) -> Result<&'static str> {
    let node = wait_until("one node answers, and its status says so", PATIENCE, || {
        stage.check_running()?;
        let node = owner(stage)?;
        ensure!(Some(node) != without, "it is still {node}");
        let (found, expected) = (who_has(stage)?, mac(stage, node)?);
        ensure!(found == BTreeSet::from([expected]), "{node} owns it, and {found:?} answer");
        Ok(node)
    })?;
    let message = format!("announcing from node {node:?} with protocol \"layer2\"");
    wait_until("an Event says so", PATIENCE, || {
        let events = stage.api.list("Event", SHOP)?;
        let has = |it: &Value| word(it, "/message") == message || word(it, "/note") == message;
        ensure!(events.iter().any(has), "none of {} is {message:?}", events.len());
        Ok(())
    })?;
    Ok(node)
}

/// `docs/api-server-address.md`: a host has the address of the API servers while its own one is alive. Here the one of
/// the cluster stands for it, with its certificate and its rights.
pub(super) fn an_address_is_there_while_the_api_server_is_alive(stage: &mut Stage) -> Result<()> {
    const SHARED: &str = "10.90.0.250";
    const EXAMPLE: &str = include_str!("../../../examples/api-server/address.yaml");
    let url = format!("https://{}/livez", stage.cluster()?.address());
    let replaced = |text: String, from: &str, to: &str| -> Result<String> {
        ensure!(text.contains(from), "the example has no {from}");
        Ok(text.replace(from, to))
    };
    let text = replaced(EXAMPLE.to_owned(), "192.0.2.10/32", &format!("{SHARED}/32"))?;
    let text = replaced(text, "https://127.0.0.1:6443/livez", &url)?;
    let directory = stage.directory.join("control-plane");
    make_directory(&directory)?;
    let mut fairway = Fairway::prepare_in(&directory)?;
    fairway.apply("address.yaml", &text)?;
    let arguments = ["--bgp-listen", "none", "--metrics-listen", "none"];
    fairway.extra_arguments = arguments.map(str::to_owned).to_vec();
    fairway.start(stage.nodes.first().context("a node")?)?;
    let becomes = |stage: &Stage, is_there: bool| {
        let node = stage.nodes.first().context("a node")?;
        wait_until(&format!("the address is there: {is_there}"), 2 * PATIENCE, || {
            let shown = node.ip(&["address", "show", "dev", "eth0"])?;
            let found = shown.contains(&format!("inet {SHARED}/32"));
            let explained = fairway.explain("service", "api-server")?;
            ensure!(found == is_there, "{shown}{explained}");
            Ok(explained)
        })
    };
    becomes(stage, true)?;
    stage.api_server_goes()?;
    let explained = becomes(stage, false)?;
    ensure!(explained.contains("the health check of the Service fails"), "{explained}");
    stage.api_server_is_back()?;
    becomes(stage, true)?;
    fairway.stop()
}

/// The owner is excluded, and another one answers; the advertisement is edited, and the node that it selects does; it
/// is deleted, and nobody does.
pub(super) fn one_node_answers_on_the_segment(stage: &mut Stage) -> Result<()> {
    stage.api.apply_all(&[
        pool("main", &["10.90.0.200-10.90.0.210"]),
        ours("L2Advertisement", "segment", json!({ "ipAddressPools": ["main"] })),
        service_at(SHOP, "web", ADDRESS, json!({})),
        slice(SHOP, "web", &[("node-a", true)]),
    ])?;
    stage.addresses_become("web", &[ADDRESS])?;
    let first = one_answers(stage, None)?;
    let label = |value: Value| json!({ "metadata": { "labels": { EXCLUDED: value } } });
    stage.api.patch("Node", "", first, &label(json!("")))?;
    one_answers(stage, Some(first))?;
    stage.api.patch("Node", "", first, &label(Value::Null))?;
    wait_until("the first node owns it again", PATIENCE, || {
        let node = owner(stage)?;
        ensure!(node == first, "it is {node}");
        Ok(())
    })?;
    let last = NODES.into_iter().rev().find(|it| *it != first).context("another node")?;
    let selected = json!([{ "matchLabels": { "kubernetes.io/hostname": last } }]);
    let spec = json!({ "ipAddressPools": ["main"], "nodeSelectors": selected });
    stage.api.apply(&ours("L2Advertisement", "segment", spec))?;
    let edited = one_answers(stage, Some(first))?;
    ensure!(edited == last, "the advertisement selects {last}, and {edited} answers");
    if stage.cluster().is_ok() {
        prints(
            stage,
            "servicel2statuses",
            &[&["ALLOCATED", "NODE", "SERVICE", "NAME"], &[last, "web", SHOP]],
        )?;
        prints(stage, "l2advertisements", &[&["segment", "main"]])?;
        let events = stage.kubectl(&["get", "events", "-n", SHOP])?;
        let line = format!("announcing from node \"{last}\" with protocol \"layer2\"");
        ensure!(events.contains(&line), "kubectl get events prints:\n{events}");
    }
    stage.api.delete("L2Advertisement", SYSTEM, "segment")?;
    wait_until("nobody answers, and no status is left", PATIENCE, || {
        let left = stage.api.list("ServiceL2Status", SYSTEM)?;
        ensure!(left.is_empty(), "there are {left:?}");
        let found = who_has(stage)?;
        ensure!(found.is_empty(), "{found:?} answer");
        Ok(())
    })
}
