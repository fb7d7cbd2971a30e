//! Settings of the kernel that matter to what is answered: whether it forwards, and whether it leaves the answers to
//! this process. One that has an address of ours on another interface, as kube-proxy puts it on `kube-ipvs0`, answers
//! ARP for it on every interface, unless it is told not to; and so do the kernels of all other nodes, which own nothing.
//!
//! Read by the task with each change. Changes nothing: sysctls are the operator's.

use std::net::{IpAddr, Ipv4Addr};

use fairway_netlink::Machine;

/// Of an interface, where the kernel answers for one of these addresses (sorted) as well: why.
pub(super) fn answers_as_well(
    machine: &Machine,
    interface: &str,
    index: u32,
    addresses: &[Ipv4Addr],
) -> Option<String> {
    let level = |of: &str| {
        let file = format!("/proc/sys/net/ipv4/conf/{of}/arp_ignore");
        std::fs::read_to_string(file).ok()?.trim().parse::<u32>().ok()
    };
    // The larger of the two is in force (ip-sysctl.rst); what cannot be read is not judged.
    if addresses.is_empty() || level("all")?.max(level(interface)?) > 0 {
        return None;
    }
    // kube-proxy may have ten thousand of them there, and adds them one by one.
    let (address, on) = machine.addresses().find_map(|it| match it.address {
        IpAddr::V4(address) if it.index != index => {
            addresses.binary_search(&address).is_ok().then_some((address, it.index))
        }
        _ => None,
    })?;
    let other = machine.link(on).map_or("another interface", |it| it.name.as_str());
    Some(format!(
        "the kernel of each node that has {address} on {other} answers ARP for it, too: set \
         net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 (kube-proxy: strictARP)"
    ))
}

/// Whether the kernel forwards IPv6 packets from this interface, which makes it a router to its neighbours.
pub(super) fn forwards_ipv6(interface: &str) -> bool {
    let file = format!("/proc/sys/net/ipv6/conf/{interface}/forwarding");
    std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "1")
}
