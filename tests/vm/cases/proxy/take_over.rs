//! Does a node change hands between kube-proxy and Fairway, and do connections notice?

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::{
    Api, node, service, slice, start_fairway, start_fairway_alone, start_kube_proxy,
    wait_for_servers,
};
use super::flows::Flows;
use super::probes::{expect, tcp, udp};
use super::segment::{PODS, Segment};
use super::upkeep::cleanup;
use crate::node::LIMIT;
use lab::process::Process;
use lab::wait::wait_until;

const CONNECTIONS: usize = 200;
/// How long datagrams may be without an answer.
const GAP_MAX: Duration = Duration::from_secs(1);

/// Of the Service that scales: beside two that all have, eight more.
const MORE_PODS: [&str; 8] = [
    "10.1.1.13",
    "10.1.1.14",
    "10.1.1.15",
    "10.1.1.16",
    "10.1.1.17",
    "10.1.1.18",
    "10.1.1.19",
    "10.1.1.20",
];
/// So many of them stay when it scales down.
const SCALED_DOWN: usize = 3;

/// Topology: client === node === ten Pods; an API server outside.
/// Proves: kube-proxy in IPVS mode is replaced by Fairway and back, and Fairway is killed, stopped and started, while 200
/// connections and a stream of datagrams go on; a Service scales from ten Pods to three and back meanwhile; nothing of
/// kube-proxy is left, and nothing of Fairway. What a restart of kube-proxy costs is measured beside it.
pub(in crate::cases) fn connections_outlive_every_change_of_hands(
    number: usize,
    directory: &Path,
) -> Result<()> {
    let api = Api::given().context("an API server")?;
    let mut segment = Segment::build(number, directory)?;
    MORE_PODS.iter().try_for_each(|address| segment.add_pod(number, address))?;
    let segment = segment;
    api.relay_into(&segment.node)?;
    let (web, many) = (web(), many());
    let both = slice("web", &[(PODS[0], "node-1"), (PODS[1], "node-1")]);
    let all: Vec<_> = PODS.iter().chain(&MORE_PODS).map(|it| (*it, "node-1")).collect();
    let ten = slice("many", &all);
    let three = slice("many", all.get(..SCALED_DOWN).context("three Pods")?);
    for object in [&node(), &web, &both, &many, &ten] {
        api.apply(object)?;
    }
    let mut kube_proxy = start_kube_proxy(&segment)?;
    wait_for_servers(&segment, "-a -u 10.96.0.20:53 -r 10.1.1.12:8080")?;
    wait_for_servers(&segment, "-a -u 10.96.0.21:53 -r 10.1.1.20:8080")?;
    let by_node = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.1"];
    let serves = |by: &str| {
        expect(by, || tcp(&segment.client, "10.96.0.20:80"), by_node)?;
        expect(by, || tcp(&segment.client, "192.0.2.11:30081"), by_node)?;
        expect(by, || udp(&segment.client, "10.96.0.20:53"), by_node)
    };
    wait_until("kube-proxy serves", 3 * LIMIT, || serves("kube-proxy"))?;
    let mut flows = Flows::open(&segment.client, CONNECTIONS, "10.96.0.21:90", "10.96.0.21:53")?;
    flows.check("kube-proxy")?;
    kube_proxy.stop(LIMIT)?;
    let kube_proxy = start_kube_proxy(&segment)?;
    wait_until("kube-proxy serves again", 3 * LIMIT, || serves("kube-proxy, restarted"))?;
    flows.check("a restart of kube-proxy")?;
    expect_short(&[("a restart of kube-proxy", flows.take_gap())])?;

    let mut fairway = take_over(&segment, kube_proxy)?;
    flows.check("after the take-over")?;
    serves("Fairway")?;
    nothing_of_kube_proxy(&segment)?;
    let mut gaps = vec![("take-over", flows.take_gap())];

    for (endpoints, weight, when) in
        [(&three, 0, "scaled to three Pods"), (&ten, 1, "scaled to ten Pods")]
    {
        api.apply(endpoints)?;
        wait_for_servers(
            &segment,
            &format!("-a -t 10.96.0.21:90 -r 10.1.1.20:9090 -m -w {weight}"),
        )?;
        flows.check(when)?;
        gaps.push((when, flows.take_gap()));
    }

    fairway.kill();
    serves("nobody")?;
    let mut fairway = start_fairway(&segment, &[])?;
    wait_until("it has read everything", 3 * LIMIT, || {
        fairway.check_running()?;
        let (status, _, body) = super::upkeep::get(&segment.node, "127.0.0.1:10249", "/readyz")?;
        ensure!(status == 200, "{status} {body}");
        Ok(())
    })?;
    flows.check("killed and started")?;
    fairway.stop(LIMIT)?;
    gaps.push(("killed, started and stopped", flows.take_gap()));

    let mut kube_proxy = hand_over(&segment, &mut flows)?;
    flows.check("back at kube-proxy")?;
    wait_until("kube-proxy serves", 3 * LIMIT, || serves("kube-proxy again"))?;
    gaps.push(("back", flows.take_gap()));
    expect_short(&gaps)?;
    kube_proxy.stop(LIMIT)?;
    for object in [&both, &web, &ten, &many] {
        api.delete(object)?;
    }
    Ok(())
}

/// A Service that clients meet in each way.
fn web() -> Value {
    let ports = json!([
        {"name": "t", "port": 80, "protocol": "TCP", "nodePort": 30081},
        {"name": "u", "port": 53, "protocol": "UDP", "nodePort": 30053},
    ]);
    let spec = json!({"type": "NodePort", "clusterIP": "10.96.0.20", "clusterIPs": ["10.96.0.20"], "ports": ports});
    service("web", spec, "")
}

