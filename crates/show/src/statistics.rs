//! `show bgp ipv4|ipv6 unicast statistics`: the table in figures.
//!
//! Ours: a prefix inside another one counts as aggregateable wherever it is; FRR 8.4 leaves out what is below the first
//! node of its tree. FRR's text for IPv6 has `%s` where the colon is.

use std::collections::BTreeMap;
use std::fmt::Write;

use fairway_ground::{AddressFamily, AsPath, AsPathSegment, Prefix};
use serde_json::{Value, json};

use super::Snapshot;
use super::family_key::family_key;
use super::object::Object;
use super::route::{EntryPath, RouteTable, table};

/// The octets of an AS path in an UPDATE: the type and length of a segment, and its four-octet numbers (RFC 6793 §3).
const SEGMENT_HEADER_OCTETS: usize = 2;
const ASN_OCTETS: usize = 4;

/// The private AS numbers (RFC 6996 §5).
const PRIVATE: [std::ops::RangeInclusive<u32>; 2] =
    [64_512..=65_534, 4_200_000_000..=4_294_967_294];

#[derive(Debug, Default)]
struct Statistics {
    paths: usize,
    prefixes: usize,
    length_sum: usize,
    /// Prefixes that no other one contains.
    outermost: usize,
    aggregates: usize,
    addresses: f64,
    hops_max: usize,
    hops_sum: usize,
    octets_max: usize,
    octets_sum: usize,
    highest_public_asn: u32,
    by_length: BTreeMap<u8, usize>,
}

impl Statistics {
    /// The table is sorted by prefix, so that one around others is before them.
    fn of(table: &RouteTable<'_>, family: AddressFamily) -> Self {
        let mut all = Self::default();
        let mut around: Option<Prefix> = None;
        for entry in table.entries() {
            let (prefix, length) = (entry.prefix, entry.prefix.length());
            all.prefixes = all.prefixes.saturating_add(1);
            all.length_sum = all.length_sum.saturating_add(usize::from(length));
            let count = all.by_length.entry(length).or_default();
            *count = count.saturating_add(1);
            if !around.is_some_and(|around| around.contains(prefix.address())) {
                around = Some(prefix);
                all.outermost = all.outermost.saturating_add(1);
                let host_bits = family.address_bits().saturating_sub(length);
                all.addresses += 2_f64.powi(i32::from(host_bits));
            }
            entry.paths.iter().for_each(|path| all.add(*path));
        }
        all
    }

    fn add(&mut self, path: EntryPath<'_>) {
        self.paths = self.paths.saturating_add(1);
        let EntryPath::Learned(learned) = path else { return };
        let attributes = &learned.path.attributes;
        self.aggregates = self.aggregates.saturating_add(attributes.atomic_aggregate.into());
        let hops = attributes.as_path.length();
        self.hops_max = self.hops_max.max(hops);
        self.hops_sum = self.hops_sum.saturating_add(hops);
        let octets = octets(&attributes.as_path);
        self.octets_max = self.octets_max.max(octets);
        self.octets_sum = self.octets_sum.saturating_add(octets);
        let public =
            attributes.as_path.asns().filter(|asn| !PRIVATE.iter().any(|it| it.contains(asn)));
        self.highest_public_asn = self.highest_public_asn.max(public.max().unwrap_or(0));
    }

    /// The address space in prefixes of `length` bits.
    fn equivalent(&self, family: AddressFamily, length: u8) -> f64 {
        let bits = i32::from(family.address_bits()) - i32::from(length);
        self.addresses * 2_f64.powi(-bits)
    }
}

fn octets(as_path: &AsPath) -> usize {
    let segment = |segment: &AsPathSegment| {
        let (AsPathSegment::Set(asns) | AsPathSegment::Sequence(asns)) = segment;
        asns.len().saturating_mul(ASN_OCTETS).saturating_add(SEGMENT_HEADER_OCTETS)
    };
    as_path.0.iter().map(segment).fold(0, usize::saturating_add)
}

