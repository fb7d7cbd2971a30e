//! AS_PATH on the wire: the validation in front of zettabgp's decoder, and the two-octet form for old
//! speakers (RFC 4271 §4.3, RFC 6793 §4.2).

use zettabgp::BgpSessionParams;
use zettabgp::message::attributes::aspath::{BgpAS, BgpASitem, BgpASpath};

use super::Reader;
use fairway_ground::{AsPath, AsPathSegment, Asn};

const SEGMENT_SET: u8 = 1;
const SEGMENT_SEQUENCE: u8 = 2;
const SEGMENT_CONFEDERATION_SEQUENCE: u8 = 3;
const SEGMENT_CONFEDERATION_SET: u8 = 4;

/// Whether every segment is a set or a sequence, has at least one member, no AS 0 (RFC 7607 §2), and ends
/// where the next begins. zettabgp loops for ever on a stray byte and panics on other malformed input, so
/// nothing else may reach it. Confederation segments are rejected: none of our peers is in one (RFC 5065 §5).
pub(super) fn is_well_formed(value: &[u8], asn_octets: usize) -> bool {
    let mut reader = Reader::new(value);
    while !reader.is_empty() {
        let (Some(kind), Some(count)) = (reader.u8(), reader.u8()) else {
            return false;
        };
        if !matches!(kind, SEGMENT_SET | SEGMENT_SEQUENCE) || count == 0 {
            return false;
        }
        let Some(asns) = reader.take(usize::from(count).saturating_mul(asn_octets)) else {
            return false;
        };
        if asns.chunks_exact(asn_octets).any(is_as_zero) {
            return false;
        }
    }
    true
}

/// Whether it contains an AS_SET or AS_CONFED_SET.
pub(super) fn has_set(value: &[u8], asn_octets: usize) -> bool {
    segments(value, asn_octets)
        .any(|(kind, _)| matches!(kind, SEGMENT_SET | SEGMENT_CONFEDERATION_SET))
}

/// An AS4_PATH without confederation sequences, which may leak through an old speaker (RFC 6793 §6). Anything
/// after a segment that overruns is kept, for the validation to reject.
pub(super) fn without_confederation_sequences(value: &[u8]) -> Vec<u8> {
    const ASN_OCTETS: usize = 4;
    let mut kept = Vec::new();
    let mut read = 0_usize;
    for (kind, bytes) in segments(value, ASN_OCTETS) {
        read = read.saturating_add(bytes.len());
        if kind != SEGMENT_CONFEDERATION_SEQUENCE {
            kept.extend_from_slice(bytes);
        }
    }
    kept.extend_from_slice(value.get(read..).unwrap_or_default());
    kept
}

/// Each segment with its type, up to the first one that overruns.
fn segments(value: &[u8], asn_octets: usize) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let [kind, count, ..] = *rest else { return None };
        let length = usize::from(count).saturating_mul(asn_octets).saturating_add(2);
        let (segment, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some((kind, segment))
    })
}

/// Whether the octets are AS 0.
pub(super) fn is_as_zero(asn: &[u8]) -> bool {
    asn.iter().all(|octet| *octet == 0)
}

/// Decodes a value that [`is_well_formed`].
pub(super) fn decode(session: &BgpSessionParams, value: &[u8]) -> Option<AsPath> {
    let numbers = |asns: &mut dyn Iterator<Item = &BgpAS>| asns.map(|asn| asn.value).collect();
    let path = BgpASpath::decode_from(session, value).ok()?;
    let segments = path.value.iter().map(|segment| match segment {
        BgpASitem::Seq(asns) => AsPathSegment::Sequence(numbers(&mut asns.value.iter())),
        BgpASitem::Set(asns) => AsPathSegment::Set(numbers(&mut asns.value.iter())),
    });
    Some(AsPath(segments.collect()))
}

/// Merges an old speaker's AS_PATH with its AS4_PATH: AS4_PATH, preceded by the hops that only AS_PATH has,
/// which were added by speakers that do not support AS4_PATH (RFC 6793 §4.2.3). An AS4_PATH with more hops
/// than AS_PATH is ignored.
pub(super) fn merge(as_path: AsPath, as4_path: AsPath) -> AsPath {
    let Some(mut leading) = as_path.length().checked_sub(as4_path.length()) else {
        return as_path;
    };
    let mut merged = AsPath::default();
    for segment in as_path.0 {
        if leading == 0 {
            break;
        }
        merged.0.push(match segment {
            AsPathSegment::Sequence(mut asns) => {
                asns.truncate(leading);
                leading = leading.saturating_sub(asns.len());
                AsPathSegment::Sequence(asns)
            }
            set @ AsPathSegment::Set(_) => {
                leading = leading.saturating_sub(1);
                set
            }
        });
    }
    let mut rest = as4_path.0.into_iter();
    match (merged.0.last_mut(), rest.next()) {
        (Some(AsPathSegment::Sequence(front)), Some(AsPathSegment::Sequence(back))) => {
            front.extend(back);
        }
        (_, Some(next)) => merged.0.push(next),
        (_, None) => {}
    }
    merged.0.extend(rest);
    merged
}

