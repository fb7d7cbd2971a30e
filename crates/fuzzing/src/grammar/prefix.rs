//! Lists of prefixes in wire format, with path identifiers if the session uses them.

use fairway_bgp::wire::UpdateContext;
use fairway_ground::AddressFamily;

use super::Draft;
use crate::Dice;

/// At most `most` prefixes, with no host bits set.
pub fn list(dice: &mut Dice, context: UpdateContext, family: AddressFamily, most: usize) -> Draft {
    let mut draft = Draft::default();
    for _ in 0..dice.below(most + 1) {
        put(dice, context, family, &mut draft);
    }
    draft
}

/// As many prefixes as fit into `count` bytes, all as short as possible: the most values for the fewest
/// bytes. Equal ones, or as many different ones as there are; with path identifiers, also as many paths to
/// one prefix.
pub fn flood(dice: &mut Dice, context: UpdateContext, count: usize) -> Draft {
    if !context.add_path.is_empty() {
        return flood_of_paths(dice, count);
    }
    let first = dice.u16();
    let numbered = |number| {
        let [high, low] = first.wrapping_add(number).to_be_bytes();
        [16, high, low]
    };
    match dice.below(3) {
        0 => vec![0; count].into(),
        1 => [8, dice.u8()].repeat(count / 2).into(),
        _ => (0..).map(numbered).take(count / 3).flatten().collect::<Vec<u8>>().into(),
    }
}

fn flood_of_paths(dice: &mut Dice, count: usize) -> Draft {
    let numbered = |number: u32| [&number.to_be_bytes()[..], &[0]].concat();
    match dice.below(3) {
        0 => vec![0; count / 5 * 5].into(),
        1 => (0..)
            .map(|number: u16| [&[0, 0, 0, 1, 16], &number.to_be_bytes()[..]].concat())
            .take(count / 7)
            .flatten()
            .collect::<Vec<u8>>()
            .into(),
        _ => (0..).map(numbered).take(count / 5).flatten().collect::<Vec<u8>>().into(),
    }
}

/// One prefix: most are typical host routes and subnets, some have any length.
pub fn put(dice: &mut Dice, context: UpdateContext, family: AddressFamily, to: &mut Draft) {
    if context.add_path.contains(family) {
        // Few numbers, so that some occur twice with a prefix.
        to.put(&dice.pick(&[0_u32, 1, 1, 2, 3, 0x2000_0000, u32::MAX]).to_be_bytes());
    }
    let bits = family.address_bits();
    let length = match dice.below(32) {
        0 => 0,
        1..=8 => u8::try_from(dice.below(usize::from(bits) + 1)).unwrap_or(bits),
        9..=12 => bits / 4 * 3,
        _ => bits,
    };
    let mut address = match family {
        AddressFamily::Ipv4Unicast => dice.u32().to_be_bytes().to_vec(),
        AddressFamily::Ipv6Unicast => [&[0x20, 1, 0x0D, 0xB8], dice.bytes(12).as_slice()].concat(),
    };
    address.truncate(usize::from(length.div_ceil(8)));
    if let (Some(last), used @ 1..) = (address.last_mut(), length % 8) {
        *last &= 0xFF << (8 - used);
    }
    to.put_length_u8(usize::from(length));
    to.put(&address);
}
