//! How long do kube-proxy and Fairway take, on the same node and the same API server? Ratios, printed as a table; the
//! machine is emulated, so absolute figures mean nothing elsewhere.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it makes what is missing; other positions are constants"
)]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::{Api, Options, node, service, start_fairway, start_kube_proxy_with};
use super::probes::tcp_within;
use super::segment::{PODS, Segment};
use lab::make_directory;
use lab::process::Process;
use lab::wait::{now, wait_until};

/// How many Services, unless FAIRWAY_SERVICES says so; each has five endpoints.
const SERVICES: usize = 1_000;
/// How often an endpoint is changed.
const CHANGES: usize = 5;
const START_LIMIT: Duration = Duration::from_secs(600);
/// Of one question: what nobody answers yet is asked again so soon.
const PROBE: Duration = Duration::from_millis(200);

/// What one proxy took.
struct Measured {
    name: &'static str,
    /// From its start until the first, the middle and the last Service answer.
    cold_start: Duration,
    /// From the write of a slice until a new connection meets the new Pod: the median.
    change: Duration,
    cpu: Duration,
    memory_mib: u64,
}

fn cluster_address(number: usize) -> String {
    format!("10.96.{}.{}", 1 + number / 200, 1 + number % 200)
}

/// A Service that only addresses exist of, but for those with a Pod in place of the first endpoint.
fn objects(number: usize, pod: Option<&str>) -> [Value; 2] {
    let name = format!("b{number}");
    let address = cluster_address(number);
    let ports = json!([{"name": "t", "port": 80, "protocol": "TCP"}]);
    let spec = json!({"clusterIP": address, "clusterIPs": [address], "ports": ports});
    let nobody = (0..5).map(|it| format!("10.{}.{}.{}", 100 + it, number / 200, 1 + number % 200));
    let addresses: Vec<String> = match pod {
        Some(pod) => vec![pod.to_owned()],
        None => nobody.collect(),
    };
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|it| json!({"addresses": [it], "nodeName": "node-1", "conditions": {"ready": true}}))
        .collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": format!("{name}-ipv4"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": name},
        },
        "ports": [{"name": "t", "port": 8080, "protocol": "TCP"}],
        "endpoints": endpoints,
    });
    [service(&name, spec, ""), slice]
}

/// Those that answer.
fn watched(count: usize) -> [usize; 3] {
    [0, count / 2, count - 1]
}

pub(in crate::cases) fn run() -> Result<()> {
    let api = Api::given().context("an API server")?;
    let count = std::env::var("FAIRWAY_SERVICES").ok().and_then(|it| it.parse().ok());
    let count: usize = count.unwrap_or(SERVICES);
    api.apply(&node())?;
    for number in 0..count {
        let pod = watched(count).contains(&number).then_some(PODS[0]);
        for object in objects(number, pod) {
            api.apply(&object)?;
        }
    }
    eprintln!("{count} Services with 5 endpoints each");
    let ipvs = Options { mode: "ipvs", min_sync_period: "1s" };
    let eager = Options { mode: "ipvs", min_sync_period: "1ms" };
    let nftables = Options { mode: "nftables", min_sync_period: "1s" };
    let proxies: [(&str, Option<Options>); 4] = [
        ("Fairway", None),
        ("kube-proxy, ipvs, 1 s", Some(ipvs)),
        ("kube-proxy, ipvs, 1 ms", Some(eager)),
        ("kube-proxy, nftables, 1 s", Some(nftables)),
    ];
    let mut all = Vec::new();
    for ((name, options), number) in proxies.into_iter().zip(200..) {
        let directory = std::env::temp_dir().join(format!("fairway-proxy-bench-{number}"));
        make_directory(&directory)?;
        let segment = Segment::build(number, &directory)?;
        api.relay_into(&segment.node)?;
        all.push(measure(name, &segment, api, count, |segment| match &options {
            Some(options) => start_kube_proxy_with(segment, options),
            None => start_fairway(segment, &[]),
        })?);
        let last = all.last().context("a measurement")?;
        print(last, all.first().context("the first")?);
    }
    Ok(())
}

fn print(it: &Measured, ours: &Measured) {
    let ratio =
        |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64().max(1e-6);
    println!(
        "{:26} cold start {:8.2} s ({:5.1}x)  one endpoint {:8.1} ms ({:5.1}x)  CPU {:7.2} s ({:5.1}x)  memory {:4} MiB",
        it.name,
        it.cold_start.as_secs_f64(),
        ratio(it.cold_start, ours.cold_start),
        it.change.as_secs_f64() * 1e3,
        ratio(it.change, ours.change),
        it.cpu.as_secs_f64(),
        ratio(it.cpu, ours.cpu),
        it.memory_mib,
    );
}

fn measure(
    name: &'static str,
    segment: &Segment,
    api: Api,
    count: usize,
    start: impl FnOnce(&Segment) -> Result<Process>,
) -> Result<Measured> {
    let begun = now();
    let mut proxy = start(segment)?;
    for number in watched(count) {
        let to = format!("{}:80", cluster_address(number));
        wait_until(&format!("{name}: {to} answers"), START_LIMIT, || {
            proxy.check_running()?;
            let answer = tcp_within(PROBE, &segment.client, &to)?.to_string();
            ensure!(answer.starts_with("pod1"), "it is {answer}");
            Ok(())
        })?;
    }
    let cold_start = begun.elapsed();
    eprintln!("{name}: all answer after {:.2} s", cold_start.as_secs_f64());
    let mut changes = Vec::new();
    let number = count / 2;
    for change in 0..CHANGES {
        let position = 1 - change % 2;
        let [_, slice] = objects(number, Some(PODS[position]));
        let written = now();
        api.apply(&slice)?;
        let pod = format!("pod{}", position + 1);
        let to = format!("{}:80", cluster_address(number));
        wait_until(&format!("{name}: {pod} answers"), START_LIMIT, || {
            let answer = tcp_within(PROBE, &segment.client, &to)?.to_string();
            ensure!(answer.starts_with(&pod), "it is {answer}");
            Ok(())
        })?;
        changes.push(written.elapsed());
    }
    changes.sort();
    let [_, slice] = objects(number, Some(PODS[0]));
    api.apply(&slice)?;
    let (cpu, memory_mib) = usage(&proxy)?;
    let change = *changes.get(CHANGES / 2).context("a median")?;
    proxy.kill();
    Ok(Measured { name, cold_start, change, cpu, memory_mib })
}

/// CPU time and the largest resident memory of a process.
fn usage(process: &Process) -> Result<(Duration, u64)> {
    let folder = Path::new("/proc").join(process.id().to_string());
    let stat = std::fs::read_to_string(folder.join("stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("a state")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    let cpu = Duration::from_millis((ticks(11) + ticks(12)) * 10);
    let status = std::fs::read_to_string(folder.join("status"))?;
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).context("memory")?;
    let kib: u64 = peak.trim().split(' ').next().context("memory")?.parse()?;
    Ok((cpu, kib / 1024))
}