/// Encodes a path. In the two-octet form, numbers that do not fit become AS_TRANS (RFC 6793 §4.2.2). A
/// segment holds at most 255 members; longer ones are continued in another.
///
/// Not encoded by zettabgp: 0.6.0 swaps the types of sequence and set.
pub(super) fn encode(path: &AsPath, four_octet_as: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in &path.0 {
        let (kind, asns) = match segment {
            AsPathSegment::Set(asns) => (SEGMENT_SET, asns),
            AsPathSegment::Sequence(asns) => (SEGMENT_SEQUENCE, asns),
        };
        for part in asns.chunks(usize::from(u8::MAX)) {
            bytes.extend_from_slice(&[kind, u8::try_from(part.len()).unwrap_or(u8::MAX)]);
            for asn in part {
                if four_octet_as {
                    bytes.extend_from_slice(&asn.to_be_bytes());
                } else {
                    let short = u16::try_from(*asn).unwrap_or(Asn::TRANS);
                    bytes.extend_from_slice(&short.to_be_bytes());
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_refuses_what_hangs_or_crashes_the_decoder() {
        assert!(is_well_formed(&[], 4));
        assert!(is_well_formed(&[2, 1, 0, 0, 0xFD, 0xE9], 4));
        assert!(is_well_formed(&[1, 1, 0, 1, 2, 2, 0, 1, 0, 2], 2));
        // One stray byte after the last segment: an endless loop in zettabgp 0.6.0.
        assert!(!is_well_formed(&[2, 1, 0, 0, 0xFD, 0xE9, 0], 4));
        assert!(!is_well_formed(&[2, 2, 0], 2));
        // Panics in zettabgp 0.6.0.
        assert!(!is_well_formed(&[2, 2], 4));
        assert!(!is_well_formed(&[2, 2, 0], 4));
        // A count of nine with one member: silently truncated by zettabgp 0.6.0.
        assert!(!is_well_formed(&[2, 9, 0, 0, 0xFD, 0xE9], 4));
        // An empty segment, a confederation segment, and an undefined type.
        assert!(!is_well_formed(&[2, 0], 4));
        assert!(!is_well_formed(&[3, 1, 0, 0, 0, 1], 4));
        assert!(!is_well_formed(&[9, 1, 0, 0, 0, 1], 4));
    }

    #[test]
    fn zettabgp_still_swaps_sequence_and_set() {
        // If this fails, the encoder above is no longer needed.
        use zettabgp::message::attributes::BgpAttr;
        let session = super::super::attribute::zettabgp_session(true);
        let mut bytes = [0; 6];
        BgpASpath::from([65001]).encode_to(&session, &mut bytes).unwrap();
        assert_eq!(bytes[0], SEGMENT_SET);
    }

    //+ RFC 6793 §6: confederation sequences are cut out of AS4_PATH, and the rest is used.
    #[test]
    fn confederation_sequences_are_cut_out_of_as4_path() {
        let (confederation, sequence) = ([3, 1, 0, 0, 0, 9], [2, 1, 0, 1, 0, 0]);
        let path = [confederation, sequence, confederation].concat();
        assert_eq!(without_confederation_sequences(&path), sequence);
        let overrun = [&sequence[..], &[3, 9, 0]].concat();
        assert_eq!(without_confederation_sequences(&overrun), overrun);
    }

    //= RFC 6793 §4.2.3 MUST: AS_PATH and AS4_PATH become one path.
    //= RFC 6793 §4.2.3 MUST: an AS4_PATH longer than AS_PATH is ignored.
    #[test]
    fn old_speakers_hops_go_in_front_of_as4_path() {
        let path = |asns: &[u32]| AsPath::sequence(asns.to_vec());
        let trans = u32::from(Asn::TRANS);
        let merged = merge(path(&[5, trans, trans]), path(&[70_000, 80_000]));
        assert_eq!(merged, path(&[5, 70_000, 80_000]));
        assert_eq!(merge(path(&[trans]), path(&[70_000])), path(&[70_000]));
        // An aggregation on the way removed hops: the longer AS4_PATH is ignored.
        assert_eq!(merge(path(&[5]), path(&[70_000, 80_000])), path(&[5]));
        assert_eq!(merge(path(&[5, 6]), AsPath::default()), path(&[5, 6]));
    }

    //= RFC 4271 §5.1.2 SHOULD: a path of more than 255 members goes on in another segment.
    #[test]
    fn long_sequences_are_continued_in_another_segment() {
        let path = AsPath::sequence((1..=300).collect());
        let bytes = encode(&path, true);
        assert_eq!(bytes[..2], [SEGMENT_SEQUENCE, 255]);
        assert_eq!(bytes[2 + 4 * 255..][..2], [SEGMENT_SEQUENCE, 45]);
        assert!(is_well_formed(&bytes, 4));
        assert!(is_well_formed(&encode(&path, false), 2));
    }
}
