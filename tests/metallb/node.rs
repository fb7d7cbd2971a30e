//! Where are nodes and routers? Each in a namespace, on one wire with the API server. Knows no software.

use anyhow::Result;

use lab::namespace::Namespace;

/// The nodes of the cluster.
pub(crate) const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
pub(crate) const NODE_AS: u32 = 65001;
pub(crate) const INTERFACE: &str = "eth0";
pub(crate) const HUB: u8 = 1;
pub(crate) const FIRST_NODE: u8 = 11;

/// The addresses of the host with this number.
pub(crate) fn addresses(number: u8) -> [String; 2] {
    [format!("10.90.0.{number}"), format!("fd90::{number}")]
}

/// The wire, and where the API server is.
pub(crate) fn hub(cell: usize) -> Result<Namespace> {
    let hub = Namespace::create(cell, "hub")?;
    hub.ip(&["link", "add", "wire", "type", "bridge"])?;
    hub.ip(&["link", "set", "wire", "up"])?;
    give_addresses(&hub, "wire", HUB)?;
    Ok(hub)
}

pub(crate) fn plug_in(cell: usize, hub: &Namespace, role: &str, number: u8) -> Result<Namespace> {
    let namespace = Namespace::create(cell, role)?;
    hub.connect(role, &namespace, INTERFACE)?;
    hub.ip(&["link", "set", role, "master", "wire"])?;
    give_addresses(&namespace, INTERFACE, number)?;
    Ok(namespace)
}

fn give_addresses(namespace: &Namespace, interface: &str, number: u8) -> Result<()> {
    let [ipv4, ipv6] = addresses(number);
    namespace.add_address(interface, &format!("{ipv4}/24"))?;
    namespace.add_address(interface, &format!("{ipv6}/64"))
}
