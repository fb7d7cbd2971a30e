//! Where do many sessions live? Node and router on one cable, each with an address for every session,
//! and a bridge in between that can cut each pair of addresses off, both ways, without a link that
//! goes down.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use lab::namespace::Namespace;
use lab::{NODE_INTERFACE, ROUTER_INTERFACE, Site, make_directory};

/// Below which table of nft pairs are cut off.
const TABLE: &str = "add table bridge cut; \
    add set bridge cut pairs { type ipv4_addr; }; \
    add chain bridge cut forward { type filter hook forward priority 0; }; \
    add rule bridge cut forward ip saddr @pairs drop; \
    add rule bridge cut forward ip daddr @pairs drop";

/// The two ends and what is between them.
pub(crate) struct Cable {
    pub(crate) node: Namespace,
    pub(crate) router: Site,
    switch: Namespace,
    /// How many pairs of addresses it has, numbered from 0.
    pub(crate) pairs: u16,
}

/// The node's address of a pair.
pub(crate) fn node_address(pair: u16) -> Ipv4Addr {
    address(0, pair)
}

/// The router's address of a pair.
pub(crate) fn router_address(pair: u16) -> Ipv4Addr {
    address(0x8000, pair)
}

/// The pair that an address of either side belongs to.
pub(crate) fn pair_of(address: Ipv4Addr) -> Option<u16> {
    let [10, 77, high, low] = address.octets() else { return None };
    (u16::from_be_bytes([high, low]) & 0x7fff).checked_sub(1)
}

/// Addresses of 10.77.0.0/16 in a row, without the first.
fn address(base: u16, pair: u16) -> Ipv4Addr {
    let [high, low] = (base + pair + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// The address of an end of a pair.
type AddressOf = fn(u16) -> Ipv4Addr;

impl Cable {
    pub(crate) fn lay(number: usize, directory: &Path, pairs: u16) -> Result<Self> {
        make_directory(directory)?;
        let node = Namespace::create(number, "node")?;
        let router = Namespace::create(number, "router")?;
        let switch = Namespace::create(number, "switch")?;
        switch.ip(&["link", "add", "bridge", "type", "bridge"])?;
        switch.ip(&["link", "set", "bridge", "up"])?;
        for (end, interface, port) in
            [(&node, NODE_INTERFACE, "node"), (&router, ROUTER_INTERFACE, "router")]
        {
            end.connect(interface, &switch, port)?;
            switch.ip(&["link", "set", port, "master", "bridge"])?;
        }
        switch.run("nft", &[TABLE])?;
        let hardware = [
            hardware_address(&node, NODE_INTERFACE)?,
            hardware_address(&router, ROUTER_INTERFACE)?,
        ];
        let [of_node, of_router] = hardware.each_ref().map(String::as_str);
        let ends: [(_, _, AddressOf, AddressOf, _); 2] = [
            (&node, NODE_INTERFACE, node_address, router_address, of_router),
            (&router, ROUTER_INTERFACE, router_address, node_address, of_node),
        ];
        for (end, interface, own, other, hardware) in ends {
            // Neighbours by hand: the kernel's table of those that it finds itself is for all
            // namespaces together, and small.
            let mut script = String::new();
            for pair in 0..pairs {
                let (own, other) = (own(pair), other(pair));
                writeln!(script, "address add {own}/16 dev {interface}")?;
                writeln!(
                    script,
                    "neighbor replace {other} lladdr {hardware} dev {interface} nud permanent"
                )?;
            }
            let file = directory.join(format!("{interface}.batch"));
            fs::write(&file, script).context("writing a batch of addresses")?;
            end.ip(&["-batch", &file.to_string_lossy()])?;
        }
        let directory = directory.join("router");
        make_directory(&directory)?;
        Ok(Self { node, router: Site { namespace: router, directory }, switch, pairs })
    }

    /// From now on nothing passes between the addresses of this pair.
    pub(crate) fn cut(&self, pair: u16) -> Result<()> {
        let script = format!("add element bridge cut pairs {{ {} }}", router_address(pair));
        self.switch.run("nft", &[&script]).map(drop)
    }

    /// Everything passes.
    pub(crate) fn heal(&self) -> Result<()> {
        self.switch.run("nft", &["flush set bridge cut pairs"]).map(drop)
    }

    /// How many packets the node has sent and received, as its kernel counts them.
    pub(crate) fn packets(&self) -> Result<u64> {
        let mut sum = 0;
        for direction in ["rx", "tx"] {
            let file = format!("/sys/class/net/{NODE_INTERFACE}/statistics/{direction}_packets");
            let text = self.node.run("cat", &[&file])?;
            sum += text.trim().parse::<u64>().with_context(|| format!("{file}: {text}"))?;
        }
        Ok(sum)
    }

    /// Where the programs of the node have their files.
    pub(crate) fn node_directory(&self, name: &str) -> Result<PathBuf> {
        let above = self.router.directory.parent().context("the directory of the cable")?;
        let directory = above.join(name);
        make_directory(&directory)?;
        Ok(directory)
    }
}

fn hardware_address(namespace: &Namespace, interface: &str) -> Result<String> {
    let text = namespace.ip(&["-j", "link", "show", "dev", interface])?;
    let links: Value = serde_json::from_str(&text).context("ip's links")?;
    let address = links.pointer("/0/address").and_then(Value::as_str);
    address.map(str::to_owned).with_context(|| format!("no address in {text}"))
}
