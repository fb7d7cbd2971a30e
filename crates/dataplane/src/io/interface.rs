//! Our interface, and the addresses of this machine.

use std::io;
use std::net::IpAddr;

use fairway_netlink::{Machine, Requests, Scope};

use super::error::DataPathError;
use super::kube_proxy::KUBE_PROXY_INTERFACE;

/// Our interface.
pub const INTERFACE: &str = "fairway-ipvs0";
/// The addresses that the node has itself: all but loopback, link-local ones and those of the interfaces of service
/// proxies.
///
/// # Errors
/// They cannot be read.
pub fn node_addresses() -> Result<Vec<IpAddr>, DataPathError> {
    let machine = machine()?;
    let proxies = [INTERFACE, KUBE_PROXY_INTERFACE].map(|it| machine.link_named(it));
    let proxies = proxies.map(|it| it.map(|link| link.index));
    let own = machine.addresses().filter(|it| !proxies.contains(&Some(it.index)));
    let usable = own.map(|it| it.address).filter(|it| match it {
        IpAddr::V4(it) => !it.is_loopback() && !it.is_link_local(),
        IpAddr::V6(it) => !it.is_loopback() && !it.is_unicast_link_local(),
    });
    Ok(usable.collect())
}

/// Makes our interface where it is missing, and returns its number.
pub(super) fn make_interface(links: &mut Requests) -> Result<u32, DataPathError> {
    if let Some(index) = our_interface(&machine()?)? {
        return Ok(index);
    }
    links.add_dummy(INTERFACE).map_err(DataPathError::Interface)?;
    let made = our_interface(&machine()?)?;
    made.ok_or_else(|| DataPathError::Interface(io::Error::from(io::ErrorKind::NotFound)))
}

/// The number of our interface, if there is one.
pub(super) fn our_interface(machine: &Machine) -> Result<Option<u32>, DataPathError> {
    match machine.link_named(INTERFACE) {
        None => Ok(None),
        Some(link) if link.kind.as_deref() == Some("dummy") => Ok(Some(link.index)),
        Some(_) => Err(DataPathError::ForeignInterface),
    }
}

pub(super) fn machine() -> Result<Machine, DataPathError> {
    fairway_netlink::read(Scope::default()).map_err(DataPathError::Interface)
}
