//! Pods on a link that has the prefix of their block, as the plugins `bridge` and `ptp` make it: the gateway of a block, and
//! the addresses that mean something on such a link.
//!
//! They are the first one, which was the network's, or is that of all its routers; the second one, which is the gateway; and
//! the last one, to which IPv4 broadcasts. The gateway is assigned to a handle of its own that has no object, as what is
//! reserved for Windows has, and does not keep a block from being empty.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::block::{Attributes, GATEWAY_HANDLE};
use crate::error::IpamError;
use crate::store::{Object, Store, StoreError};

/// The last bits that a block needs for its first and last address to mean something (RFC 3021, RFC 6164).
const EDGE_BITS_MIN: u8 = 2;

/// Which of these addresses are given to nobody who does not ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// None: Pods are not on such links.
    Given,
    /// Those that mean something on the link.
    Withheld,
    /// These, and in any case the gateway, which a block without other addresses has as well.
    WithheldWithGateway,
}

impl Edges {
    pub(crate) fn withhold(self, block: Prefix, address: IpAddr) -> bool {
        match self {
            Self::Given => false,
            Self::Withheld => is_edge(block, address),
            Self::WithheldWithGateway => address == gateway(block) || is_edge(block, address),
        }
    }
}

/// Whether an address means something on a link with the prefix of its block.
fn is_edge(block: Prefix, address: IpAddr) -> bool {
    let bits = block.family().address_bits().saturating_sub(block.length());
    if bits < EDGE_BITS_MIN || !block.contains(address) {
        return false;
    }
    let first = block.address();
    let is_last = || match address {
        IpAddr::V4(it) => u64::from(it.to_bits()).saturating_add(1).trailing_zeros() >= bits.into(),
        IpAddr::V6(_) => false,
    };
    address == first || Some(address) == next(first) || is_last()
}

/// The gateway of a block; its only address, where it has no more.
fn gateway(block: Prefix) -> IpAddr {
    let bits = block.family().address_bits().saturating_sub(block.length());
    let second = next(block.address()).filter(|_| bits >= EDGE_BITS_MIN);
    second.unwrap_or(block.address())
}

fn next(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(it) => IpAddr::V4(it.to_bits().checked_add(1)?.into()),
        IpAddr::V6(it) => IpAddr::V6(it.to_bits().checked_add(1)?.into()),
    })
}

fn attributes() -> Attributes {
    let note = BTreeMap::from([("note".to_owned(), "gateway of the block".to_owned())]);
    Attributes { handle: Some(GATEWAY_HANDLE.to_owned()), secondary: note, ..Attributes::default() }
}

impl<S: Store> Addressing<'_, S> {
    /// The gateway of a block. One that was made without is given one, if that address is free.
    ///
    /// # Errors
    /// A Pod has that address, or the store fails.
    pub(crate) async fn gateway_of(&self, prefix: Prefix) -> Result<IpAddr, IpamError> {
        let gateway = gateway(prefix);
        for _ in 0..ATTEMPTS_MAX {
            let block = self.load(prefix).await?;
            let mut block = block.ok_or(IpamError::NotAssigned(gateway))?;
            match block.value.inspect(gateway) {
                Some((it, _)) if it.handle.as_deref() == Some(GATEWAY_HANDLE) => {
                    return Ok(gateway);
                }
                Some(_) => return Err(IpamError::AlreadyAssigned(gateway)),
                None => {}
            }
            let assigned = block.value.assign_address(gateway, &attributes());
            assigned.map_err(|_| IpamError::AlreadyAssigned(gateway))?;
            match self.store.write(Object::Block(block.value), Some(&block.version)).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(outcome.map(|_| gateway)?),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_second_and_last_addresses_are_for_no_pod_where_they_mean_something() {
        let edges = |block: &str, addresses: &[&str]| -> Vec<bool> {
            let block = block.parse().unwrap();
            addresses.iter().map(|it| is_edge(block, it.parse().unwrap())).collect()
        };
        let ipv4 = ["10.0.0.64", "10.0.0.65", "10.0.0.66", "10.0.0.126", "10.0.0.127"];
        assert_eq!(edges("10.0.0.64/26", &ipv4), [true, true, false, false, true]);
        assert_eq!(
            edges("fd00::40/122", &["fd00::40", "fd00::41", "fd00::7f"]),
            [true, true, false]
        );
        for small in ["10.0.0.64/31", "10.0.0.64/32"] {
            assert_eq!(edges(small, &["10.0.0.64", "10.0.0.65"]), [false, false]);
        }
        assert_eq!(edges("255.255.255.252/30", &["255.255.255.255"]), [true]);
    }
}
