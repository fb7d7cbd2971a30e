//! BGPAdvertisement (metallb.io/v1beta1): what is announced, how, to which peers and from which nodes.
//!
//! Answers which attributes routes get and which pools, peers, nodes and services are meant. Knows
//! no other object; whether what it names exists is for the catalog.

use std::collections::BTreeSet;
use std::str::FromStr;

use fairway_ground::Prefix;
use fairway_model::{BgpAdvertisement, CommunityReference, Object};
use schemars::JsonSchema;
use serde::Deserialize;

use super::community::CommunityText;
use super::crds::rules;
use super::field_path::FieldPath;
use super::fields::{
    BandwidthValue, LengthIpv4, LengthIpv6, LocalPreference, Metric, PrependCount, Text,
};
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report, elements, unique};

const LENGTH_IPV4_DEFAULT: u8 = 32;
const LENGTH_IPV6_DEFAULT: u8 = 128;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-validations" = rules::NO_AGGREGATION_OF_SELECTED_SERVICES))]
pub(crate) struct RawSpec {
    /// The length of the IPv4 prefixes that are announced.
    #[schemars(extend("default" = LENGTH_IPV4_DEFAULT, "maximum" = null, "format" = "int32"))]
    aggregation_length: Option<LengthIpv4>,
    /// The length of the IPv6 prefixes that are announced.
    #[schemars(extend("default" = LENGTH_IPV6_DEFAULT, "minimum" = null, "maximum" = null, "format" = "int32"))]
    aggregation_length_v6: Option<LengthIpv6>,
    /// LOCAL_PREF of the routes, sent to iBGP peers only. 0 or none: 100.
    local_pref: Option<LocalPreference>,
    /// Communities of the routes: 65001:100, large:65001:1:2, or names from Community objects.
    communities: Option<List<Text<ReferenceText>>>,
    /// Names of the IPAddressPools that are announced.
    #[serde(rename = "ipAddressPools")]
    pools: Option<List<String>>,
    /// Selects further IPAddressPools by label. Without names and selectors: all, or none with prefixes
    /// and without serviceSelectors.
    #[serde(rename = "ipAddressPoolSelectors")]
    pool_selectors: Option<List<RawLabelSelector>>,
    /// Selects the nodes that announce. None: all.
    node_selectors: Option<List<RawLabelSelector>>,
    /// Names of the BGPPeers that receive the routes. None: all.
    peers: Option<List<String>>,
    /// Selects the Services for which addresses are announced. None: all. Not with shorter prefixes.
    service_selectors: Option<List<RawLabelSelector>>,
    /// Prefixes to announce, Services or not. An advertisement that has some and selects neither pools
    /// nor Services is about them alone. Fairway only.
    prefixes: Option<List<Text<Prefix>>>,
    /// Each node announces the networks of its own Pods (Node spec.podCIDRs), as if prefixes listed them.
    /// Fairway only.
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Option<bool>,
    /// Each node announces its blocks of addresses of Pods (IPAMBlock), as if prefixes listed them; needs --ipam.
    /// Fairway only.
    pod_blocks: Option<bool>,
    /// Names of the IPPools whose blocks are announced by podBlocks. None: all. Fairway only.
    pod_block_pools: Option<List<String>>,
    /// Whether nodes drop what arrives for the announced prefixes and is for no address in use: a blackhole route in
    /// the kernel, for each prefix that is more than one address. Default: false. Fairway only.
    blackhole: Option<bool>,
    /// How many extra times our AS is in the path; eBGP only. MetalLB takes 1 to 10.
    as_path_prepend: Option<PrependCount>,
    /// MULTI_EXIT_DISC of the routes. Fairway only.
    med: Option<Metric>,
    /// The link bandwidth community: bits per second, or auto for a share by ready local endpoints.
    /// Fairway only.
    link_bandwidth: Option<BandwidthValue>,
}

/// A community, or the alias of one.
#[derive(Debug)]
struct ReferenceText(CommunityReference);

