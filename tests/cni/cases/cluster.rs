//! A cluster: pools, blocks, affinities and handles in a real API server.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Scene, ptp};
use crate::daemon::{Daemon, pool, spool};
use crate::runtime::{Container, Runtime};
use lab::cluster::Cluster;
use lab::fairway::program;
use lab::namespace::{Namespace, Network, Place};
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};

pub(crate) const CALICO: &str = "/apis/crd.projectcalico.org/v1";

/// An API server with the definitions, two pools, and these nodes.
pub(crate) fn cluster(scene: &Scene, nodes: &[&str]) -> Result<Cluster> {
    let assets = scene.assets.as_deref().context("there is no API server here")?;
    let mut cluster = Cluster::start(assets)?;
    cluster.wait_until_ready()?;
    furnish(scene, &cluster, nodes)?;
    Ok(cluster)
}

/// Adds definitions that `fairway crds` prints with these words.
pub(super) fn define(scene: &Scene, cluster: &Cluster, words: &[&str]) -> Result<()> {
    let definitions = output_of(bounded(program()).arg("crds").args(words))?;
    let file = scene.directory.join("crds.yaml");
    std::fs::write(&file, definitions)?;
    cluster.kubectl(&["apply", "-f", "-"], Some(&file))?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all"], None).map(drop)
}

/// Adds the definitions, two pools, and these nodes.
pub(super) fn furnish(scene: &Scene, cluster: &Cluster, nodes: &[&str]) -> Result<()> {
    define(scene, cluster, &["--ipam"])?;
    for pool in [pool("v4", "10.244.0.0/24", 28), pool("v6", "fd00:244::/120", 124)] {
        create(cluster, &format!("{CALICO}/ippools"), &pool)?;
    }
    for node in nodes {
        let labels = json!({"kubernetes.io/hostname": node});
        let metadata = json!({"name": node, "labels": labels});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata});
        create(cluster, "/api/v1/nodes", &node)?;
    }
    Ok(())
}

pub(crate) fn create(cluster: &Cluster, path: &str, object: &Value) -> Result<()> {
    let reply = cluster.ask("POST", path, Some(object))?;
    ensure!(reply.status == 201, "{path}: {} {}", reply.status, reply.text);
    Ok(())
}

