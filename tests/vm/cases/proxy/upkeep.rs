//! What the proxy keeps up, says about itself, and leaves behind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::probes::{expect, tcp};
use super::segment::{PODS, Segment, service, services};
use crate::node::LIMIT;
use lab::namespace::Namespace;
use lab::wait::wait_until;

/// Topology: as above, and a virtual server of somebody else.
/// Proves: Services go on while the proxy is away; a restart changes no virtual server, with files or without any; what others remove is back; what
/// is not ours stays; and of Services that go nothing is left.
pub(in crate::cases) fn what_is_removed_comes_back_and_what_is_not_ours_stays(
    number: usize,
    directory: &Path,
) -> Result<()> {
    /// The kernel is read each 30 s; an emulated machine is slow.
    const AUDITED: Duration = Duration::from_secs(60);
    const THEIRS: &str = "-A -t 203.0.113.1:80 -s wrr";
    let mut segment = Segment::build(number, directory)?;
    segment.node.run("ipvsadm", &["-A", "-t", "203.0.113.1:80", "-s", "wrr"])?;
    segment.start()?;
    let by_node = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.1"];
    let before = segment.servers()?;
    segment.stop()?;
    expect("without the proxy", || tcp(&segment.client, "10.96.0.20:80"), by_node)?;
    // A lost volume.
    segment.apply("# No Services.\n")?;
    segment.start()?;
    wait_until("the proxy says that nothing goes", LIMIT, || {
        let log = std::fs::read_to_string(segment.directory.join("proxy.log"))?;
        ensure!(log.contains("what the kernel has stays"), "it says\n{log}");
        Ok(())
    })?;
    segment.apply(&services())?;
    segment.stop()?;
    segment.start()?;
    let after = segment.servers()?;
    ensure!(after == before, "a restart: before\n{before}\nafter\n{after}");

    segment.node.run("nft", &["flush", "ruleset"])?;
    for line in before.lines().filter(|it| it.starts_with("-A") && *it != THEIRS) {
        let words: Vec<_> = line.split(' ').skip(1).take(2).collect();
        segment.node.run("ipvsadm", &[&["-D"], words.as_slice()].concat())?;
    }
    wait_until("everything is back", AUDITED, || {
        let after = segment.servers()?;
        ensure!(after == before, "before\n{before}\nafter\n{after}");
        Ok(())
    })?;
    expect("after a flush", || tcp(&segment.client, "10.96.0.20:80"), by_node)?;

    segment.apply("# No Services.\n")?;
    wait_until("only theirs is left", LIMIT, || {
        let left = segment.servers()?;
        ensure!(left.trim() == THEIRS, "it has\n{left}");
        let addresses = segment.node.ip(&["-br", "address", "show", "fairway-ipvs0"])?;
        ensure!(!addresses.contains('/'), "it has\n{addresses}");
        Ok(())
    })
}

