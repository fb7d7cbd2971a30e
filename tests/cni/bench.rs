//! How fast do Pods get their addresses? In one run: the plugin with the daemon and the API server, the same writes alone, a new
//! process with the requests of calico-ipam for each ADD over a new TLS connection, and host-local. Run as root by
//! `cargo test --test cni -- --bench`; needs the programs of the suite, and curl.

use std::collections::BTreeMap;
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
    for pool in [pool("many4", "10.250.0.0/16", 26), pool("many6", "fd00:250::/64", 122)] {
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
    let after = requests(cluster)?;
    let mut blocks = pair(cluster)?;
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
    print_requests(&before, &after, LONE);
    println!();
    Ok(())
}

/// A block of each family.
fn pair(cluster: &Cluster) -> Result<Vec<Value>> {
    let blocks = cluster::list(cluster, "ipamblocks")?;
    let of = |pool: &str| {
        let is_of =
            |it: &&Value| it["metadata"]["name"].as_str().is_some_and(|it| it.starts_with(pool));
        blocks.iter().find(is_of).cloned().context("a block")
    };
    Ok(vec![of("10-250-")?, of("fd00-250-")?])
}

/// A handle and two blocks.
fn writes(cluster: &Cluster, blocks: &mut [Value], number: usize) -> Result<()> {
    let name = format!("bare{number}");
    let handle = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMHandle", "metadata": {"name": name},
        "spec": {"handleID": name, "block": {"10.250.0.0/26": 1}},
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
    let after = requests(cluster)?;
    print_requests(&before, &after, CROWD);
    let blocks = pair(cluster)?;
    let names = blocks.iter().filter_map(|it| Some(it["metadata"]["name"].as_str()?.to_owned()));
    let names: Vec<String> = names.collect();
    let upstream = at_once(|it| replay(cluster, &names, it))?;
    let local = at_once(|it| runtime.local("ADD", &format!("l{it}"))?.done().map(drop))?;
    println!("{CROWD} Pods of two families, {AT_ONCE} processes at a time");
    println!("fairway-cni, daemon, API server              {:6.2} s", ours.as_secs_f64());
    println!("calico-ipam's requests, a new process each   {:6.2} s", upstream.as_secs_f64());
    println!("host-local                                   {:6.2} s", local.as_secs_f64());
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

/// The requests of calico-ipam for an ADD, in a process of its own with a connection of its own. A block is patched, and
/// that is tried once: calico-ipam reads and writes again after a conflict.
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
        let counts = json!({"spec": {"block": {format!("10.250.{place}.0/26"): 1}}});
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
        // There may be no IPAMConfig; and a write of a block that meets others is refused, and not repeated here.
        let may_fail =
            url.ends_with("/default") || *verb == "PATCH" && url.contains("/ipamblocks/");
        if !may_fail {
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

/// How many requests about blocks, affinities and handles the API server has served, by verb, kind and answer; but for the
/// lists of the test and for watches.
fn requests(cluster: &Cluster) -> Result<BTreeMap<String, u64>> {
    let page = cluster.ask("GET", "/metrics", None)?.text;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in page.lines().filter(|it| it.starts_with("apiserver_request_total{")) {
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\""))?;
            rest.split('"').next()
        };
        let (Some(verb), Some(kind), Some(code)) =
            (label("verb"), label("resource"), label("code"))
        else {
            continue;
        };
        let is_counted = ["ipamblocks", "ipamhandles", "blockaffinities"].contains(&kind)
            && ["POST", "PUT", "GET", "DELETE"].contains(&verb);
        let number = line.rsplit(' ').next().and_then(|it| it.parse::<f64>().ok());
        if let Some(number) = number.filter(|_| is_counted) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let number = number as u64;
            *counts.entry(format!("{verb} {kind} {code}")).or_default() += number;
        }
    }
    Ok(counts)
}

/// Prints how many there were since, for each ADD.
fn print_requests(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>, adds: usize) {
    let since = |(what, count): (&String, &u64)| {
        (what.clone(), count - before.get(what).copied().unwrap_or(0))
    };
    let counts: Vec<(String, u64)> = now.iter().map(since).filter(|(_, it)| *it > 0).collect();
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    let each = counts.iter().map(|(_, it)| it).sum::<u64>() as f64 / adds as f64;
    let words: Vec<String> = counts.iter().map(|(what, it)| format!("{it} {what}")).collect();
    println!("requests to the API server for each ADD: {each:.2} ({})", words.join(", "));
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
