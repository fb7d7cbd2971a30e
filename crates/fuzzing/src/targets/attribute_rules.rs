//! A second implementation of RFC 7606 §7, based on the RFCs and not on the parser: how is a value treated in
//! an otherwise valid UPDATE? Comparing the two finds errors in either.

use fairway_bgp::wire::UpdateContext;
use fairway_bgp::wire::attribute::code;
use fairway_ground::PeerKind;

/// The expected treatment of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It is accepted.
    Taken,
    /// The attribute is discarded, the route stays.
    Discarded,
    /// The route is treated as withdrawn.
    Withdrawn,
}

/// The rule for one value with correct flags.
pub fn expected(type_code: u8, value: &[u8], context: UpdateContext) -> Expected {
    use Expected::{Discarded, Taken, Withdrawn};
    let or = |otherwise: Expected, holds: bool| if holds { Taken } else { otherwise };
    let external = context.kind == PeerKind::External;
    let asn_octets = if context.four_octet_as { 4 } else { 2 };
    let groups_of = |octets: usize| !value.is_empty() && value.len().is_multiple_of(octets);
    match type_code {
        code::ORIGIN => or(Withdrawn, value.len() == 1 && value[0] < 3),
        code::AS_PATH => match segments(value, asn_octets) {
            Some(segments) => or(Withdrawn, segments.iter().all(|(kind, _)| *kind == 2)),
            None => Withdrawn,
        },
        code::NEXT_HOP => or(Withdrawn, is_host(value)),
        code::MULTI_EXIT_DISC => or(Withdrawn, value.len() == 4),
        // RFC 7606 §7.5, §7.9, §7.10: from an external neighbour they are discarded without validation.
        code::LOCAL_PREF | code::ORIGINATOR_ID | code::CLUSTER_LIST if external => Discarded,
        code::LOCAL_PREF | code::ORIGINATOR_ID => or(Withdrawn, value.len() == 4),
        code::CLUSTER_LIST | code::COMMUNITIES => or(Withdrawn, groups_of(4)),
        code::EXTENDED_COMMUNITIES => or(Withdrawn, groups_of(8)),
        code::LARGE_COMMUNITIES => or(Withdrawn, groups_of(12)),
        code::ONLY_TO_CUSTOMER => or(Withdrawn, value.len() == 4),
        code::ATOMIC_AGGREGATE => or(Discarded, value.is_empty()),
        code::AGGREGATOR => or(Discarded, is_aggregator(value, asn_octets)),
        // RFC 6793 §4.1: not allowed between speakers with four-octet AS numbers.
        code::AS4_PATH | code::AS4_AGGREGATOR if context.four_octet_as => Discarded,
        code::AS4_AGGREGATOR => or(Discarded, is_aggregator(value, 4)),
        code::AS4_PATH => as4_path(value),
        // Unknown attributes are opaque bytes.
        _ => Taken,
    }
}

/// The segments of a path, type and members; `None` if it is malformed (RFC 7606 §7.2, RFC 7607 §2; RFC 5065
/// §5 for the types that are not allowed between ASes).
pub fn segments(value: &[u8], asn_octets: usize) -> Option<Vec<(u8, Vec<u32>)>> {
    let mut rest = value;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let [kind @ (1 | 2), count @ 1..=255, after @ ..] = rest else { return None };
        let length = usize::from(*count) * asn_octets;
        let asns: Vec<u32> = after
            .get(..length)?
            .chunks(asn_octets)
            .map(|asn| asn.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
            .collect();
        if asns.contains(&0) {
            return None;
        }
        segments.push((*kind, asns));
        rest = &after[length..];
    }
    Some(segments)
}

/// AS4_PATH from an old speaker: a set counts however malformed the rest is (RFC 9774 §3), confederation
/// sequences are removed (RFC 6793 §6), and the rest must be a path.
fn as4_path(value: &[u8]) -> Expected {
    let mut rest = value;
    let mut left = Vec::new();
    while let [kind, count, ..] = *rest {
        let Some((segment, after)) = rest.split_at_checked(2 + 4 * usize::from(count)) else {
            break;
        };
        match kind {
            1 | 4 => return Expected::Withdrawn,
            3 => {}
            _ => left.extend_from_slice(segment),
        }
        rest = after;
    }
    left.extend_from_slice(rest);
    match segments(&left, 4) {
        Some(segments) if !segments.is_empty() => Expected::Taken,
        _ => Expected::Discarded,
    }
}

/// RFC 4271 §6.3: a valid host address.
fn is_host(value: &[u8]) -> bool {
    match value {
        [0, _, _, _] | [224..=239, _, _, _] | [255, 255, 255, 255] => false,
        _ => value.len() == 4,
    }
}

/// An AS number, not 0 (RFC 7607 §2), and a router.
fn is_aggregator(value: &[u8], asn_octets: usize) -> bool {
    value.len() == asn_octets + 4 && value[..asn_octets].iter().any(|octet| *octet != 0)
}
