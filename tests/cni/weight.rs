//! How much memory does a daemon take in a large cluster? 10,000 blocks of other nodes, and 100 of its own which are half full.
//! A part of the benchmark.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use serde_json::{Value, json};

use crate::cases::Scene;
use crate::cases::cluster::{self, CALICO, create};
use crate::daemon::{Daemon, pool};
use crate::runtime::Runtime;
use lab::cluster::Cluster;
use lab::namespace::Namespace;
use lab::usage::Usage;
use lab::wait::{PATIENCE, now, wait_until};

const FOREIGN: usize = 10_000;
const OWN: usize = 100;
const BLOCK: usize = 64;
const WRITERS: usize = 8;

pub(crate) fn run(scene: &Scene) -> Result<()> {
    let cluster = cluster::cluster(scene, &["n1"])?;
    create(&cluster, &format!("{CALICO}/ippools"), &pool("large", "10.0.0.0/12", 26))?;
    let begun = now();
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= FOREIGN + OWN {
                    return Ok(());
                }
                block(&cluster, number)?;
            }
        };
        let running: Vec<_> = (0..WRITERS).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|it| it.join().unwrap_or_else(|_| Ok(()))).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    eprintln!("{} blocks are written after {:.0} s", FOREIGN + OWN, begun.elapsed().as_secs_f64());
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    let begun = now();
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let mut runtime =
        Runtime::new(&host, scene.plugins()?, &scene.directory, crate::cases::ptp()?)?;
    runtime.configuration["ipam"]["ipv4_pools"] = json!(["large"]);
    runtime.configuration["ipam"]["assign_ipv6"] = "false".into();
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "first", &runtime.configuration)?.done()
    })?;
    let ready = begun.elapsed();
    for number in 0..100 {
        runtime.ask("ADD", &format!("c{number}"), &runtime.configuration)?.done()?;
    }
    let usage = Usage::of(daemon.fairway.process_id()?)?;
    println!("{FOREIGN} blocks of others, {OWN} own ones with {} addresses each", BLOCK / 2);
    println!("the first address after a start              {:6.2} s", ready.as_secs_f64());
    println!("memory without the program itself            {:6.1} MiB", usage.resident_mebibytes);
    println!("its peak, while lists are read               {:6.1} MiB", usage.peak_mebibytes);
    Ok(())
}

/// A confirmed block: the first ones are half full, and the daemon's; the others are of 1,000 nodes.
fn block(cluster: &Cluster, number: usize) -> Result<()> {
    let is_own = number < OWN;
    let node = if is_own { "n1".to_owned() } else { format!("other-{}", number % 1000) };
    let (third, fourth) = (number / 4, number % 4 * BLOCK);
    let prefix = format!("10.{}.{}.{fourth}/26", third / 256, third % 256);
    let name = prefix.replace(['.', '/'], "-");
    let taken = BLOCK / 2;
    let attribute = |ordinal: usize| {
        json!({
            "handle_id": format!("pods.{number}-{ordinal}"),
            "secondary": {
                "node": node, "namespace": "shop", "pod": format!("web-{number}-{ordinal}"),
                "timestamp": "2026-11-29 10:00:00 +0000 UTC",
            },
        })
    };
    let allocations: Vec<Value> =
        (0..BLOCK).map(|it| if it < taken { json!(it) } else { Value::Null }).collect();
    let sequences: serde_json::Map<String, Value> =
        (0..taken).map(|it| (it.to_string(), json!(it))).collect();
    let object = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlock", "metadata": {"name": name},
        "spec": {
            "cidr": prefix, "affinity": format!("host:{node}"), "allocations": allocations,
            "unallocated": (taken..BLOCK).collect::<Vec<_>>(),
            "attributes": (0..taken).map(attribute).collect::<Vec<_>>(),
            "sequenceNumber": taken, "sequenceNumberForAllocation": sequences,
            "deleted": false, "strictAffinity": false,
        },
    });
    let affinity = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity",
        "metadata": {"name": format!("{node}-{name}")},
        "spec": {
            "cidr": prefix, "node": node, "state": "confirmed", "type": "host", "deleted": "false",
        },
    });
    for (plural, object) in [("ipamblocks", object), ("blockaffinities", affinity)] {
        create(cluster, &format!("{CALICO}/{plural}"), &object)?;
    }
    Ok(())
}
