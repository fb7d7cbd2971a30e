//! How long do kube-proxy and Fairway take, on the same node and the same API server? Ratios, printed as a table; the
//! machine is emulated, so absolute figures mean nothing elsewhere.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it makes what is missing; other positions are constants"
)]

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::{Api, Options, node, service, start_fairway, start_kube_proxy_with};
use super::probes::tcp_here;
use super::segment::{PODS, Segment};
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::Process;
use lab::wait::{now, poll};

/// How many Services, unless FAIRWAY_SERVICES says so; each has five endpoints. With FAIRWAY_RUNS, Fairway alone is measured,
/// so often.
const SERVICES: usize = 1_000;
/// How often an endpoint is changed.
const CHANGES: usize = 5;
const START_LIMIT: Duration = Duration::from_secs(600);
/// Of all changes. What takes longer is stated as if it had taken that.
const CHANGES_LIMIT: Duration = Duration::from_secs(120);
/// Of one question: what nobody answers yet is asked again so soon.
const PROBE: Duration = Duration::from_millis(50);
/// Between two of them. What is measured is at most both of them too long.
const PAUSE: Duration = Duration::from_millis(20);

/// What one proxy took.
struct Measured {
    name: &'static str,
    /// From its start until the first, the middle and the last Service answer.
    cold_start: Duration,
    /// From the write of a slice until a new connection meets the new Pod.
    changes: Vec<Duration>,
    cpu: Duration,
    memory_mib: u64,
    /// With the kernel, of all processes of the node, until all Services answered.
    netlink: Netlink,
    /// For all changes.
    netlink_changes: Netlink,
}

/// Traffic between programs and the kernel, both ways.
#[derive(Clone, Copy)]
struct Netlink {
    /// Buffers, in each of which are one or more messages.
    buffers: u64,
    bytes: u64,
}

impl Netlink {
    /// The interface that sees it.
    const MONITOR: &str = "nlmon0";

    fn monitor(node: &Namespace) -> Result<()> {
        node.ip(&["link", "add", Self::MONITOR, "type", "nlmon"])?;
        node.ip(&["link", "set", Self::MONITOR, "up"]).map(drop)
    }

    /// Since the start of the monitor.
    fn until_now(node: &Namespace) -> Result<Self> {
        let text = node.ip(&["-s", "-j", "link", "show", Self::MONITOR])?;
        let links: Value = serde_json::from_str(&text)?;
        let count = |key: &str| links[0]["stats64"]["rx"][key].as_u64().context(text.clone());
        Ok(Self { buffers: count("packets")?, bytes: count("bytes")? })
    }

    fn since(self, before: Self) -> Self {
        Self { buffers: self.buffers - before.buffers, bytes: self.bytes - before.bytes }
    }
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
    keep_translated_code()?;
    let ipvs = Options { mode: "ipvs", min_sync_period: "1s" };
    let eager = Options { mode: "ipvs", min_sync_period: "1ms" };
    let nftables = Options { mode: "nftables", min_sync_period: "1s" };
    let proxies: [(&str, Option<Options>); 4] = [
        ("Fairway", None),
        ("kube-proxy, ipvs, 1 s", Some(ipvs)),
        ("kube-proxy, ipvs, 1 ms", Some(eager)),
        ("kube-proxy, nftables, 1 s", Some(nftables)),
    ];
    create(api, 0..1, count)?;
    for ((name, options), number) in proxies.iter().zip(200..) {
        load_modules(name, &segment(api, number)?, options.as_ref())?;
    }
    create(api, 1..count, count)?;
    eprintln!("{count} Services with 5 endpoints each");
    let mut all = Vec::new();
    let alone = std::env::var("FAIRWAY_RUNS").ok().and_then(|it| it.parse().ok());
    let proxies: Vec<_> = match alone {
        Some(runs) => proxies.iter().take(1).cycle().take(runs).copied().collect(),
        None => proxies.to_vec(),
    };
    for ((name, options), number) in proxies.iter().zip(210..) {
        all.push(measure(name, &segment(api, number)?, api, count, options.as_ref())?);
        let last = all.last().context("a measurement")?;
        print(last, all.first().context("the first")?);
    }
    Ok(())
}

/// An emulator translates each instruction before it runs for the first time, and again at another address. No program is
/// at random addresses here: what was translated as it loaded its modules stays so, as the code of a processor does.
fn keep_translated_code() -> Result<()> {
    std::fs::write("/proc/sys/kernel/randomize_va_space", "0").context("address randomization")
}

/// Services of these numbers.
fn create(api: Api, numbers: Range<usize>, count: usize) -> Result<()> {
    for number in numbers {
        let pod = watched(count).contains(&number).then_some(PODS[0]);
        for object in objects(number, pod) {
            api.apply(&object)?;
        }
    }
    Ok(())
}

/// A node of its own.
fn segment(api: Api, number: usize) -> Result<Segment> {
    let directory = std::env::temp_dir().join(format!("fairway-proxy-bench-{number}"));
    make_directory(&directory)?;
    let segment = Segment::build(number, &directory)?;
    // A CNI plugin would: in nftables mode kube-proxy does not.
    segment.node.enable_forwarding()?;
    Netlink::monitor(&segment.node)?;
    api.relay_into(&segment.node)?;
    Ok(segment)
}

