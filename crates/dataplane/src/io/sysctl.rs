//! Settings of the kernel without which packets do not reach Pods.
//!
//! Writes only what differs, and says what it was before.

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

/// One that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysctlChange {
    /// The setting.
    pub sysctl: Sysctl,
    /// Its value before.
    pub before: String,
}

impl Sysctl {
    /// The value that is needed.
    pub fn value(&self) -> &'static str {
        self.value
    }

    fn path(&self) -> String {
        format!("/proc/sys/{}", self.name.replace('.', "/"))
    }

    /// Sets it where it differs; `None` if it is as it should be.
    ///
    /// # Errors
    /// It cannot be read or written; `NotFound` where this kernel does not have it.
    pub fn apply(self) -> io::Result<Option<SysctlChange>> {
        let before = std::fs::read_to_string(self.path())?.trim().to_owned();
        if before == self.value {
            return Ok(None);
        }
        std::fs::write(self.path(), self.value)?;
        Ok(Some(SysctlChange { sysctl: self, before }))
    }
}

const fn sysctl(name: &'static str, value: &'static str, reason: &'static str) -> Sysctl {
    Sysctl { name, value, reason }
}

/// What is needed. With `strict_arp`, ARP is answered only on the interface that has an address: else every node answers
/// for the address of a load balancer.
pub fn sysctls(strict_arp: bool) -> Vec<Sysctl> {
    let mut all = vec![
        sysctl("net.ipv4.ip_forward", "1", "packets to Services leave for Pods"),
        sysctl("net.ipv6.conf.all.forwarding", "1", "packets to Services leave for Pods"),
        sysctl("net.ipv4.vs.conntrack", "1", "source addresses are replaced behind IPVS"),
        sysctl("net.ipv4.vs.expire_nodest_conn", "1", "connections to a Pod that is gone end"),
        sysctl(
            "net.ipv4.vs.expire_quiescent_template",
            "1",
            "clients with session affinity leave a Pod that takes no new connections",
        ),
    ];
    if strict_arp {
        let reason = "only the announcing node answers ARP for the address of a load balancer";
        all.push(sysctl("net.ipv4.conf.all.arp_ignore", "1", reason));
        all.push(sysctl("net.ipv4.conf.all.arp_announce", "2", reason));
    }
    all
}
