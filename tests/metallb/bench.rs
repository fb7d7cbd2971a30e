//! What do both cost, and how fast are they, on the same machine and the same kind of API server? Many Services that are there when the
//! software starts, and then endpoints that move. Reports and judges nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use lab::suite::Cell;
use lab::usage::Usage;
use lab::wait::{now, wait_until};

use crate::cluster::{SYSTEM, object};
use crate::node::NODES;
use crate::stage::{Software, Stage};
use lab::metallb::{Mode, Programs};

/// Services beside the one that changes.
const SERVICES: usize = 2_000;
const CHANGES: usize = 30;
const LIMIT: Duration = Duration::from_secs(600);
const MEASURED: &str = "192.0.2.1";

/// A line of the table.
struct Measured {
    name: &'static str,
    routes: Duration,
    controller: Usage,
    speakers: Vec<Usage>,
    changes: Vec<Duration>,
}

pub(crate) fn run(assets: &Path, programs: &Programs) -> Result<()> {
    println!("{SERVICES} Services with an endpoint on each of three nodes, two routers:\n");
    println!(
        "| | all routes after the start, s | controller: CPU, s | MiB | each speaker: CPU, s | MiB | an endpoint moves, ms: p50 | max |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let kinds = [
        ("Fairway", Software::Fairway, Mode::Native),
        ("MetalLB 0.16.1, native mode", Software::Metallb, Mode::Native),
        ("MetalLB 0.16.1, FRR mode", Software::Metallb, Mode::Frr),
    ];
    for (number, (name, software, mode)) in (300..).zip(kinds) {
        let directory = tempfile::tempdir()?;
        let cell = Cell { number, directory: directory.path().to_owned() };
        let objects = configuration(mode);
        let mut stage = Stage::furnished(&cell, mode, assets, programs, &objects, &services())?;
        print(&measure(name, software, &mut stage)?);
    }
    Ok(())
}

fn measure(name: &'static str, software: Software, stage: &mut Stage) -> Result<Measured> {
    let begun = now();
    stage.start(software)?;
    let expected = (SERVICES + 1) * NODES.len() - (NODES.len() - 1);
    wait_until(&format!("{name} announces everything"), LIMIT, || {
        let routes = stage.route_counts()?;
        ensure!(routes.iter().all(|it| *it == expected), "{routes:?} of {expected}");
        Ok(())
    })?;
    let routes = begun.elapsed();
    let mut changes = Vec::new();
    for change in 0..CHANGES {
        let node = NODES[(change + 1) % 2];
        let written = now();
        stage.put_endpoint(&slice("measured", &[node]))?;
        wait_until(&format!("{name}: the route is by {node}"), LIMIT, || {
            let told = stage.nodes_that_tell(MEASURED)?;
            ensure!(told == [node], "it is by {told:?}");
            Ok(())
        })?;
        changes.push(written.elapsed());
    }
    changes.sort();
    let usages = stage.process_ids().into_iter().map(Usage::of).collect::<Result<Vec<_>>>()?;
    let (controller, speakers) = usages.split_first().context("no process")?;
    Ok(Measured { name, routes, controller: *controller, speakers: speakers.to_vec(), changes })
}

fn print(it: &Measured) {
    let milliseconds = |it: Option<&Duration>| it.map_or(0.0, |it| it.as_secs_f64() * 1e3);
    let count = it.speakers.len().max(1) as f64;
    let mean = |of: fn(&Usage) -> f64| it.speakers.iter().map(of).sum::<f64>() / count;
    println!(
        "| {} | {:.1} | {:.1} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} |",
        it.name,
        it.routes.as_secs_f64(),
        it.controller.processor_time.as_secs_f64(),
        it.controller.peak_mebibytes,
        mean(|it| it.processor_time.as_secs_f64()),
        mean(|it| it.peak_mebibytes),
        milliseconds(it.changes.get(it.changes.len() / 2)),
        milliseconds(it.changes.last()),
    );
}

fn configuration(mode: Mode) -> Vec<Value> {
    let of_metallb = |kind: &str, name: &str, spec: Value| {
        object("metallb.io/v1beta1", kind, SYSTEM, name, json!({ "spec": spec }))
    };
    let mut all = crate::cluster::peers(mode);
    all.push(of_metallb("IPAddressPool", "beside", json!({ "addresses": ["198.18.0.0/15"] })));
    let measured = json!({ "addresses": ["192.0.2.0/24"], "autoAssign": false });
    all.push(of_metallb("IPAddressPool", "measured", measured));
    all.push(of_metallb("BGPAdvertisement", "all", json!({})));
    all
}

fn services() -> Vec<Value> {
    let service = |name: &str, more: Value| {
        let mut service = json!({ "spec": {
            "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
            "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 }],
        } });
        crate::cluster::merge(&mut service, more);
        object("v1", "Service", "shop", name, service)
    };
    let mut all = Vec::new();
    for number in 0..SERVICES {
        let name = format!("beside-{number}");
        all.push(service(&name, json!({})));
        all.push(slice(&name, &NODES));
    }
    let annotations = json!({ "metallb.io/loadBalancerIPs": MEASURED });
    all.push(service("measured", json!({
        "metadata": { "annotations": annotations }, "spec": { "externalTrafficPolicy": "Local" },
    })));
    all.push(slice("measured", &NODES[..1]));
    all
}

fn slice(service: &str, nodes: &[&str]) -> Value {
    let endpoints: Vec<Value> = nodes
        .iter()
        .map(|node| json!({ "addresses": ["10.244.0.1"], "nodeName": node, "conditions": { "ready": true } }))
        .collect();
    object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "shop",
        &format!("{service}-1"),
        json!({
            "metadata": { "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4", "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
            "endpoints": endpoints,
        }),
    )
}