pub(crate) fn list(cluster: &Cluster, plural: &str) -> Result<Vec<Value>> {
    let reply = cluster.ask("GET", &format!("{CALICO}/{plural}"), None)?;
    ensure!(reply.status == 200, "{plural}: {} {}", reply.status, reply.text);
    let listed: Value = serde_json::from_str(&reply.text)?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

/// How many addresses blocks say are taken.
pub(super) fn taken(cluster: &Cluster) -> Result<usize> {
    let blocks = list(cluster, "ipamblocks")?;
    let slots = |it: &Value| {
        let slots = it["spec"]["allocations"].as_array().map(Vec::as_slice).unwrap_or_default();
        slots.iter().filter(|it| !it.is_null()).count()
    };
    Ok(blocks.iter().map(slots).sum())
}

/// Adds once the daemon has read what it needs.
pub(super) fn first(runtime: &Runtime<'_>, cell: usize, id: &str) -> Result<Container> {
    wait_until("the daemon knows the pools", PATIENCE, || runtime.add(cell, id))
}

pub(super) fn containers_get_addresses_of_the_cluster(scene: &Scene) -> Result<()> {
    let cluster = cluster(scene, &["n1"])?;
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let mut containers = vec![first(&runtime, scene.cell, "c0")?];
    for it in 1..20 {
        containers.push(runtime.add(scene.cell, &format!("c{it}"))?);
    }
    ensure!(taken(&cluster)? == 40, "{} are taken", taken(&cluster)?);
    let affinities = list(&cluster, "blockaffinities")?;
    for affinity in &affinities {
        let spec = &affinity["spec"];
        ensure!(spec["state"] == "confirmed" && spec["node"] == "n1", "{affinity}");
        let labels = &affinity["metadata"]["labels"];
        ensure!(labels["projectcalico.org/hostname-hash"].is_string(), "{affinity}");
    }
    ensure!(list(&cluster, "ipamhandles")?.len() == 20, "handles");
    // What Calico has written beside is kept.
    let block = list(&cluster, "ipamblocks")?.into_iter().next().context("a block")?;
    let name = block["metadata"]["name"].as_str().context("its name")?;
    let patch = r#"{"spec": {"ofAnotherRelease": {"a": 1}}}"#;
    cluster.kubectl(&["patch", "ipamblock", name, "--type=merge", "-p", patch], None)?;
    for container in &containers {
        runtime.delete(container)?;
    }
    ensure!(taken(&cluster)? == 0, "{} stay behind", taken(&cluster)?);
    let handles = list(&cluster, "ipamhandles")?;
    ensure!(handles.is_empty(), "handles stay behind: {handles:?}");
    let blocks = list(&cluster, "ipamblocks")?;
    let block = blocks.iter().find(|it| it["metadata"]["name"] == name).context("the block")?;
    ensure!(block["spec"]["ofAnotherRelease"]["a"] == 1, "{block}");
    daemon.fairway.stop()
}

pub(super) fn an_api_server_that_is_away_costs_no_address(scene: &Scene) -> Result<()> {
    let mut cluster = cluster(scene, &["n1"])?;
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let gone = first(&runtime, scene.cell, "c0")?;
    let stays = runtime.add(scene.cell, "c1")?;
    cluster.kill_server();
    let refused = runtime.ask("ADD", "c2", &runtime.configuration)?;
    ensure!(refused.error() == Some(11), "{refused:?}");
    runtime.delete(&gone)?;
    ensure!(std::fs::read_dir(spool(&scene.directory))?.count() == 1, "nothing waits");
    // The daemon has the call in its folder, also over a restart.
    daemon.fairway.kill()?;
    daemon.start()?;
    cluster.start_server()?;
    cluster.wait_until_ready()?;
    wait_until("the addresses are released", PATIENCE, || {
        ensure!(taken(&cluster)? == 2, "{} are taken", taken(&cluster)?);
        Ok(())
    })?;
    let again = runtime.ask("ADD", "c1", &runtime.configuration)?.done()?;
    ensure!(crate::runtime::addresses(&again) == stays.addresses(), "{again}");
    let next = runtime.ask("ADD", "c2", &runtime.configuration)?.done()?;
    ensure!(crate::runtime::addresses(&next).len() == 2, "{next}");
    daemon.fairway.stop()
}

pub(super) fn what_no_pod_has_any_more_is_taken_back(scene: &Scene) -> Result<()> {
    let cluster = cluster(scene, &["n1", "n2"])?;
    define(scene, &cluster, &[])?;
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    for namespace in ["shop", "metallb-system"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        create(&cluster, "/api/v1/namespaces", &namespace)?;
    }
    let (gone, stays) = (first(&runtime, scene.cell, "gone")?, runtime.add(scene.cell, "stays")?);
    pod(&cluster, "stays", &stays)?;
    by_hand(&cluster, &gone, &stays)?;
    let gone = runtime.add(scene.cell, "gone-too")?;
    let log = scene.directory.join("controller.log");
    let _controller = start_controller(&cluster, &Network::Own, &log)?;
    wait_until("the address without a Pod is released", PATIENCE, || {
        ensure!(taken(&cluster)? == 2, "{} are taken", taken(&cluster)?);
        // Handles are written after their blocks.
        let handles = list(&cluster, "ipamhandles")?;
        let ids: Vec<&Value> = handles.iter().map(|it| &it["spec"]["handleID"]).collect();
        ensure!(ids == ["pods.stays"], "{ids:?}");
        Ok(())
    })?;
    // The daemon does not believe what it remembers.
    runtime.delete(&gone)?;
    let next = runtime.ask("ADD", "next", &runtime.configuration)?.done()?;
    let given = crate::runtime::addresses(&next);
    ensure!(given.iter().all(|it| !stays.addresses().contains(it)), "{next}");
    // A node that is gone leaves nothing, once its Pods are.
    cluster
        .kubectl(&["delete", "pod", "-n", "shop", "--all", "--force", "--grace-period=0"], None)?;
    cluster.kubectl(&["delete", "node", "n1"], None)?;
    wait_until("nothing is left of the node", PATIENCE, || {
        let left = [
            list(&cluster, "ipamblocks")?,
            list(&cluster, "blockaffinities")?,
            list(&cluster, "ipamhandles")?,
        ]
        .concat();
        ensure!(left.is_empty(), "{} objects are left", left.len());
        Ok(())
    })
}

/// `fairway ipam` of the cluster: what a Pod uses is not released, what nobody uses is.
fn by_hand(cluster: &Cluster, gone: &Container, stays: &Container) -> Result<()> {
    let kubeconfig = cluster.kubeconfig("by-hand", lab::cluster::TOKEN)?.display().to_string();
    let fairway = |words: &[&str]| {
        output_of(bounded(program()).arg("ipam").args(words).args(["--kubeconfig", &kubeconfig]))
    };
    let shown = fairway(&["show"])?;
    let row = shown.lines().find(|it| it.starts_with("v4")).context("a row")?;
    let cells: Vec<&str> = row.split_whitespace().collect();
    ensure!(cells.get(4) == Some(&"2"), "{shown}");
    fairway(&["check"])?;
    let of = |it: &Container| it.addresses();
    let all = [of(gone), of(stays)].concat();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let refused = fairway(&[&["release"], all.as_slice()].concat());
    let refused = format!("{:#}", refused.err().context("what a Pod uses is released")?);
    ensure!(refused.contains("shop/stays") && refused.contains("--force"), "{refused}");
    ensure!(taken(cluster)? == 4, "{} are taken", taken(cluster)?);
    let gone = of(gone);
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    fairway(&[&["release"], gone.as_slice()].concat())?;
    ensure!(taken(cluster)? == 2, "{} are taken", taken(cluster)?);
    fairway(&["check"])?;
    // A handle without an address, as a process leaves that is killed.
    let handle = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMHandle",
        "metadata": {"name": "pods.lost"},
        "spec": {"handleID": "pods.lost", "block": {"10.244.0.0/28": 1}},
    });
    create(cluster, &format!("{CALICO}/ipamhandles"), &handle)?;
    let affinity = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity",
        "metadata": {"name": "n2-10-244-0-240-28"},
        "spec": {
            "cidr": "10.244.0.240/28", "node": "n2", "state": "pending", "type": "host", "deleted": "false",
        },
    });
    create(cluster, &format!("{CALICO}/blockaffinities"), &affinity)?;
    let found = fairway(&["check"])?;
    let are_named = |text: &str| ["pods.lost", "10.244.0.240"].map(|it| text.contains(it));
    ensure!(are_named(&found) == [true, true], "{found}");
    let fixed = fairway(&["check", "--fix", "--grace", "2s"])?;
    ensure!(are_named(&fixed) == [true, true], "{fixed}");
    let left = fairway(&["check"])?;
    ensure!(are_named(&left) == [false, false], "{left}");
    Ok(())
}

