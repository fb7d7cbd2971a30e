//! The effects of changes of pools, advertisements and communities.

use super::Change;
use super::Effect::{
    Addresses, Attributes, AttributesInside, AttributesOutside, Kept, LaterAddresses, Nothing,
    Prefixes, Routes,
};
use super::Part::{Appears, Breaks, Moves, OtherFields, Vanishes};

const NAMED: &str = "`communities` of a BGPAdvertisement names it";

pub(super) const IP_ADDRESS_POOL: &[Change] = &[
    Change::field("metadata.name", Routes).when("`ipAddressPools` of a BGPAdvertisement names it"),
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Nothing),
    Change::field("metadata.labels", Routes)
        .when("`ipAddressPoolSelectors` of a BGPAdvertisement asks for them"),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.addresses", Addresses),
    Change::field("spec.autoAssign", LaterAddresses),
    Change::field("spec.avoidBuggyIPs", Addresses),
    Change::field("spec.reserved", LaterAddresses),
    Change::field("spec.serviceAllocation.priority", LaterAddresses),
    Change::field("spec.serviceAllocation.namespaces", Addresses),
    Change::field("spec.serviceAllocation.namespaceSelectors", Addresses),
    Change::field("spec.serviceAllocation.serviceSelectors", Addresses),
    Change::field("status", Nothing),
    Change::of(OtherFields, Kept),
    Change::of(Appears, Addresses),
    Change::of(Vanishes, Routes)
        .when("it is the only pool: Services keep their addresses, unannounced"),
    Change::of(Vanishes, Addresses),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

pub(super) const BGP_ADVERTISEMENT: &[Change] = &[
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Nothing),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.aggregationLength", Prefixes),
    Change::field("spec.aggregationLengthV6", Prefixes),
    Change::field("spec.localPref", AttributesInside),
    Change::field("spec.med", Attributes),
    Change::field("spec.asPathPrepend", AttributesOutside),
    Change::field("spec.linkBandwidth", Attributes),
    Change::field("spec.communities", Attributes),
    Change::field("spec.ipAddressPools", Routes),
    Change::field("spec.ipAddressPoolSelectors", Routes),
    Change::field("spec.peers", Routes),
    Change::field("spec.nodeSelectors", Routes),
    Change::field("spec.serviceSelectors", Routes),
    Change::field("spec.prefixes", Routes),
    Change::field("spec.podCIDRs", Routes),
    Change::field("spec.podBlocks", Routes),
    Change::field("spec.podBlockPools", Routes),
    Change::field("spec.blackhole", Nothing),
    Change::field("status", Nothing),
    Change::of(OtherFields, Kept),
    Change::of(Appears, Routes),
    Change::of(Vanishes, Routes),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

pub(super) const COMMUNITY: &[Change] = &[
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Nothing),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.communities[].name", Kept).when(NAMED),
    Change::field("spec.communities[].name", Nothing),
    Change::field("spec.communities[].value", Attributes),
    Change::field("status", Nothing),
    Change::of(OtherFields, Kept),
    Change::of(Appears, Nothing),
    Change::of(Vanishes, Kept).when(NAMED),
    Change::of(Vanishes, Nothing),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

/// This version does not answer on the local segment yet.
pub(super) const LAYER2_ADVERTISEMENT: &[Change] = &[
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Nothing),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.ipAddressPools", Nothing),
    Change::field("spec.ipAddressPoolSelectors", Nothing),
    Change::field("spec.nodeSelectors", Nothing),
    Change::field("spec.serviceSelectors", Nothing),
    Change::field("spec.interfaces", Nothing),
    Change::field("spec.preferredNodeSelectors[].weight", Nothing),
    Change::field("spec.preferredNodeSelectors[].preference", Nothing),
    Change::field("spec.bind", Nothing),
    Change::field("status", Nothing),
    Change::of(OtherFields, Kept),
    Change::of(Appears, Nothing),
    Change::of(Vanishes, Nothing),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];
