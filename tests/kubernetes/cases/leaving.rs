//! Nodes and speakers go: by a mark, for a restart, for good.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::outages::{announce, announced, prefixes, session_is_back};
use crate::api::word;
use crate::install;
use crate::objects::SYSTEM;
use crate::stage::{NODES, ROUTERS, Stage};
use lab::wait::{PATIENCE, holds_for, wait_until};

const MARK: &str = "metallb.io/drain";
/// As the suite writes communities: as numbers.
const GRACEFUL_SHUTDOWN: &str = "65535:0";

/// A label, an annotation or a taint drains the node: its routes carry GRACEFUL_SHUTDOWN, then go, the
/// session stays; without the mark everything is back.
pub(super) fn a_marked_node_is_drained(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let taint = json!([{ "key": MARK, "value": "1s", "effect": "PreferNoSchedule" }]);
    for (mark, unmark) in [
        (
            json!({ "metadata": { "annotations": { MARK: "2s" } } }),
            json!({ "metadata": { "annotations": { MARK: null } } }),
        ),
        (
            json!({ "metadata": { "labels": { MARK: "1s" } } }),
            json!({ "metadata": { "labels": { MARK: null } } }),
        ),
        (json!({ "spec": { "taints": taint } }), json!({ "spec": { "taints": null } })),
    ] {
        let sessions = sessions(stage)?;
        stage.api.patch("Node", "", "node-a", &mark)?;
        for router in ROUTERS {
            sees_shutdown(stage, router, "192.0.2.61/32")?;
        }
        stage.routes_become("192.0.2.61", &[])?;
        stage.routes_become("192.0.2.60", &["node-b", "node-c"])?;
        node_event(stage, "NodeDrained")?;
        stage.api.patch("Node", "", "node-a", &unmark)?;
        stage.routes_become("192.0.2.61", &["node-a"])?;
        stage.routes_become("192.0.2.60", &NODES)?;
        ensure!(self::sessions(stage)? == sessions, "a session was lost");
    }
    node_event(stage, "NodeInService")
}

fn sees_shutdown(stage: &mut Stage, router: &str, prefix: &str) -> Result<()> {
    let router = stage.router(router)?;
    wait_until(&format!("{} sees that the node leaves", router.name), PATIENCE, || {
        let route = router.router.route(prefix)?.context("the route is gone")?;
        ensure!(route.communities.contains(GRACEFUL_SHUTDOWN), "it sees {:?}", route.communities);
        Ok(())
    })
}

/// What distinguishes the sessions of now from any that come after.
fn sessions(stage: &Stage) -> Result<Vec<u64>> {
    let speakers = stage.speakers.iter();
    let count = |speaker: &crate::daemons::Speaker, peer: &str| {
        Ok(speaker.daemon.neighbour(peer)?.connections_established)
    };
    speakers.flat_map(|it| ["10.90.0.21", "10.90.0.22"].map(|peer| count(it, peer))).collect()
}

fn node_event(stage: &Stage, reason: &str) -> Result<()> {
    wait_until(&format!("an Event {reason} about node-a"), PATIENCE, || {
        let events = stage.api.list("Event", "default")?;
        let about = |it: &&Value| {
            word(it, "/involvedObject/name") == "node-a" && word(it, "/reason") == reason
        };
        let reasons = events.iter().map(|it| word(it, "/reason")).collect::<Vec<_>>();
        events.iter().find(about).map(drop).with_context(|| format!("there are {reasons:?}"))
    })
}

/// A speaker that gets SIGTERM while its Node and DaemonSet exist is restarted: routers keep its routes
/// until it is back.
pub(super) fn a_restarted_speaker_loses_nothing(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let before = stage.withdrawals(&prefixes())?.len();
    stage.speakers[2].daemon.stop()?;
    let all = announced();
    holds_for("the routers keep every path", Duration::from_secs(1), || {
        all.iter().try_for_each(|(address, nodes)| stage.check_routes(&ROUTERS, address, nodes))
    })?;
    stage.start_speaker(2)?;
    session_is_back(stage, "node-c")?;
    holds_for("the routers have every path", Duration::from_millis(500), || {
        all.iter().try_for_each(|(address, nodes)| stage.check_routes(&ROUTERS, address, nodes))
    })?;
    let gone = stage.withdrawals(&prefixes())?;
    ensure!(gone.len() == before, "routers received withdrawals: {:?}", &gone[before..]);
    Ok(())
}

/// A speaker without a DaemonSet, or without a Node, leaves for good: no router keeps its routes.
pub(super) fn a_removed_speaker_leaves_for_good(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let account = install::Account::Speaker;
    let daemon_set = stage.api.get(account.owner(), SYSTEM, account.name())?;
    stage.api.delete(account.owner(), SYSTEM, account.name())?;
    stage.speakers[2].daemon.stop()?;
    stage.routes_become("192.0.2.63", &[])?;
    stage.routes_become("192.0.2.60", &["node-a", "node-b"])?;
    stage.api.create(&as_new(daemon_set))?;
    stage.start_speaker(2)?;
    stage.routes_become("192.0.2.63", &["node-c"])?;

    stage.api.delete("Node", "", "node-b")?;
    stage.speakers[1].daemon.stop()?;
    stage.routes_become("192.0.2.62", &[])?;
    stage.routes_become("192.0.2.60", &["node-a", "node-c"])?;
    stage.register_nodes()?;
    stage.start_speaker(1)?;
    stage.routes_become("192.0.2.60", &NODES)
}

/// The object, ready to apply.
fn as_new(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "namespace", "labels"].contains(&key.as_str()));
    }
    object
}