/// A controller that takes back at once what is not used.
pub(super) fn start_controller(
    cluster: &Cluster,
    place: &impl Place,
    log: &Path,
) -> Result<Process> {
    let kubeconfig = cluster.kubeconfig("controller", lab::cluster::TOKEN)?.display().to_string();
    let words = [
        ["controller", "--ipam"].as_slice(),
        &["--ipam-grace", "4s", "--metrics-listen", "none", "--node-api-listen", "none"],
        &["--kubeconfig", &kubeconfig],
    ];
    let words: Vec<String> = words.concat().into_iter().map(str::to_owned).collect();
    Process::spawn(place, &program(), &words, log)
}

/// The Pod of a container, as its kubelet tells of it.
fn pod(cluster: &Cluster, name: &str, container: &Container) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "nodeName": "n1", "automountServiceAccountToken": false,
            "containers": [{"name": "it", "image": "it"}],
        },
    });
    create(cluster, "/api/v1/namespaces/shop/pods", &pod)?;
    let ips: Vec<Value> = container.addresses().iter().map(|it| json!({"ip": it})).collect();
    let status = json!({"status": {"phase": "Running", "podIP": ips[0]["ip"], "podIPs": ips}});
    let words = ["patch", "pod", name, "-n", "shop", "--subresource=status", "--type=merge", "-p"];
    let status = status.to_string();
    cluster.kubectl(&[words.as_slice(), &[&status]].concat(), None).map(drop)
}
