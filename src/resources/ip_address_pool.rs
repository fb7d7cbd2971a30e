//! IPAddressPool (metallb.io/v1beta1): addresses to give out.
//!
//! Answers which addresses a manifest offers, and that none is offered twice in it. Knows no other
//! pool; the catalog compares them.

use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{Text, Unsupported};
use super::metadata::Metadata;
use super::report::{List, Report, elements};
use crate::model::{AddressRange, Object, Pool};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "fields of later versions are read only to be refused")]
struct RawSpec {
    addresses: Option<List<Text<AddressRange>>>,
    auto_assign: Option<bool>,
    #[serde(rename = "avoidBuggyIPs")]
    avoid_buggy_addresses: Option<bool>,
    reserved: Option<List<Text<AddressRange>>>,

    service_allocation: Option<Unsupported>,
}

/// Reads the object; `None` when a fault of it was noted.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let raw: Option<RawSpec> = report.read(&spec);
    let raw = report.required(raw, &spec, "the addresses of the pool")?;
    let path = spec.key("addresses");
    if raw.addresses.as_ref().is_none_or(Vec::is_empty) {
        report.missing(&path, "one prefix or range of addresses, or more");
    }
    let ranges = ranges(raw.addresses, &path, report);
    let path = spec.key("reserved");
    let mut reserved = Vec::new();
    for (position, Text(range)) in elements(raw.reserved) {
        if !ranges.iter().any(|(_, of_pool)| of_pool.overlaps(range)) {
            report.warning(&path.index(position), format_args!("{range} is no part of the pool"));
        }
        reserved.push(range);
    }
    Some(Object::Pool(Pool {
        name: metadata.name,
        labels: metadata.labels,
        ranges: ranges.into_iter().map(|(_, range)| range).collect(),
        auto_assign: raw.auto_assign.unwrap_or(true),
        avoid_buggy_addresses: raw.avoid_buggy_addresses.unwrap_or(false),
        reserved,
    }))
}

/// The ranges in the order written, with their positions. Those that overlap are noted.
fn ranges(
    raw: Option<List<Text<AddressRange>>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<(usize, AddressRange)> {
    let written: Vec<_> = elements(raw).map(|(position, Text(range))| (position, range)).collect();
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
