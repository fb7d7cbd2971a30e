//! A pool without a free address.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::{self, CALICO, create, list};
use super::{Scene, ptp};
use crate::daemon::{Daemon, pool};
use crate::runtime::Runtime;
use lab::namespace::{Namespace, Network};
use lab::wait::{PATIENCE, wait_until};

pub(super) fn a_pool_that_has_run_out_is_told_in_an_event(scene: &Scene) -> Result<()> {
    let cluster = cluster::cluster(scene, &["n1"])?;
    let mut pool = pool("tiny", "10.245.0.0/29", 29);
    pool["spec"]["nodeSelector"] = "kubernetes.io/hostname == 'n1'".into();
    create(&cluster, &format!("{CALICO}/ippools"), &pool)?;
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let mut of_tiny = runtime.configuration.clone();
    of_tiny["ipam"]["assign_ipv6"] = "false".into();
    of_tiny["ipam"]["ipv4_pools"] = json!(["tiny"]);
    // The first two addresses and the last one of the block mean something on a link.
    for number in 0..5 {
        wait_until("the daemon knows the pools", PATIENCE, || {
            runtime.ask("ADD", &format!("full{number}"), &of_tiny)?.done().map(drop)
        })?;
    }
    let refused = runtime.ask("ADD", "too-many", &of_tiny)?;
    ensure!(refused.done().is_err(), "a sixth address of five");
    cluster::define(scene, &cluster, &[])?;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"},
    });
    create(&cluster, "/api/v1/namespaces", &namespace)?;
    let log = scene.directory.join("controller.log");
    let _controller = cluster::start_controller(&cluster, &Network::Own, &log)?;
    let uid = list(&cluster, "ippools")?.into_iter().find(|it| it["metadata"]["name"] == "tiny");
    let uid = uid.context("the pool")?["metadata"]["uid"].clone();
    wait_until("the Event is posted", PATIENCE, || {
        let path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DIPPool";
        let reply = cluster.ask("GET", path, None)?;
        let events: Value = serde_json::from_str(&reply.text)?;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let [event] = events.as_slice() else { anyhow::bail!("{} Events", events.len()) };
        ensure!(event["involvedObject"]["uid"] == uid, "{event}");
        ensure!(event["reason"] == "PoolExhausted" && event["type"] == "Warning", "{event}");
        let message =
            "all 5 addresses of 10.245.0.0/29 that Pods behind a gateway may have are in use";
        ensure!(event["message"] == message, "{event}");
        Ok(())
    })
}
