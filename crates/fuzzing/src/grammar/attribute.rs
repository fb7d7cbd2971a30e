//! Path attributes: a valid value for every assigned type code.

use fairway_bgp::wire::UpdateContext;
use fairway_bgp::wire::attribute::{code, flag};
use fairway_ground::AddressFamily;

use super::{Draft, prefix};
use crate::Dice;

/// An attribute that is not serialised yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its flags; the extended length is added when needed.
    pub flags: u8,
    /// Its type code.
    pub code: u8,
    /// Its value.
    pub value: Draft,
}

/// Every type code that is or was assigned, and a few that never were: what a neighbour may send unsolicited.
pub const DICTIONARY: &[u8] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 99, 128, 129, 241, 242, 243,
    254, 255, 0,
];

/// The AS of the sending neighbour. Most paths start with it, or they would be rejected.
pub const NEIGHBOUR_ASN: u32 = 65_002;

/// The Optional and Transitive bits that the type code requires.
pub fn proper_flags(code: u8) -> u8 {
    match code {
        code::ORIGIN
        | code::AS_PATH
        | code::NEXT_HOP
        | code::LOCAL_PREF
        | code::ATOMIC_AGGREGATE => flag::TRANSITIVE,
        code::MULTI_EXIT_DISC
        | code::ORIGINATOR_ID
        | code::CLUSTER_LIST
        | code::MP_REACH_NLRI
        | code::MP_UNREACH_NLRI
        | 26
        | 29
        | 33 => flag::OPTIONAL,
        _ => flag::OPTIONAL | flag::TRANSITIVE,
    }
}

impl Attribute {
    /// A valid attribute of this type.
    pub fn draw(dice: &mut Dice, type_code: u8, context: UpdateContext) -> Self {
        let asn_octets = if context.four_octet_as { 4 } else { 2 };
        let value = match type_code {
            code::ORIGIN => vec![dice.pick(&[0, 0, 0, 1, 2])].into(),
            code::AS_PATH => as_path(dice, asn_octets),
            code::AS4_PATH => as_path(dice, 4),
            code::NEXT_HOP => next_hop_ipv4(dice).to_vec().into(),
            code::MULTI_EXIT_DISC | code::LOCAL_PREF => {
                dice.pick(&[0, 1, 100, 200, u32::MAX]).to_be_bytes().to_vec().into()
            }
            code::ATOMIC_AGGREGATE => Draft::default(),
            code::AGGREGATOR => aggregator(dice, asn_octets),
            code::AS4_AGGREGATOR => aggregator(dice, 4),
            code::COMMUNITIES => groups(dice, 4),
            code::ORIGINATOR_ID => dice.bytes(4).into(),
            // The neighbour itself, an AS behind it, or any other.
            code::ONLY_TO_CUSTOMER => {
                let any = dice.u32();
                dice.pick(&[NEIGHBOUR_ASN, 64_512, any]).to_be_bytes().to_vec().into()
            }
            code::CLUSTER_LIST => groups(dice, 4),
            code::EXTENDED_COMMUNITIES => groups(dice, 8),
            code::LARGE_COMMUNITIES => groups(dice, 12),
            code::MP_REACH_NLRI => mp_reach(dice, context, 20),
            code::MP_UNREACH_NLRI => mp_unreach(dice, context, 20),
            _ => {
                let length = dice.pick(&[0, 1, 3, 4, 8, 15, 16, 40, 255, 256, 1024]);
                if dice.chance(30) { vec![0; length].into() } else { dice.bytes(length).into() }
            }
        };
        Self { flags: proper_flags(type_code), code: type_code, value }
    }

    /// Appends it in wire format.
    pub fn put(&self, to: &mut Draft) {
        let length = self.value.bytes.len();
        if length > 255 || self.flags & flag::EXTENDED_LENGTH != 0 {
            to.put(&[self.flags | flag::EXTENDED_LENGTH, self.code]);
            to.put_counted_u16(&self.value);
        } else {
            to.put(&[self.flags, self.code]);
            to.put_counted_u8(&self.value);
        }
    }
}

