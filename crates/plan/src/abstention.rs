//! What a node is no candidate for on layer 2, as the numbers that members tell each other.
//!
//! Knows no rule: the planner of each node computes its own, and the election reads those of all.

use fairway_ground::Abstention;
use fairway_model::{Kind, ObjectName};
use sha2::{Digest, Sha256};

/// From a Service: the node does not serve it.
pub(super) fn from_service(name: &ObjectName) -> Abstention {
    from(Kind::Service, name)
}

/// From an L2Advertisement: the node has none of its interfaces.
pub(super) fn from_advertisement(name: &ObjectName) -> Abstention {
    from(Kind::Layer2Advertisement, name)
}

fn from(kind: Kind, name: &ObjectName) -> Abstention {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(format!("{kind} {name}").as_bytes()).into();
    Abstention(u32::from_be_bytes([a, b, c, d]))
}
