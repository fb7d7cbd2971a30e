//! Corrupts a valid message as a broken or hostile neighbour would: parts duplicated, swapped, removed or
//! taken from elsewhere, wrong lengths, flipped bits, truncation.

use fairway_bgp::wire::UpdateContext;
use fairway_bgp::wire::attribute::flag;

use crate::Dice;
use crate::grammar::attribute::{Attribute, DICTIONARY, proper_flags};
use crate::grammar::update::UpdateDraft;
use crate::grammar::{Draft, LengthField};

/// The amount of corruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing in one of ten cases, else up to four places.
    Usual,
    /// Mostly nothing, else one place.
    Sometimes,
}

/// `draft` with some places corrupted; `other` is a second valid message to splice with.
pub fn bent(dice: &mut Dice, draft: &Draft, other: &Draft, how_much: Mutation) -> Draft {
    let mut draft = draft.clone();
    let places = match how_much {
        Mutation::Usual => dice.pick(&[0, 1, 1, 1, 1, 2, 2, 3, 3, 4]),
        Mutation::Sometimes => dice.pick(&[0, 0, 0, 1]),
    };
    for _ in 0..places {
        bend(dice, &mut draft, other);
    }
    draft
}

/// Boundary values.
const EDGES: [u8; 10] = [0, 1, 2, 4, 16, 0x7F, 0x80, 0xFE, 0xFF, 33];

fn bend(dice: &mut Dice, draft: &mut Draft, other: &Draft) {
    let length = draft.bytes.len();
    if length == 0 {
        let count = 1 + dice.below(8);
        draft.put(&dice.bytes(count));
        return;
    }
    let at = dice.below(length);
    match dice.below(16) {
        0..=2 => draft.bytes[at] ^= 1 << dice.below(8),
        3 => draft.bytes[at] = dice.u8(),
        4 => draft.bytes[at] = dice.pick(&EDGES),
        5..=9 => lie(dice, draft),
        10 => draft.bytes.truncate(at),
        11 => drop(draft.bytes.drain(at..(at + 1 + dice.below(4)).min(length))),
        12 => {
            let count = 1 + dice.below(4);
            let bytes = dice.bytes(count);
            drop(draft.bytes.splice(at..at, bytes));
        }
        13 => {
            let bytes = draft.bytes[at..(at + 1 + dice.below(32)).min(length)].to_vec();
            drop(draft.bytes.splice(at..at, bytes));
        }
        14 => {
            let from = dice.below(other.bytes.len().max(1)).min(other.bytes.len());
            draft.bytes.truncate(at);
            draft.put(&other.bytes[from..]);
        }
        _ => {
            let end = (at + 1 + dice.below(8)).min(length);
            let fill = dice.pick(&[0, 0xFF]);
            draft.bytes[at..end].fill(fill);
        }
    }
}

/// Changes one length field.
fn lie(dice: &mut Dice, draft: &mut Draft) {
    if draft.lengths.is_empty() {
        return;
    }
    let LengthField { at, wide } = dice.pick(&draft.lengths);
    let choice = dice.below(6);
    let bend = |value: u16, most: u16| match choice {
        0 | 1 => value.wrapping_sub(1) & most,
        2 | 3 => value.wrapping_add(1) & most,
        4 => 0,
        _ => most,
    };
    // Earlier mutations may have removed the field.
    match draft.bytes.get_mut(at..) {
        Some([high, low, ..]) if wide => {
            let length = bend(u16::from_be_bytes([*high, *low]), u16::MAX);
            [*high, *low] = length.to_be_bytes();
        }
        Some([octet, ..]) if !wide => {
            let [_, low] = bend(u16::from(*octet), u16::from(u8::MAX)).to_be_bytes();
            *octet = low;
        }
        _ => {}
    }
}

/// A single corrupted value.
pub fn value(dice: &mut Dice, type_code: u8, context: UpdateContext) -> Vec<u8> {
    let draft = Attribute::draw(dice, type_code, context).value;
    let other = Attribute::draw(dice, type_code, context).value;
    bent(dice, &draft, &other, Mutation::Usual).bytes
}

/// An UPDATE body: parts are rearranged first, bytes are corrupted afterwards.
pub fn update(dice: &mut Dice, context: UpdateContext) -> Draft {
    let mut draft = UpdateDraft::draw(dice, context);
    for _ in 0..dice.pick(&[0, 0, 0, 1, 1, 2, 3]) {
        rearrange(dice, &mut draft, context);
    }
    let body = draft.body();
    if dice.chance(40) {
        return body;
    }
    let other = UpdateDraft::draw(dice, context).body();
    let mut body = bent(dice, &body, &other, Mutation::Usual);
    body.bytes.truncate(draft.length_bytes_max());
    body
}

/// Corrupts one part and keeps all lengths correct, so that the fault itself is reached.
fn rearrange(dice: &mut Dice, draft: &mut UpdateDraft, context: UpdateContext) {
    let attributes = &mut draft.attributes;
    let at = dice.below(attributes.len());
    let inserted = |dice: &mut Dice| {
        let type_code = if dice.chance(90) { dice.pick(DICTIONARY) } else { dice.u8() };
        Attribute::draw(dice, type_code, context)
    };
    if attributes.is_empty() || dice.chance(25) {
        attributes.insert(at, inserted(dice));
        return;
    }
    let other = dice.below(attributes.len());
    match dice.below(9) {
        0 => {
            let again = attributes[at].clone();
            attributes.insert(other, again);
        }
        1 => attributes.swap(at, other),
        2 => drop(attributes.remove(at)),
        3 => attributes[at].flags ^= 1 << dice.below(8),
        4 => {
            let flags = dice.pick(&[0, 0x40, 0x80, 0xC0, 0xE0, 0xFF]);
            attributes[at].flags = flags;
        }
        5 => attributes[at].flags |= flag::EXTENDED_LENGTH,
        6 => {
            // The value of one with the code of another.
            attributes[at].code = attributes[other].code;
            if dice.chance(50) {
                attributes[at].flags = proper_flags(attributes[at].code);
            }
        }
        7 => {
            let value = &mut attributes[at].value;
            let fill = dice.pick(&[0, 0xFF]);
            value.bytes.fill(fill);
        }
        _ => {
            let original = attributes[at].value.clone();
            let other = Attribute::draw(dice, attributes[at].code, context).value;
            attributes[at].value = bent(dice, &original, &other, Mutation::Usual);
        }
    }
}