/// The status, the head and the body of what an HTTP server in this namespace answers.
pub(super) fn get(from: &Namespace, server: &str, path: &str) -> Result<(u16, String, String)> {
    let server: SocketAddr = server.parse()?;
    from.enter(|| {
        let mut stream = TcpStream::connect_timeout(&server, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer of HTTP")?;
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        Ok((status, head.to_lowercase(), body.to_owned()))
    })
}

/// Topology: as above.
/// Proves: health, metrics and the health of a Service are on kube-proxy's ports and count what happens; a flushed packet
/// filter is back within seconds; after a cleanup nothing is left, settings are as they were, and nothing of others is
/// gone; and with `--hand-over` connections go on.
pub(in crate::cases) fn nothing_is_left_after_a_cleanup(
    number: usize,
    directory: &Path,
) -> Result<()> {
    const THEIRS: &str = "-A -t 203.0.113.1:80 -s wrr";
    let mut segment = Segment::build(number, directory)?;
    segment.node.run("ipvsadm", &["-A", "-t", "203.0.113.1:80", "-s", "wrr"])?;
    let before = segment.settings()?;
    let local = "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31000, clusterIP: 10.96.0.50, \
                 ports: [{name: t, port: 80}]";
    let checked = service("checked", local, "198.51.100.9", &[(PODS[0], "node-1")]);
    segment.apply(&format!("{}{checked}", services()))?;
    segment.start()?;
    the_proxy_says_how_it_is(&segment)?;
    a_flushed_filter_is_back(&segment)?;

    let busy = cleanup(&segment, &[]).err().map(|it| format!("{it:#}")).unwrap_or_default();
    ensure!(busy.contains("another fairway proxy runs"), "beside a running one: {busy:?}");
    segment.stop()?;
    let said = cleanup(&segment, &[])?;
    ensure!(said.contains("virtual servers removed"), "it says\n{said}");
    gone(&segment)?;
    ensure!(segment.servers()?.trim() == THEIRS, "it has\n{}", segment.servers()?);
    let after = segment.settings()?;
    ensure!(said.contains("ip_forward stays"), "it says\n{said}");
    ensure!(after == before, "settings were\n{before:?}\nand are\n{after:?}");

    segment.start()?;
    let servers = segment.servers()?;
    segment.stop()?;
    let alone = cleanup(&segment, &["--hand-over"]).err().map(|it| format!("{it:#}"));
    let alone = alone.unwrap_or_default();
    ensure!(alone.contains("no other proxy has written its rules"), "to nobody: {alone:?}");
    for arguments in [
        &["-t", "nat", "-N", "KUBE-POSTROUTING"][..],
        &["-t", "nat", "-A", "KUBE-POSTROUTING", "-j", "RETURN"],
        &["-t", "nat", "-A", "POSTROUTING", "-j", "KUBE-POSTROUTING"],
    ] {
        segment.node.run("iptables", arguments)?;
    }
    let said = cleanup(&segment, &["--hand-over"])?;
    ensure!(said.contains("left to another proxy"), "it says\n{said}");
    gone(&segment)?;
    ensure!(segment.servers()? == servers, "virtual servers stay");
    let said = cleanup(&segment, &[])?;
    ensure!(said.contains("nothing of Fairway's"), "once more: {said}");
    ensure!(segment.servers()? == servers, "they are another's now");
    Ok(())
}

pub(super) fn cleanup(segment: &Segment, more: &[&str]) -> Result<String> {
    let run_dir = segment.directory.join("run").display().to_string();
    let program = lab::fairway::existing_program()?.display().to_string();
    let arguments = [&["proxy", "cleanup", "--run-dir", &run_dir], more].concat();
    segment.node.run(&program, &arguments)
}

fn gone(segment: &Segment) -> Result<()> {
    let links = segment.node.ip(&["-br", "link"])?;
    ensure!(!links.contains("fairway-ipvs0"), "it has\n{links}");
    let rules = segment.node.run("nft", &["list", "ruleset"])?;
    ensure!(!rules.contains("fairway-proxy"), "it has\n{rules}");
    Ok(())
}

fn the_proxy_says_how_it_is(segment: &Segment) -> Result<()> {
    let node = &segment.node;
    let (status, _, body) = get(node, "127.0.0.1:10256", "/healthz")?;
    ensure!(status == 200 && body.contains("\"nodeEligible\":true"), "{status} {body}");
    let (status, _, body) = get(node, "127.0.0.1:10256", "/livez")?;
    ensure!(status == 200 && !body.contains("nodeEligible"), "{status} {body}");
    wait_until("the health of the Service is served", LIMIT, || {
        let (status, head, body) = get(&segment.client, "192.0.2.11:31000", "/")?;
        ensure!(status == 200 && body.contains("\"localEndpoints\":1"), "{status} {body}");
        ensure!(head.contains("x-load-balancing-endpoint-weight: 1"), "{head}");
        Ok(())
    })?;
    expect("policy Local", || tcp(&segment.client, "198.51.100.9:80"), ["pod1 saw 192.0.2.1"; 2])?;
    // The kernel counts every 2 s.
    wait_until("connections of the Service are counted", LIMIT, || {
        let (status, _, body) = get(node, "127.0.0.1:10249", "/metrics")?;
        let line = "fairway_proxy_service_connections_total{service=\"default/checked\"} 2";
        ensure!(status == 200 && body.contains(line), "{status} {body}");
        Ok(())
    })?;
    let (_, _, body) = get(node, "127.0.0.1:10249", "/metrics")?;
    for line in [
        "kubeproxy_proxy_healthz_total{code=\"200\"} 1",
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"external\"} 1",
        "fairway_proxy_faults 0",
        "metallb_k8s_client_config_loaded_bool 1",
    ] {
        ensure!(body.lines().any(|it| it == line), "no {line} in\n{body}");
    }
    ensure!(body.contains("kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv6\"}"));
    let program = lab::fairway::existing_program()?.display().to_string();
    let socket = segment.directory.join("run/proxy.sock").display().to_string();
    let shown = node.run(&program, &["show", "proxy", "default/checked", "--socket", &socket])?;
    let line = shown.lines().nth(1).unwrap_or_default();
    for word in ["10.96.0.50:80/TCP", "default/checked", "10.1.1.11:8080", "in the kernel"] {
        ensure!(line.contains(word), "no {word} in\n{shown}");
    }
    let shown = node.run(&program, &["show", "proxy", "json", "--socket", &socket])?;
    ensure!(shown.contains("\"isInKernel\": true"), "it shows\n{shown}");
    let (_, _, mode) = get(node, "127.0.0.1:10249", "/proxyMode")?;
    ensure!(mode == "ipvs", "{mode}");
    Ok(())
}

/// All of it, or the rules of a table alone.
fn a_flushed_filter_is_back(segment: &Segment) -> Result<()> {
    /// The kernel tells at once; an emulated machine is slow.
    const BACK: Duration = Duration::from_secs(10);
    let rules = || segment.node.run("nft", &["-s", "list", "table", "ip", "fairway-proxy"]);
    let sorted = |text: String| {
        let mut lines: Vec<String> =
            text.split([',', '\n']).map(|it| it.trim().to_owned()).collect();
        lines.sort();
        lines
    };
    let before = sorted(rules()?);
    for arguments in [
        &["flush", "ruleset"][..],
        &["flush", "table", "ip", "fairway-proxy"],
        &["flush", "set", "ip", "fairway-proxy", "vips"],
        &["flush", "set", "ip", "fairway-proxy", "pods"],
    ] {
        segment.node.run("nft", arguments)?;
        wait_until("the table is back", BACK, || {
            let after = sorted(rules()?);
            ensure!(
                after == before,
                "after {arguments:?}, {} lines of {}",
                after.len(),
                before.len()
            );
            Ok(())
        })?;
    }
    let log = std::fs::read_to_string(segment.directory.join("proxy.log"))?;
    ensure!(log.contains("had removed or changed"), "it says\n{log}");
    Ok(())
}
