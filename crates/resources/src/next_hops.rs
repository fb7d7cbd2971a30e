//! `nextHop` of a BGPPeer, and of a rule of it: what is advertised in place of our own addresses.
//!
//! Knows no session; `route_policy` and `route_rules` call it.

use fairway_ground::ChosenNextHops;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{Given, HostAddressIpv4, HostAddressIpv6, Text};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawNextHop {
    /// The next hop of IPv4 routes.
    ipv4: Option<Text<Given<HostAddressIpv4>>>,
    /// The next hop of IPv6 routes.
    ipv6: Option<Text<Given<HostAddressIpv6>>>,
}

/// The next hops of both families.
pub(super) fn next_hops(raw: RawNextHop) -> ChosenNextHops {
    ChosenNextHops {
        ipv4: raw.ipv4.and_then(|Text(Given(given))| given).map(|it| it.0),
        ipv6: raw.ipv6.and_then(|Text(Given(given))| given).map(|it| it.0),
    }
}
