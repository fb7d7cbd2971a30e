//! Do packets to a Service reach the right Pods, from the right address?

mod announcing;
mod bench;
mod cluster;
mod equality;
mod flows;
mod probes;
mod segment;
mod take_over;
mod three_nodes;
mod upkeep;

use std::path::Path;

use anyhow::{Context, Result, ensure};

pub(super) use announcing::{an_address_is_announced_while_it_is_delivered, one_process_does_all};
pub(super) use bench::run as bench;
pub(super) use cluster::Api;
pub(super) use equality::fairway_does_what_kube_proxy_does;
pub(super) use take_over::{
    a_reboot_needs_no_api_server, connections_outlive_every_change_of_hands,
};
pub(super) use three_nodes::three_nodes_serve_clients_near_and_far;
pub(super) use upkeep::{
    nothing_is_left_after_a_cleanup, what_is_removed_comes_back_and_what_is_not_ours_stays,
};

use probes::{expect, tcp, udp};
use segment::{CLIENT, Segment};

/// Topology: client === node === two Pods, each on a cable of its own; Services of each kind, from files.
/// Proves: each client meets the Pods that it should, with its own address as source or the node's, as policy and
/// options say; what has no endpoint, is restricted or is no port of a Service is refused or dropped.
pub(super) fn packets_reach_the_right_pods(number: usize, directory: &Path) -> Result<()> {
    let mut segment = Segment::build(number, directory)?;
    segment.start()?;
    let Segment { client, pods, node, .. } = &segment;
    let pod = pods.first().context("a Pod")?;
    let web = "10.96.0.20:80";
    let by_node = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.1"];
    expect("cluster address, client outside", || tcp(client, web), by_node)?;
    expect("cluster address, node", || tcp(node, web), by_node)?;
    let own = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.11"];
    expect("cluster address, Pod, which may meet itself", || tcp(pod, web), own)?;
    expect("node port", || tcp(client, "192.0.2.11:30081"), by_node)?;
    expect("UDP", || udp(client, "10.96.0.20:53"), by_node)?;
    let ipv6 = ["pod1 saw fd00:1::1"; 2];
    expect("IPv6", || tcp(client, "[fd00:96::20]:80"), ipv6)?;
    let kept = ["pod1 saw 192.0.2.1"; 2];
    ensure!(kept.iter().all(|it| it.ends_with(CLIENT)), "the client is {CLIENT}");
    expect("policy Local", || tcp(client, "198.51.100.1:80"), kept)?;
    expect("policy Local, UDP", || udp(client, "198.51.100.1:53"), kept)?;
    expect("no endpoint", || tcp(client, "10.96.0.30:80"), ["refused"; 2])?;
    expect("no endpoint, UDP", || udp(client, "10.96.0.30:53"), ["refused"; 2])?;
    expect("no port of a Service", || tcp(client, "10.96.0.20:81"), ["refused"; 2])?;
    expect("not in the source ranges", || tcp(client, "198.51.100.2:80"), ["nothing"; 2])?;
    expect("policy Local, no endpoint here", || tcp(client, "198.51.100.3:80"), ["nothing"; 2])
}
