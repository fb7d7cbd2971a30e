//! Router solicitations and advertisements (RFC 4861 §4.1, §4.2), after two octets that determine source and
//! hop limit: see [`crate::targets::router_discovery`].

use super::Draft;
use crate::Dice;

/// One packet.
pub fn packet(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    let source = if dice.chance(90) { 0 } else { dice.u8() };
    let hop_limit = if dice.chance(95) { 255 } else { dice.u8() };
    draft.put(&[source, hop_limit]);
    let is_advertisement = dice.chance(70);
    let fixed = if is_advertisement { 12 } else { 4 };
    draft.put(&[if is_advertisement { 134 } else { 133 }, 0]);
    draft.put(&dice.bytes(fixed + 2));
    for _ in 0..dice.below(4) {
        option(dice, &mut draft);
    }
    draft
}

fn option(dice: &mut Dice, draft: &mut Draft) {
    let (kind, units) = dice.pick(&[(1_u8, 1_usize), (3, 4), (5, 1), (25, 3), (200, 2)]);
    draft.put(&[kind]);
    draft.put_length_u8(units);
    draft.put(&dice.bytes(units * 8 - 2));
}