#[derive(Debug, thiserror::Error)]
enum ReferenceError {
    #[error("is empty; expected a community as in 65001:100, or the name of one")]
    Empty,
    #[error(transparent)]
    Value(#[from] fairway_ground::ParseError),
}

impl FromStr for ReferenceText {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        // Without a colon it is a name, perhaps a well-known one.
        if !text.contains(':') {
            return Ok(Self(CommunityReference::Alias(text.to_owned())));
        }
        let CommunityText(value) = text.parse()?;
        Ok(Self(CommunityReference::Value(value)))
    }
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    // Without a spec it announces every pool to every peer, as in MetalLB.
    let raw: Option<RawSpec> = report.read(&spec);
    let Some(raw) = raw else {
        return (!report.has_faults()).then(|| Object::from(everything(metadata)));
    };
    let length_ipv4 = raw.aggregation_length.map_or(LENGTH_IPV4_DEFAULT, |it| it.0);
    let length_ipv6 = raw.aggregation_length_v6.map_or(LENGTH_IPV6_DEFAULT, |it| it.0);
    let selectors = |raw, field: &str, report: &mut Report<'_>| {
        label_selector::parse_list(raw, &FieldPath::of("spec").key(field), report)
    };
    let has_service_selectors = raw.service_selectors.as_ref().is_some_and(|list| !list.is_empty());
    let is_aggregated = length_ipv4 != LENGTH_IPV4_DEFAULT || length_ipv6 != LENGTH_IPV6_DEFAULT;
    if has_service_selectors && is_aggregated {
        report.fault(
            &spec.key("serviceSelectors"),
            "is allowed only with aggregationLength 32 and aggregationLengthV6 128: a shorter \
             prefix would hold other services too",
        );
    }
    let pod_blocks = raw.pod_blocks.unwrap_or_default();
    if !pod_blocks && raw.pod_block_pools.as_ref().is_some_and(|list| !list.is_empty()) {
        report.fault(&spec.key("podBlockPools"), "is allowed only with podBlocks: true");
    }
    let communities = raw.communities.map(|list| {
        list.into_iter().map(|text| text.map(|Text(ReferenceText(value))| value)).collect()
    });
    let prefixes: Option<List<Prefix>> = raw
        .prefixes
        .map(|list| list.into_iter().map(|prefix| prefix.map(|Text(prefix)| prefix)).collect());
    // RFC 4271 §6.3: a receiver logs and ignores such a prefix.
    for (position, prefix) in elements(prefixes.clone()).filter(|(_, it)| it.is_multicast()) {
        report.fault(
            &spec.key("prefixes").index(position),
            format_args!("{prefix} has no unicast addresses; expected a unicast prefix"),
        );
    }
    Some(Object::from(BgpAdvertisement {
        name: metadata.name,
        aggregation_length_ipv4: length_ipv4,
        aggregation_length_ipv6: length_ipv6,
        local_pref: raw.local_pref.map(|it| it.0).filter(|value| *value != 0),
        med: raw.med.map(|it| it.0),
        as_path_prepend: raw.as_path_prepend.map_or(0, |it| it.0),
        link_bandwidth: raw.link_bandwidth.map(|it| it.0),
        communities: unique(communities, &spec.key("communities"), report),
        pools: unique(raw.pools, &spec.key("ipAddressPools"), report),
        pool_selectors: selectors(raw.pool_selectors, "ipAddressPoolSelectors", report),
        node_selectors: selectors(raw.node_selectors, "nodeSelectors", report),
        service_selectors: selectors(raw.service_selectors, "serviceSelectors", report),
        peers: unique(raw.peers, &spec.key("peers"), report),
        prefixes: unique(prefixes, &spec.key("prefixes"), report).into_iter().collect(),
        pod_cidrs: raw.pod_cidrs.unwrap_or_default(),
        pod_blocks,
        pod_block_pools: unique(raw.pod_block_pools, &spec.key("podBlockPools"), report),
        blackhole: raw.blackhole.unwrap_or_default(),
    }))
}

fn everything(metadata: Metadata) -> BgpAdvertisement {
    BgpAdvertisement {
        name: metadata.name,
        aggregation_length_ipv4: LENGTH_IPV4_DEFAULT,
        aggregation_length_ipv6: LENGTH_IPV6_DEFAULT,
        local_pref: None,
        med: None,
        as_path_prepend: 0,
        link_bandwidth: None,
        communities: BTreeSet::new(),
        pools: BTreeSet::new(),
        pool_selectors: Vec::new(),
        node_selectors: Vec::new(),
        service_selectors: Vec::new(),
        peers: BTreeSet::new(),
        prefixes: Vec::new(),
        pod_cidrs: false,
        pod_blocks: false,
        pod_block_pools: BTreeSet::new(),
        blackhole: false,
    }
}
