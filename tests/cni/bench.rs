//! How fast do Pods get their addresses? In one run: the plugin with the daemon and the API server, the same writes alone, a new
//! process with the requests of calico-ipam for each ADD over a new TLS connection, and host-local. Run as root by
//! `cargo test --test cni -- --bench`; needs the programs of the suite, and curl.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::cases::cluster::{self, CALICO, create};
use crate::cases::{Scene, ptp};
use crate::daemon::{Daemon, pool};
use crate::runtime::Runtime;
use lab::cluster::{Cluster, TOKEN};
use lab::latencies::Latencies;
use lab::namespace::Namespace;
use lab::wait::{PATIENCE, now, wait_until};

/// Pods one after the other.
const LONE: usize = 100;
/// Pods at once, and how many processes a runtime starts at the same time.
const CROWD: usize = 500;
const AT_ONCE: usize = 50;

pub(crate) fn run(scene: &Scene) -> Result<()> {
    let cluster = cluster::cluster(scene, &["n1"])?;
    for pool in [pool("many4", "10.250.0.0/16", 22), pool("many6", "fd00:250::/64", 118)] {
        create(&cluster, &format!("{CALICO}/ippools"), &pool)?;
    }
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let mut runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    runtime.configuration["ipam"]["ipv4_pools"] = json!(["many4"]);
    runtime.configuration["ipam"]["ipv6_pools"] = json!(["many6"]);
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "warm", &runtime.configuration)?.done()
    })?;
    lone(&cluster, &runtime)?;
    crowd(&cluster, &runtime)
}

fn lone(cluster: &Cluster, runtime: &Runtime<'_>) -> Result<()> {
    let (mut ours, mut bare, mut local) =
        (Latencies::default(), Latencies::default(), Latencies::default());
    let before = requests(cluster)?;
    for it in 0..LONE {
        let begun = now();
        runtime.ask("ADD", &format!("lone{it}"), &runtime.configuration)?.done()?;
        ours.push(begun.elapsed());
    }
    let count = requests(cluster)? - before;
    let mut blocks = cluster::list(cluster, "ipamblocks")?;
    blocks.truncate(2);
    for it in 0..LONE {
        let begun = now();
        writes(cluster, &mut blocks, it)?;
        bare.push(begun.elapsed());
        let begun = now();
        runtime.local("ADD", &format!("local{it}"))?.done()?;
        local.push(begun.elapsed());
    }
    let row = |name: &str, it: &Latencies| {
        println!("{name:<44} p50 {:6.2} ms  p99 {:6.2} ms", it.percentile(50), it.percentile(99));
    };
    println!("a lone ADD of two families, {LONE} times");
    row("fairway-cni, daemon, API server", &ours);
    row("the same three writes alone (plain HTTP)", &bare);
    row("host-local, one family for each file", &local);
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    let each = count as f64 / LONE as f64;
    println!("requests to the API server for each ADD: {each:.2}\n");
    Ok(())
}

/// A handle and two blocks.
fn writes(cluster: &Cluster, blocks: &mut [Value], number: usize) -> Result<()> {
    let name = format!("bare{number}");
    let handle = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMHandle", "metadata": {"name": name},
        "spec": {"handleID": name, "block": {"10.250.0.0/22": 1}},
    });
    create(cluster, &format!("{CALICO}/ipamhandles"), &handle)?;
    for block in blocks {
        let sequence = block["spec"]["sequenceNumber"].as_u64().unwrap_or(0);
        block["spec"]["sequenceNumber"] = (sequence + 1).into();
        let name = block["metadata"]["name"].as_str().context("a name")?;
        let reply = cluster.ask("PUT", &format!("{CALICO}/ipamblocks/{name}"), Some(block))?;
        ensure!(reply.status == 200, "{} {}", reply.status, reply.text);
        *block = reply.json()?;
    }
    Ok(())
}

fn crowd(cluster: &Cluster, runtime: &Runtime<'_>) -> Result<()> {
    let before = requests(cluster)?;
    let ours = at_once(|it| {
        runtime.ask("ADD", &format!("c{it}"), &runtime.configuration)?.done().map(drop)
    })?;
    let count = requests(cluster)? - before;
    let blocks = cluster::list(cluster, "ipamblocks")?;
    let names = blocks.iter().filter_map(|it| Some(it["metadata"]["name"].as_str()?.to_owned()));
    let names: Vec<String> = names.take(2).collect();
    let upstream = at_once(|it| replay(cluster, &names, it))?;
    let local = at_once(|it| runtime.local("ADD", &format!("l{it}"))?.done().map(drop))?;
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    let each = count as f64 / CROWD as f64;
    println!("{CROWD} Pods of two families, {AT_ONCE} processes at a time");
    println!("fairway-cni, daemon, API server              {:6.2} s", ours.as_secs_f64());
    println!("calico-ipam's requests, a new process each   {:6.2} s", upstream.as_secs_f64());
    println!("host-local                                   {:6.2} s", local.as_secs_f64());
    println!("requests to the API server for each ADD: {each:.2}");
    println!("ours / calico-ipam's requests: {:.2}", ours.as_secs_f64() / upstream.as_secs_f64());
    Ok(())
}

