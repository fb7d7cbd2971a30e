//! What a node is no candidate for on layer 2, as the numbers that members tell each other.
//!
//! Knows no rule: the planner of each node computes its own, and the election reads those of all.

use std::net::IpAddr;

use fairway_ground::Abstention;
use fairway_model::{Kind, ObjectName};
use sha2::{Digest, Sha256};

/// From an address: the node does not serve a Service that has it.
pub(super) fn from_address(address: IpAddr) -> Abstention {
    from(&format!("address {}", address.to_canonical()))
}

/// From an L2Advertisement: the node has none of its interfaces.
pub(super) fn from_advertisement(name: &ObjectName) -> Abstention {
    from(&format!("{} {name}", Kind::Layer2Advertisement))
}

fn from(text: &str) -> Abstention {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    Abstention(u32::from_be_bytes([a, b, c, d]))
}