/// A Service with an echo server, for long connections.
fn many() -> Value {
    let ports = json!([
        {"name": "u", "port": 53, "protocol": "UDP"},
        {"name": "echo", "port": 90, "protocol": "TCP"},
    ]);
    let spec = json!({"clusterIP": "10.96.0.21", "clusterIPs": ["10.96.0.21"], "ports": ports});
    service("many", spec, "")
}

/// Starts Fairway, which takes the node over when kube-proxy ends.
fn take_over(segment: &Segment, mut kube_proxy: Process) -> Result<Process> {
    let mut fairway = start_fairway(segment, &["--take-over", "kube-proxy"])?;
    let log = || std::fs::read_to_string(segment.directory.join("fairway.log")).context("its log");
    wait_until("it waits for the end of kube-proxy", LIMIT, || {
        ensure!(log()?.contains("waiting until it is removed"), "it says\n{}", log()?);
        Ok(())
    })?;
    kube_proxy.stop(LIMIT)?;
    wait_until("the node is taken over", 3 * LIMIT, || {
        fairway.check_running()?;
        ensure!(log()?.contains("is taken over from kube-proxy"), "it says\n{}", log()?);
        Ok(())
    })?;
    Ok(fairway)
}

/// How long datagrams were without an answer.
fn expect_short(gaps: &[(&str, Duration)]) -> Result<()> {
    for (when, gap) in gaps {
        eprintln!("datagrams without an answer, {when}: {} ms", gap.as_millis());
    }
    let longest = gaps.iter().map(|(_, gap)| *gap).max().unwrap_or_default();
    ensure!(longest <= GAP_MAX, "datagrams were without an answer: {gaps:?}");
    Ok(())
}

/// Fairway has ended: starts kube-proxy, and leaves the node to it.
fn hand_over(segment: &Segment, flows: &mut Flows) -> Result<Process> {
    let mut kube_proxy = start_kube_proxy(segment)?;
    wait_until("kube-proxy has its addresses", 6 * LIMIT, || {
        kube_proxy.check_running()?;
        let addresses = segment.node.ip(&["-br", "address", "show", "kube-ipvs0"])?;
        ensure!(addresses.contains("10.96.0.20"), "it has\n{addresses}");
        Ok(())
    })?;
    flows.check("kube-proxy beside what Fairway left")?;
    // Until kube-proxy has written its rules, it is refused.
    wait_until("the node is handed over", 3 * LIMIT, || {
        let said = cleanup(segment, &["--hand-over"])?;
        ensure!(said.contains("left to another proxy"), "it says\n{said}");
        Ok(())
    })?;
    Ok(kube_proxy)
}

/// Topology: as above.
/// Proves: after a reboot, with the API server away, Services are served as they were last known; and what has changed
/// meanwhile is served once it is back.
pub(in crate::cases) fn a_reboot_needs_no_api_server(
    number: usize,
    directory: &Path,
) -> Result<()> {
    let api = Api::given().context("an API server")?;
    let segment = Segment::build(number, directory)?;
    api.relay_into(&segment.node)?;
    let spec = json!({
        "clusterIP": "10.96.0.60", "clusterIPs": ["10.96.0.60"],
        "ports": [{"name": "t", "port": 80, "protocol": "TCP"}],
    });
    let web = service("reboot", spec, "");
    for object in [&node(), &web, &slice("reboot", &[(PODS[0], "node-1")])] {
        api.apply(object)?;
    }
    let line = |last: &str| format!("-a -t 10.96.0.60:80 -r {last}:8080");
    let mut fairway = start_fairway(&segment, &[])?;
    wait_for_servers(&segment, &line(PODS[0]))?;
    fairway.stop(LIMIT)?;
    // The kernel and the run directory are as after a reboot.
    cleanup(&segment, &[])?;
    ensure!(!segment.servers()?.contains("10.96.0.60"), "it has\n{}", segment.servers()?);
    let mut fairway = start_fairway_alone(&segment)?;
    wait_for_servers(&segment, &line(PODS[0]))?;
    wait_until("the Service answers", LIMIT, || {
        expect(
            "the last known state",
            || tcp(&segment.client, "10.96.0.60:80"),
            ["pod1 saw 10.1.1.1"; 2],
        )
    })?;
    fairway.stop(LIMIT)?;
    let moved = slice("reboot", &[(PODS[1], "node-1")]);
    api.apply(&moved)?;
    let mut fairway = start_fairway(&segment, &[])?;
    wait_for_servers(&segment, &line(PODS[1]))?;
    fairway.stop(LIMIT)?;
    for object in [&moved, &web] {
        api.delete(object)?;
    }
    Ok(())
}

fn nothing_of_kube_proxy(segment: &Segment) -> Result<()> {
    let links = segment.node.ip(&["-br", "link"])?;
    ensure!(!links.contains("kube-ipvs0"), "it has\n{links}");
    for program in ["iptables-save", "ip6tables-save"] {
        let rules = segment.node.run(program, &[])?;
        ensure!(
            !rules.contains("KUBE-SERVICES") && !rules.contains("KUBE-POST"),
            "it has\n{rules}"
        );
    }
    let sets = segment.node.run("ipset", &["list", "-n"])?;
    ensure!(!sets.contains("KUBE-"), "it has\n{sets}");
    Ok(())
}