fn start(segment: &Segment, options: Option<&Options>) -> Result<Process> {
    match options {
        Some(options) => start_kube_proxy_with(segment, options),
        None => start_fairway(segment, &[]),
    }
}

/// Has the kernel load what this proxy uses: the first one on a machine would wait for it, and those after it would not.
fn load_modules(name: &str, segment: &Segment, options: Option<&Options>) -> Result<()> {
    let mut proxy = start(segment, options)?;
    wait_for_answer(name, &mut proxy, segment, &format!("{}:80", cluster_address(0)))?;
    proxy.kill();
    Ok(())
}

fn wait_for_answer(name: &str, proxy: &mut Process, segment: &Segment, to: &str) -> Result<()> {
    ask_until(name, segment, to, "pod1", START_LIMIT, || proxy.check_running())
}

/// Asks until `pod` answers.
fn ask_until(
    name: &str,
    segment: &Segment,
    to: &str,
    pod: &str,
    limit: Duration,
    mut check: impl FnMut() -> Result<()> + Send,
) -> Result<()> {
    segment.client.enter(|| {
        poll(&format!("{name}: {pod} answers at {to}"), limit, PAUSE, || {
            check()?;
            let answer = tcp_here(PROBE, to)?.to_string();
            ensure!(answer.starts_with(pod), "it is {answer}");
            Ok(())
        })
    })
}

impl Measured {
    fn median_change(&self) -> Duration {
        self.changes.get(self.changes.len() / 2).copied().unwrap_or_default()
    }
}

fn print(it: &Measured, ours: &Measured) {
    let ratio =
        |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64().max(1e-6);
    println!(
        "{:26} cold start {:8.2} s ({:5.1}x)  one endpoint {:8.1} ms ({:5.1}x)  CPU {:7.2} s ({:5.1}x)  memory {:4} MiB\n\
         {:26} netlink: start {} buffers, {} KiB; {} changes {} buffers, {} KiB",
        it.name,
        it.cold_start.as_secs_f64(),
        ratio(it.cold_start, ours.cold_start),
        it.median_change().as_secs_f64() * 1e3,
        ratio(it.median_change(), ours.median_change()),
        it.cpu.as_secs_f64(),
        ratio(it.cpu, ours.cpu),
        it.memory_mib,
        "",
        it.netlink.buffers,
        it.netlink.bytes / 1024,
        it.changes.len(),
        it.netlink_changes.buffers,
        it.netlink_changes.bytes / 1024,
    );
}

fn measure(
    name: &'static str,
    segment: &Segment,
    api: Api,
    count: usize,
    options: Option<&Options>,
) -> Result<Measured> {
    let before = Netlink::until_now(&segment.node)?;
    let begun = now();
    let mut proxy = start(segment, options)?;
    for number in watched(count) {
        let to = format!("{}:80", cluster_address(number));
        wait_for_answer(name, &mut proxy, segment, &to)?;
    }
    let cold_start = begun.elapsed();
    let netlink = Netlink::until_now(&segment.node)?.since(before);
    eprintln!("{name}: all answer after {:.2} s", cold_start.as_secs_f64());
    let before = Netlink::until_now(&segment.node)?;
    let changes = changes(name, segment, api, count)?;
    let netlink_changes = Netlink::until_now(&segment.node)?.since(before);
    let (cpu, memory_mib) = usage(&proxy)?;
    proxy.kill();
    Ok(Measured { name, cold_start, changes, cpu, memory_mib, netlink, netlink_changes })
}

/// How long each change of an endpoint took, from the shortest to the longest, until so many were made or their time is up.
/// The Service is as before after them.
fn changes(name: &str, segment: &Segment, api: Api, count: usize) -> Result<Vec<Duration>> {
    let number = count / 2;
    let to = format!("{}:80", cluster_address(number));
    let mut changes = Vec::new();
    let begun = now();
    while changes.len() < CHANGES && begun.elapsed() < CHANGES_LIMIT {
        let position = 1 - changes.len() % 2;
        let [_, slice] = objects(number, Some(PODS[position]));
        let written = now();
        api.apply(&slice)?;
        let pod = format!("pod{}", position + 1);
        let answered = ask_until(name, segment, &to, &pod, CHANGES_LIMIT, || Ok(()));
        changes.push(written.elapsed());
        if let Err(error) = answered {
            eprintln!("{error:#}");
            break;
        }
    }
    let [_, slice] = objects(number, Some(PODS[0]));
    api.apply(&slice)?;
    changes.sort();
    Ok(changes)
}

/// CPU time and the largest resident memory of a process.
fn usage(process: &Process) -> Result<(Duration, u64)> {
    let folder = Path::new("/proc").join(process.id().to_string());
    let stat = std::fs::read_to_string(folder.join("stat"))?;
    let (_, rest) = stat.rsplit_once(") ").context("a state")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = |at: usize| -> u64 { fields.get(at).and_then(|it| it.parse().ok()).unwrap_or(0) };
    // Those of the processes that it has started, too.
    let cpu = Duration::from_millis((11..15).map(ticks).sum::<u64>() * 10);
    let status = std::fs::read_to_string(folder.join("status"))?;
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).context("memory")?;
    let kib: u64 = peak.trim().split(' ').next().context("memory")?.parse()?;
    Ok((cpu, kib / 1024))
}