/// A realistic path: one sequence of a few ASes; sometimes several segments, a hundred hops, or numbers that
/// need four octets.
fn as_path(dice: &mut Dice, asn_octets: usize) -> Draft {
    let mut draft = Draft::default();
    for _ in 0..dice.pick(&[1, 1, 1, 1, 0, 2, 3]) {
        let count = dice.pick(&[1, 2, 3, 4, 5, 6, 30, 255]);
        draft.put(&[if dice.chance(3) { 1 } else { 2 }]);
        draft.put_length_u8(count);
        for position in 0..count {
            let asn = match dice.below(10) {
                0..=6 if position == 0 => NEIGHBOUR_ASN,
                0..=3 => 64_512 + dice.u32() % 1024,
                4 => 23_456,
                _ if asn_octets == 2 => u32::from(dice.u16().max(1)),
                _ => dice.u32().max(1),
            };
            draft.put(&asn.to_be_bytes()[4 - asn_octets..]);
        }
    }
    draft
}

fn aggregator(dice: &mut Dice, asn_octets: usize) -> Draft {
    let mut asn = vec![0; asn_octets - 2];
    asn.extend_from_slice(&dice.u16().max(1).to_be_bytes());
    asn.extend_from_slice(&dice.bytes(4));
    asn.into()
}

/// A list of values of `octets` octets each, at least one; sometimes well-known communities, or the same
/// value twice.
fn groups(dice: &mut Dice, octets: usize) -> Draft {
    let mut bytes = Vec::new();
    for _ in 0..=dice.pick(&[0, 1, 2, 5, 60]) {
        if dice.chance(20) && bytes.len() >= octets {
            bytes.extend_from_within(..octets);
        } else if dice.chance(20) {
            bytes.extend_from_slice(&vec![0xFF; octets - 1]);
            bytes.push(dice.u8() % 8);
        } else {
            bytes.extend_from_slice(&dice.bytes(octets));
        }
    }
    bytes.into()
}

fn next_hop_ipv4(dice: &mut Dice) -> [u8; 4] {
    if dice.chance(95) { [192, 0, 2, dice.u8()] } else { dice.u32().to_be_bytes() }
}

fn next_hop_ipv6(dice: &mut Dice) -> Vec<u8> {
    let global = [&[0x20, 1, 0x0D, 0xB8], dice.bytes(12).as_slice()].concat();
    let link_local = [&[0xFE, 0x80, 0, 0, 0, 0, 0, 0], dice.bytes(8).as_slice()].concat();
    match dice.below(20) {
        0 => dice.bytes(16),
        1..=6 => [global, link_local].concat(),
        _ => global,
    }
}

/// MP_REACH_NLRI: usually IPv6, sometimes IPv4, rarely a family that was not negotiated.
pub fn mp_reach(dice: &mut Dice, context: UpdateContext, prefixes: usize) -> Draft {
    let mut draft = Draft::default();
    match dice.below(20) {
        0 => {
            draft.put(&dice.pick(&[[0, 1, 128], [0, 25, 65], [0, 2, 4], [0x40, 4, 71]]));
            draft.put_counted_u8(&dice.bytes(12).into());
            draft.put(&[0]);
            draft.put(&dice.bytes(20));
        }
        1..=3 => {
            draft.put(&[0, 1, 1]);
            draft.put_counted_u8(&next_hop_ipv4(dice).to_vec().into());
            draft.put(&[0]);
            draft.put_draft(&prefix::list(dice, context, AddressFamily::Ipv4Unicast, prefixes));
        }
        _ => {
            draft.put(&[0, 2, 1]);
            draft.put_counted_u8(&next_hop_ipv6(dice).into());
            draft.put(&[if dice.chance(5) { dice.u8() } else { 0 }]);
            draft.put_draft(&prefix::list(dice, context, AddressFamily::Ipv6Unicast, prefixes));
        }
    }
    draft
}

/// MP_UNREACH_NLRI, often without prefixes (End-of-RIB).
pub fn mp_unreach(dice: &mut Dice, context: UpdateContext, prefixes: usize) -> Draft {
    let mut draft = Draft::default();
    let family = dice.pick(&[AddressFamily::Ipv6Unicast, AddressFamily::Ipv4Unicast]);
    draft.put(&family.afi().to_be_bytes());
    draft.put(&[family.safi()]);
    draft.put_draft(&prefix::list(dice, context, family, prefixes));
    draft
}
