//! The effects of changes of Services, their endpoints and Nodes.

use fairway_seam::ChangeEffect::NewSession;

use super::Change;
use super::Effect::{
    Addresses, AllRoutes, Attributes, Kept, Nothing, OtherObject, PeerComesOrGoes, Prefixes,
    Routes, Session,
};
use super::Part::{Appears, Breaks, Key, Moves, OtherFields, Vanishes};

const SHARES: &str = "it shares its address, and may no longer";
const OTHER_FAMILY: &str = "another family, or one more or less";
const SELECTED: &str = "`namespaceSelectors` of an IPAddressPool select it";
const DRAINED: &str = "the node first drains for its wait";
const WEIGHTED: &str = "`linkBandwidth: auto`, and the number of ready endpoints here changes";

pub(super) const SERVICE: &[Change] = &[
    Change::field("metadata.name", OtherObject),
    Change::field("metadata.namespace", OtherObject),
    Change::field("metadata.labels", Routes)
        .when("`serviceSelectors` of a BGPAdvertisement asks for them"),
    Change::field("metadata.labels", Nothing),
    Change::of(Key("metadata.annotations", "metallb.io/loadBalancerIPs"), Addresses),
    Change::of(Key("metadata.annotations", "metallb.io/address-pool"), Addresses),
    Change::of(Key("metadata.annotations", "fairway.dev/address-pools"), Addresses),
    Change::of(Key("metadata.annotations", "metallb.io/allow-shared-ip"), Addresses).when(SHARES),
    Change::of(Key("metadata.annotations", "metallb.io/allow-shared-ip"), Nothing),
    Change::of(Key("metadata.annotations", "fairway.dev/health-check"), Routes)
        .when("the check fails on this machine"),
    Change::of(Key("metadata.annotations", "fairway.dev/health-check"), Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.type", Routes),
    Change::field("spec.loadBalancerClass", Routes),
    Change::field("spec.loadBalancerIP", Addresses),
    Change::field("spec.ipFamilies", Addresses),
    Change::field("spec.ipFamilyPolicy", Addresses),
    Change::field("spec.clusterIP", Addresses).when(OTHER_FAMILY),
    Change::field("spec.clusterIP", Nothing),
    Change::field("spec.clusterIPs", Addresses).when(OTHER_FAMILY),
    Change::field("spec.clusterIPs", Nothing),
    Change::field("spec.externalTrafficPolicy", Routes).when("no ready endpoint is on this node"),
    Change::field("spec.externalTrafficPolicy", Nothing),
    Change::field("spec.ports[].port", Addresses).when(SHARES),
    Change::field("spec.ports[].port", Nothing),
    Change::field("spec.ports[].protocol", Nothing),
    Change::field("spec.selector", Nothing),
    Change::field("status.loadBalancer.ingress[].ip", Nothing),
    Change::field("status", Nothing),
    Change::of(OtherFields, Nothing),
    Change::of(Appears, Routes),
    Change::of(Vanishes, Routes),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

pub(super) const ENDPOINT_SLICE: &[Change] = &[
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Routes),
    Change::of(Key("metadata.labels", "kubernetes.io/service-name"), Routes),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::field("addressType", Attributes).when(WEIGHTED),
    Change::field("addressType", Nothing),
    Change::field("endpoints[].nodeName", Routes)
        .when("`externalTrafficPolicy: Local`, and it is the last on this node or the first"),
    Change::field("endpoints[].nodeName", Attributes).when(WEIGHTED),
    Change::field("endpoints[].nodeName", Nothing),
    Change::field("endpoints[].conditions.ready", Routes).when("it is the last one or the first"),
    Change::field("endpoints[].conditions.ready", Attributes).when(WEIGHTED),
    Change::field("endpoints[].conditions.ready", Nothing),
    Change::field("endpoints[].conditions.serving", Routes)
        .when("it is not `ready`, and the last one or the first"),
    Change::field("endpoints[].conditions.serving", Nothing),
    Change::field("endpoints[].conditions.terminating", Nothing),
    Change::field("endpoints[].addresses", Routes)
        .when("to or from none, and it is the last ready one or the first"),
    Change::field("endpoints[].addresses", Nothing),
    Change::of(OtherFields, Nothing),
    Change::of(Appears, Routes).when("it is the first of its Service, and has no ready endpoint"),
    Change::of(Appears, Nothing),
    Change::of(Vanishes, Nothing),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

pub(super) const NODE: &[Change] = &[
    Change::field("metadata.name", AllRoutes).when("it no longer applies to this node"),
    Change::field("metadata.namespace", Nothing),
    Change::of(
        Key("metadata.labels", "node.kubernetes.io/exclude-from-external-load-balancers"),
        AllRoutes,
    ),
    Change::of(Key("metadata.labels", "metallb.io/drain"), AllRoutes).when(DRAINED),
    Change::field("metadata.labels", PeerComesOrGoes)
        .when("`nodeSelectors` of a BGPPeer asks for them"),
    Change::field("metadata.labels", Routes)
        .when("`nodeSelectors` of a BGPAdvertisement asks for them"),
    Change::field("metadata.labels", Nothing),
    Change::of(Key("metadata.annotations", "metallb.io/drain"), AllRoutes).when(DRAINED),
    Change::field("metadata.annotations", Nothing),
    Change::field("spec.podCIDRs", Prefixes).when("a BGPAdvertisement has `podCIDRs: true`"),
    Change::field("spec.podCIDRs", Nothing),
    Change::field("spec.podCIDR", Prefixes)
        .when("a BGPAdvertisement has `podCIDRs: true`, and the node has no `spec.podCIDRs`"),
    Change::field("spec.podCIDR", Nothing),
    Change::field("spec.taints[].key", AllRoutes)
        .when("to or from `metallb.io/drain`; the node first drains for its wait"),
    Change::field("spec.taints[].key", Nothing),
    Change::field("spec.taints[].value", AllRoutes)
        .when("of `metallb.io/drain`, to or from `false`; the node first drains for its wait"),
    Change::field("spec.taints[].value", Nothing),
    Change::field("status.addresses[].type", Session(NewSession))
        .when("another IPv4 address is the first `InternalIP`, and the peer has no `routerID`"),
    Change::field("status.addresses[].type", Nothing),
    Change::field("status.addresses[].address", Session(NewSession))
        .when("it is the first `InternalIP` of IPv4, and the peer has no `routerID`"),
    Change::field("status.addresses[].address", Nothing),
    Change::field("status.conditions[].type", AllRoutes).when("to or from `NetworkUnavailable`"),
    Change::field("status.conditions[].type", Nothing),
    Change::field("status.conditions[].status", AllRoutes).when("of `NetworkUnavailable`"),
    Change::field("status.conditions[].status", Nothing),
    Change::of(OtherFields, Nothing),
    Change::of(Appears, AllRoutes).when("it excludes this node from announcing"),
    Change::of(Appears, Nothing),
    Change::of(Vanishes, AllRoutes).when("it excluded this node from announcing"),
    Change::of(Vanishes, Nothing),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];

pub(super) const NAMESPACE: &[Change] = &[
    Change::field("metadata.name", Addresses).when(SELECTED),
    Change::field("metadata.name", Nothing),
    Change::field("metadata.namespace", Nothing),
    Change::field("metadata.labels", Addresses)
        .when("`namespaceSelectors` of an IPAddressPool ask for them"),
    Change::field("metadata.labels", Nothing),
    Change::field("metadata.annotations", Nothing),
    Change::of(OtherFields, Nothing),
    Change::of(Appears, Addresses).when(SELECTED),
    Change::of(Appears, Nothing),
    Change::of(Vanishes, Addresses).when(SELECTED),
    Change::of(Vanishes, Nothing),
    Change::of(Breaks, Kept),
    Change::of(Moves, Nothing),
];
