//! What kube-proxy leaves in the kernel, apart from virtual servers and rules of iptables.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_netlink::Requests;

use super::error::DataPathError;
use super::interface::machine;
use super::nftables::Nftables;
use crate::nftables::foreign::{self, Chain};
use crate::nftables::{Family, remove_table};

/// The interface of kube-proxy's IPVS mode.
pub const KUBE_PROXY_INTERFACE: &str = "kube-ipvs0";
/// The table of kube-proxy's nftables mode, of each family.
pub const KUBE_PROXY_TABLE: &str = "kube-proxy";
/// The tables in which kube-proxy's modes ipvs and iptables have chains.
const TABLES_OF_IPTABLES: [&str; 3] = ["filter", "mangle", "nat"];

/// The addresses of kube-proxy's interface.
///
/// # Errors
/// They cannot be read.
pub fn kube_proxy_addresses() -> Result<BTreeSet<IpAddr>, DataPathError> {
    let machine = machine()?;
    let index = machine.link_named(KUBE_PROXY_INTERFACE).map(|it| it.index);
    let addresses = index.map_or(&[][..], |it| machine.addresses_of(it));
    Ok(addresses.iter().map(|it| it.address).collect())
}

/// Whether kube-proxy has written the rules that replace source addresses. While no rule of anybody does, the kernel
/// replaces none, those of open connections neither.
pub(super) fn kube_proxy_has_rules() -> Result<bool, DataPathError> {
    let mut filter = Nftables::open().map_err(DataPathError::Filter)?;
    let mut has =
        |chain| filter.has_rules(Family::Ipv4, "nat", chain).map_err(DataPathError::Filter);
    if has("KUBE-POSTROUTING")? && has("POSTROUTING")? {
        return Ok(true);
    }
    if filter.has_table(Family::Ipv4, KUBE_PROXY_TABLE).map_err(DataPathError::Filter)? {
        return Ok(true);
    }
    // Of the older iptables only the table is known.
    let legacy = std::fs::read_to_string("/proc/net/ip_tables_names").unwrap_or_default();
    Ok(legacy.lines().any(|it| it == "nat"))
}

/// Removes the chains that `is_theirs`, of those that `iptables-nft` made, and the jumps to them, as far as nobody else
/// needs them; returns how many chains.
///
/// # Errors
/// They cannot be read or removed.
pub fn remove_chains(is_theirs: impl Fn(&str) -> bool) -> Result<usize, DataPathError> {
    let mut filter = Nftables::open().map_err(DataPathError::Filter)?;
    let mut count = 0_usize;
    for family in Family::ALL {
        let mut tables: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
        for Chain { table, name, is_base } in
            filter.chains(family).map_err(DataPathError::Filter)?
        {
            tables.entry(table).or_default().insert(name, is_base);
        }
        for (table, chains) in tables {
            if !TABLES_OF_IPTABLES.contains(&&*table) {
                continue;
            }
            let rules = filter.rules(family, &table).map_err(DataPathError::Filter)?;
            let removal = foreign::removal(&chains, &rules, &is_theirs);
            count = count.saturating_add(removal.chains.len());
            let transaction = foreign::remove_chains(family, &table, &removal);
            filter.commit(transaction).map_err(DataPathError::Filter)?;
        }
    }
    Ok(count)
}

/// Removes kube-proxy's interface and its tables of nftables, where they are; returns what was removed.
///
/// # Errors
/// Something cannot be removed.
pub fn remove_kube_proxy() -> Result<Vec<String>, DataPathError> {
    let mut removed = Vec::new();
    if let Some(link) = machine()?.link_named(KUBE_PROXY_INTERFACE) {
        let mut links = Requests::open().map_err(DataPathError::Interface)?;
        links.remove_link(link.index).map_err(DataPathError::Interface)?;
        removed.push(format!("interface {KUBE_PROXY_INTERFACE}"));
    }
    let mut filter = Nftables::open().map_err(DataPathError::Filter)?;
    for family in Family::ALL {
        if filter.has_table(family, KUBE_PROXY_TABLE).map_err(DataPathError::Filter)? {
            let transaction = remove_table(family, KUBE_PROXY_TABLE);
            filter.commit(transaction).map_err(DataPathError::Filter)?;
            removed.push(format!("table {} {KUBE_PROXY_TABLE}", family.name()));
        }
    }
    Ok(removed)
}
