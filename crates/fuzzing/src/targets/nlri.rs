//! Lists of prefixes.

use std::net::IpAddr;

use fairway_bgp::wire::{WireError, nlri};
use fairway_ground::{AddressFamily, PathId, Prefix};

use super::message::as_body;
use crate::Outcome;

/// IPv4 prefixes.
pub fn ipv4(input: &[u8]) -> Outcome {
    list(AddressFamily::Ipv4Unicast, false, input)
}

/// IPv6 prefixes.
pub fn ipv6(input: &[u8]) -> Outcome {
    list(AddressFamily::Ipv6Unicast, false, input)
}

/// Prefixes of either family with path identifiers. Returns the outcome of the one that can be parsed.
pub fn add_path(input: &[u8]) -> Outcome {
    let outcomes = AddressFamily::ALL.map(|family| list(family, true, input));
    let [ipv4, ipv6] = outcomes;
    if ipv4.is_accepted() { ipv4 } else { ipv6 }
}

fn list(family: AddressFamily, path_ids: bool, input: &[u8]) -> Outcome {
    let bytes = as_body(input);
    let prefixes = match nlri::parse_all(family, path_ids, bytes) {
        Ok(prefixes) => prefixes,
        Err(what) => return Outcome::of_error(&WireError::InvalidNetworkField(what)),
    };
    let mut again = Vec::new();
    for nlri in &prefixes {
        assert_valid(nlri.prefix);
        assert_eq!(nlri.prefix.family(), family);
        assert!(path_ids || nlri.path_id == PathId::NONE);
        let before = again.len();
        nlri::encode(*nlri, path_ids, &mut again);
        assert_eq!(again.len() - before, nlri::encoded_length(*nlri, path_ids));
    }
    // Only host bits may differ from the input.
    assert_eq!(again.len(), bytes.len());
    assert_eq!(nlri::parse_all(family, path_ids, &again).as_ref(), Ok(&prefixes));
    Outcome::accepted(if again == bytes { "as sent" } else { "host bits cleared" })
}

/// No host bits, no more bits than the address has, and a text with the same meaning.
pub fn assert_valid(prefix: Prefix) {
    let bits = usize::from(prefix.family().address_bits());
    let length = usize::from(prefix.length());
    assert!(length <= bits, "{prefix}");
    let host = |address: u128, width: usize| match width - length {
        0 => 0,
        host => address & (u128::MAX >> (128 - host)),
    };
    let host_bits = match prefix.address() {
        IpAddr::V4(address) => host(u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => host(u128::from(address), 128),
    };
    assert_eq!(host_bits, 0, "{prefix} has host bits");
}