/// How long it takes to do this for each Pod.
fn at_once(act: impl Fn(usize) -> Result<()> + Sync) -> Result<Duration> {
    let (next, begun) = (AtomicUsize::new(0), now());
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let work = || {
            loop {
                let it = next.fetch_add(1, Ordering::Relaxed);
                if it >= CROWD {
                    return Ok(());
                }
                act(it)?;
            }
        };
        let running: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|it| it.join().unwrap_or_else(|_| Ok(()))).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    Ok(begun.elapsed())
}

/// The requests of calico-ipam for an ADD, in a process of its own with a connection of its own. Its blocks are patched, so
/// that it meets no conflicts, which calico-ipam meets and repeats.
fn replay(cluster: &Cluster, blocks: &[String], number: usize) -> Result<()> {
    let server = format!("https://{}", cluster.address());
    let mut requests: Vec<(&str, String, Option<Value>)> = Vec::new();
    let kinds = ["ippools", "ipamconfigs/default", "ipreservations", "blockaffinities"];
    requests.extend(kinds.iter().map(|it| ("GET", format!("{server}{CALICO}/{it}"), None)));
    requests.push(("GET", format!("{server}/api/v1/nodes/n1"), None));
    let name = format!("replayed{number}");
    for (place, block) in blocks.iter().enumerate() {
        let path = |kind: &str, name: &str| format!("{server}{CALICO}/{kind}/{name}");
        requests.push(("GET", path("blockaffinities", &format!("n1-{block}")), None));
        requests.push(("GET", path("ipamblocks", block), None));
        let counts = json!({"spec": {"block": {format!("10.250.{place}.0/22"): 1}}});
        if place == 0 {
            let handle = json!({
                "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMHandle",
                "metadata": {"name": name}, "spec": {"handleID": name, "block": counts["spec"]["block"]},
            });
            requests.push(("POST", format!("{server}{CALICO}/ipamhandles"), Some(handle)));
        } else {
            requests.push(("GET", path("ipamhandles", &name), None));
            requests.push(("PATCH", path("ipamhandles", &name), Some(counts)));
        }
        let written = json!({"spec": {"sequenceNumber": 1_000_000 + number}});
        requests.push(("PATCH", path("ipamblocks", block), Some(written)));
    }
    let mut command = Command::new("curl");
    command.arg("--fail-early");
    for (place, (verb, url, body)) in requests.iter().enumerate() {
        if place > 0 {
            command.arg("--next");
        }
        command.args(["-s", "-k", "-X", verb, "-o", "/dev/null"]);
        if !url.ends_with("/default") {
            // There may be no IPAMConfig.
            command.arg("--fail");
        }
        command.args(["-H", &format!("Authorization: Bearer {TOKEN}"), url]);
        if let Some(body) = body {
            let kind = if *verb == "POST" { "json" } else { "merge-patch+json" };
            command.args(["-H", &format!("Content-Type: application/{kind}")]);
            command.args(["-d", &body.to_string()]);
        }
    }
    let status = command.stdout(Stdio::null()).status().context("curl")?;
    ensure!(status.success(), "curl ended with {status}");
    Ok(())
}

/// How many requests about blocks, affinities and handles the API server has served, but for lists and watches of the test.
fn requests(cluster: &Cluster) -> Result<u64> {
    let page = cluster.ask("GET", "/metrics", None)?.text;
    let is_counted = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && ["ipamblocks", "ipamhandles", "blockaffinities"].iter().any(|it| line.contains(it))
            && ["POST", "PUT", "GET", "DELETE"]
                .iter()
                .any(|it| line.contains(&format!("verb=\"{it}\"")))
    };
    let number = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    let sum: f64 = page.lines().filter(is_counted).filter_map(number).sum();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    Ok(sum as u64)
}

/// A configuration of host-local with both families.
pub(crate) fn host_local(folder: &str) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "local",
        "ipam": {
            "type": "host-local", "dataDir": folder,
            "ranges": [[{"subnet": "10.251.0.0/16"}], [{"subnet": "fd00:251::/64"}]],
        },
    })
}
