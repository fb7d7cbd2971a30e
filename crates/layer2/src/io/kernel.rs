//! Does the kernel leave the answers to this process? One that has an address of ours on another interface, as
//! kube-proxy puts it on `kube-ipvs0`, answers ARP for it on every interface, unless it is told not to; and so do
//! the kernels of all other nodes, which own nothing.
//!
//! Read by the task with each change. Changes nothing: sysctls are the operator's.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use fairway_netlink::Machine;

/// Of an interface, where the kernel answers for one of these addresses as well: why.
pub(super) fn answers_as_well(
    machine: &Machine,
    interface: &str,
    index: u32,
    addresses: &[Ipv4Addr],
) -> Option<String> {
    let bound: BTreeMap<IpAddr, u32> = machine
        .addresses()
        .filter(|it| it.index != index)
        .map(|it| (it.address, it.index))
        .collect();
    let (address, on) = addresses.iter().find_map(|it| Some((it, bound.get(&IpAddr::V4(*it))?)))?;
    let level = |of: &str| {
        let file = format!("/proc/sys/net/ipv4/conf/{of}/arp_ignore");
        std::fs::read_to_string(file).ok()?.trim().parse::<u32>().ok()
    };
    // The larger of the two is in force (ip-sysctl.rst); what cannot be read is not judged.
    if level("all")?.max(level(interface)?) > 0 {
        return None;
    }
    let other = machine.link(*on).map_or("another interface", |it| it.name.as_str());
    Some(format!(
        "the kernel of each node that has {address} on {other} answers ARP for it, too: set \
         net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 (kube-proxy: strictARP)"
    ))
}