#[allow(clippy::cast_precision_loss, reason = "a mean that is printed")]
fn mean(sum: usize, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// The lengths whose equivalents FRR gives.
fn equivalents(family: AddressFamily) -> [u8; 2] {
    match family {
        AddressFamily::Ipv4Unicast => [8, 24],
        AddressFamily::Ipv6Unicast => [32, 48],
    }
}

/// The figures in lines.
pub(super) fn text(snapshot: &Snapshot<'_>, family: AddressFamily) -> String {
    let all = Statistics::of(&table(snapshot, family), family);
    let mut text = format!("BGP {family} RIB statistics (VRF {})\n", snapshot.vrf_name);
    let aggregateable = all.prefixes.saturating_sub(all.outermost);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:30}: {value:>12}");
    };
    line("Total Advertisements", all.paths.to_string());
    line("Total Prefixes", all.prefixes.to_string());
    line("Average prefix length", format!("{:.2}", mean(all.length_sum, all.prefixes)));
    line("Unaggregateable prefixes", all.outermost.to_string());
    line("Maximum aggregateable prefixes", aggregateable.to_string());
    line("BGP Aggregate advertisements", all.aggregates.to_string());
    let addresses = all.addresses;
    let plain = if addresses < 1e12 { format!("{addresses}") } else { format!("{addresses:.5e}") };
    line("Address space advertised", plain);
    if family == AddressFamily::Ipv4Unicast {
        line(
            &format!("{:>30}", "% announced"),
            format!("{:.2}", all.equivalent(family, 0) * 100.0),
        );
    }
    for length in equivalents(family) {
        let name = format!("/{length} equivalent");
        line(&format!("{name:>30}"), format!("{:.2}", all.equivalent(family, length)));
    }
    line("\nAdvertisements with paths", all.paths.to_string());
    line("Longest AS-Path (hops)", all.hops_max.to_string());
    line("Average AS-Path length (hops)", format!("{:.2}", mean(all.hops_sum, all.paths)));
    line("Largest AS-Path (bytes)", all.octets_max.to_string());
    line("Average AS-Path size (bytes)", format!("{:.2}", mean(all.octets_sum, all.paths)));
    line("Highest public ASN", all.highest_public_asn.to_string());
    text
}

/// The figures with FRR's keys.
pub(super) fn json(snapshot: &Snapshot<'_>, family: AddressFamily) -> Object {
    let all = Statistics::of(&table(snapshot, family), family);
    let lengths = all.by_length.iter().map(|(length, count)| json!({ length.to_string(): count }));
    let mut figures = Object::new()
        .field("instance", format!("VRF {}", snapshot.vrf_name))
        .field("totalAdvertisements", all.paths)
        .field("totalPrefixes", all.prefixes)
        .field("averagePrefixLength", mean(all.length_sum, all.prefixes))
        .field("unaggregateablePrefixes", all.outermost)
        .field("maximumAggregateablePrefixes", all.prefixes.saturating_sub(all.outermost))
        .field("bgpAggregateAdvertisements", all.aggregates)
        .field("addressSpaceAdvertised", all.addresses);
    if family == AddressFamily::Ipv4Unicast {
        figures = figures.field("%announced", all.equivalent(family, 0) * 100.0);
    }
    for length in equivalents(family) {
        figures = figures.field(&format!("/{length}equivalent"), all.equivalent(family, length));
    }
    let figures = figures
        .field("advertisementsWithPaths", all.paths)
        .field("longestAsPath", all.hops_max)
        .field("averageAsPathLengthHops", mean(all.hops_sum, all.paths))
        .field("largestAsPath", all.octets_max)
        .field("averageAsPathSizeBytes", mean(all.octets_sum, all.paths))
        .field("highestPublicAsn", all.highest_public_asn)
        .field("prefixLength", lengths.collect::<Vec<Value>>());
    Object::new().field(family_key(family), vec![Value::from(figures)])
}
