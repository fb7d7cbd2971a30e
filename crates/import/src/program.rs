//! Which program a text was written for.

use std::fmt;
use std::str::FromStr;

/// What can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `frr.conf`, or what `vtysh -c 'show running-config'` prints.
    Frr,
    /// `keepalived.conf`.
    Keepalived,
    /// Objects of Cilium, Calico or frr-k8s, as kubectl prints them.
    Kubernetes,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Frr, Self::Keepalived, Self::Kubernetes];

    /// What the text looks like.
    pub fn of(text: &str) -> Option<Self> {
        text.lines().find_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["-", "apiVersion:", ..]
                | ["apiVersion:" | "\"apiVersion\":" | "kind:" | "items:", ..] => {
                    Some(Self::Kubernetes)
                }
                ["{", ..] if line.contains("\"apiVersion\"") => Some(Self::Kubernetes),
                ["global_defs" | "vrrp_instance" | "vrrp_sync_group" | "vrrp_script", ..]
                | ["virtual_server" | "virtual_server_group" | "static_ipaddress", ..] => {
                    Some(Self::Keepalived)
                }
                ["frr", "version" | "defaults", ..]
                | ["router", "bgp" | "ospf" | "ospf6" | "isis" | "rip", ..]
                | ["ip" | "ipv6", "prefix-list" | "route", ..]
                | ["route-map", _, "permit" | "deny", _]
                | ["bfd"]
                | ["hostname" | "log" | "service", _, ..] => Some(Self::Frr),
                _ => None,
            }
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frr => "frr",
            Self::Keepalived => "keepalived",
            Self::Kubernetes => "kubernetes",
        })
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.to_string() == text);
        found.ok_or_else(|| {
            format!("{text:?} cannot be imported; expected frr, keepalived or kubernetes")
        })
    }
}
