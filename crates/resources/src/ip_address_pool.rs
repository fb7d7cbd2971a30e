//! IPAddressPool (metallb.io/v1beta1): addresses to allocate.
//!
//! Answers which addresses a manifest offers, and that none occurs in it twice. Knows no other
//! pool; the catalog compares them.

use std::str::FromStr;
use std::sync::LazyLock;

use fairway_ground::PrefixError;
use fairway_model::{AddressRange, AddressRangeError, Object, Pool, ServiceAllocation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{Priority, Text};
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report, elements, unique};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// Addresses to allocate: prefixes as 192.0.2.0/24, or ranges as 192.0.2.10-192.0.2.20.
    #[schemars(required)]
    addresses: Option<List<Text<Addresses>>>,
    /// Whether Services that do not request this pool get addresses of it.
    #[schemars(extend("default" = true))]
    auto_assign: Option<bool>,
    /// Leaves out IPv4 addresses that end in .0 or .255.
    #[schemars(extend("default" = false))]
    #[serde(rename = "avoidBuggyIPs")]
    avoid_buggy_addresses: Option<bool>,
    /// Parts of the pool that only Services get that request the address. Fairway only.
    reserved: Option<List<Text<AddressRange>>>,
    /// Restricts the pool to some Services.
    service_allocation: Option<RawServiceAllocation>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawServiceAllocation {
    /// Of several matching pools, the one with the lowest number comes first; 0 or none comes last.
    #[schemars(extend("minimum" = null, "maximum" = null))]
    priority: Option<Priority>,
    /// Names of the namespaces in which Services may have these addresses.
    namespaces: Option<List<String>>,
    /// Selects further namespaces by label.
    namespace_selectors: Option<List<RawLabelSelector>>,
    /// Selects the Services that may have these addresses. None: all.
    service_selectors: Option<List<RawLabelSelector>>,
}

/// An entry of `addresses`. A prefix with host bits set means its network, as in MetalLB.
#[derive(Debug, Clone)]
struct Addresses {
    range: AddressRange,
    /// The network, if the entry has host bits set.
    network: Option<String>,
}

impl FromStr for Addresses {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        match text.parse() {
            Ok(range) => Ok(Self { range, network: None }),
            Err(AddressRangeError::Prefix(PrefixError::HostBits { canonical, .. })) => {
                Ok(Self { range: canonical.parse()?, network: Some(canonical) })
            }
            Err(error) => Err(error),
        }
    }
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let raw: Option<RawSpec> = report.read(&spec);
    let raw = report.required(raw, &spec, "the addresses of the pool")?;
    let path = spec.key("addresses");
    let expected = "one prefix or range of addresses, or more";
    match &raw.addresses {
        None => report.missing(&path, expected),
        Some(list) if list.is_empty() => {
            report.fault(&path, format_args!("is empty; expected {expected}"));
        }
        Some(_) => {}
    }
    let ranges = ranges(raw.addresses, &path, report);
    let path = spec.key("reserved");
    let mut reserved = Vec::new();
    for (position, Text(range)) in elements(raw.reserved) {
        if !ranges.iter().any(|(_, of_pool)| of_pool.overlaps(range)) {
            report.warning(&path.index(position), format_args!("{range} is not part of the pool"));
        }
        reserved.push(range);
    }
    Some(Object::from(Pool {
        name: metadata.name,
        labels: metadata.labels,
        ranges: ranges.into_iter().map(|(_, range)| range).collect(),
        auto_assign: raw.auto_assign.unwrap_or(true),
        avoid_buggy_addresses: raw.avoid_buggy_addresses.unwrap_or(false),
        reserved,
        allocation: raw.service_allocation.map(|raw| service_allocation(raw, report)),
    }))
}

fn service_allocation(raw: RawServiceAllocation, report: &mut Report<'_>) -> ServiceAllocation {
    let path = FieldPath::of("spec.serviceAllocation");
    let selectors = |raw, field: &str, report: &mut Report<'_>| {
        label_selector::parse_list(raw, &path.key(field), report)
    };
    ServiceAllocation {
        priority: raw.priority.map_or(0, |it| it.0),
        namespaces: unique(raw.namespaces, &path.key("namespaces"), report),
        namespace_selectors: selectors(raw.namespace_selectors, "namespaceSelectors", report),
        service_selectors: selectors(raw.service_selectors, "serviceSelectors", report),
    }
}

/// Addresses that no host can use: unspecified, multicast, broadcast, and IPv4-mapped IPv6. Clients
/// that read the status of a Service accept none of them.
static NO_HOSTS: LazyLock<Vec<AddressRange>> = LazyLock::new(|| {
    let prefixes =
        ["0.0.0.0/32", "224.0.0.0/4", "255.255.255.255/32", "::/128", "::ffff:0:0/96", "ff00::/8"];
    prefixes.into_iter().filter_map(|prefix| prefix.parse().ok()).collect()
});

/// The ranges in the order written, with their positions. Overlaps are noted.
fn ranges(
    raw: Option<List<Text<Addresses>>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<(usize, AddressRange)> {
    let mut written = Vec::new();
    for (position, Text(Addresses { range, network })) in elements(raw) {
        if let Some(network) = network {
            report.warning(
                &path.index(position),
                format_args!("has host bits set; it is read as {network}"),
            );
        }
        if let Some(none) = NO_HOSTS.iter().find_map(|none| range.overlap(*none)) {
            report.fault(
                &path.index(position),
                format_args!("holds {none}, which no host can use; expected unicast addresses"),
            );
        }
        written.push((position, range));
    }
    // Sorted, a range that overlaps any before it overlaps the one that reaches furthest.
    let mut sorted: Vec<_> = written.iter().copied().map(|(at, range)| (range, at)).collect();
    sorted.sort_unstable();
    let mut furthest: Option<(AddressRange, usize)> = None;
    for (range, position) in sorted {
        if let Some((other, other_position)) = furthest
            && other.overlaps(range)
        {
            let (later, earlier) = if position > other_position {
                ((range, position), (other, other_position))
            } else {
                ((other, other_position), (range, position))
            };
            report.fault(
                &path.index(later.1),
                format_args!(
                    "{} overlaps {} of entry [{}]; an address may be in one entry only",
                    later.0, earlier.0, earlier.1
                ),
            );
        }
        furthest = match furthest {
            Some((other, at))
                if other.family() == range.family() && other.last() >= range.last() =>
            {
                Some((other, at))
            }
            _ => Some((range, position)),
        };
    }
    written
}
