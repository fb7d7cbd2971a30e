//! Settings of the kernel without which packets do not reach Pods.
//!
//! `data_path` writes only what differs, and notes what it was before.

use std::io;

/// A setting and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sysctl {
    /// Its name, as sysctl(8) has it.
    pub name: &'static str,
    value: &'static str,
    /// Why it is needed.
    pub reason: &'static str,
}

impl Sysctl {
    /// The value that is needed.
    pub fn value(&self) -> &'static str {
        self.value
    }

    /// Its value now.
    ///
    /// # Errors
    /// It cannot be read; `NotFound` where this kernel does not have it.
    pub(super) fn read(&self) -> io::Result<String> {
        read(self.name)
    }

    /// Gives it a value.
    pub(super) fn write(&self, value: &str) -> io::Result<()> {
        write(self.name, value)
    }
}

/// The value of a setting by name.
pub(super) fn read(name: &str) -> io::Result<String> {
    Ok(std::fs::read_to_string(path(name))?.trim().to_owned())
}

/// Gives a setting a value.
pub(super) fn write(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(path(name), value)
}

fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

const fn sysctl(name: &'static str, value: &'static str, reason: &'static str) -> Sysctl {
    Sysctl { name, value, reason }
}

/// What is needed. `has_ipv6`: some Service has an IPv6 address; else the node keeps default routes that routers advertise,
/// which it ignores once it forwards. With `strict_arp`, ARP is answered only on the interface that has an address: else every node answers
/// for the address of a load balancer.
pub fn sysctls(strict_arp: bool, has_ipv6: bool) -> Vec<Sysctl> {
    let mut all = vec![
        sysctl("net.ipv4.ip_forward", "1", "packets to Services leave for Pods"),
        sysctl("net.ipv4.vs.conntrack", "1", "source addresses are replaced behind IPVS"),
        sysctl("net.ipv4.vs.expire_nodest_conn", "1", "connections to a Pod that is gone end"),
        sysctl(
            "net.ipv4.vs.expire_quiescent_template",
            "1",
            "clients with session affinity leave a Pod that takes no new connections",
        ),
    ];
    if has_ipv6 {
        let reason = "packets to Services leave for Pods";
        all.push(sysctl("net.ipv6.conf.all.forwarding", "1", reason));
    }
    if strict_arp {
        let reason = "only the announcing node answers ARP for the address of a load balancer";
        all.push(sysctl("net.ipv4.conf.all.arp_ignore", "1", reason));
        all.push(sysctl("net.ipv4.conf.all.arp_announce", "2", reason));
    }
    all
}
