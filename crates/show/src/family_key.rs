//! The key that FRR's JSON gives to an address family.

use fairway_ground::AddressFamily;

/// The key of a family in FRR's JSON.
pub(super) fn family_key(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "ipv4Unicast",
        AddressFamily::Ipv6Unicast => "ipv6Unicast",
    }
}
