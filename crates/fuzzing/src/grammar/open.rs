//! OPEN bodies and their capabilities, NOTIFICATION and ROUTE-REFRESH bodies.

use super::Draft;
use crate::Dice;

/// Capability codes that are assigned, and some that are not.
const CAPABILITIES: &[u8] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 128, 130,
    131, 184, 185, 239, 255, 0,
];

/// One capability: code, length, value.
fn put_capability(dice: &mut Dice, to: &mut Draft) {
    let code = dice.pick(CAPABILITIES);
    let family = dice.pick(&[[0, 1, 0, 1], [0, 2, 0, 1], [0, 1, 0, 128], [0, 25, 0, 70]]);
    let value: Draft = match code {
        1 => family.to_vec().into(),
        2 | 6 | 70 | 128 => Draft::default(),
        3 | 130 => {
            let mut value = Draft::from(family.to_vec());
            value.put_length_u8(1);
            value.put(&[64, 3]);
            value
        }
        5 => [0, 1, 0, 1, 0, 2].repeat(dice.below(3)).into(),
        9 => vec![dice.u8() % 6].into(),
        64 => [&[dice.u8(), 120], [0, 1, 1, 0x80].repeat(dice.below(3)).as_slice()].concat().into(),
        65 => dice.pick(&[1_u32, 65_001, 65_002, 23_456, u32::MAX]).to_be_bytes().to_vec().into(),
        69 => [0, 1, 1, 3].repeat(dice.below(4)).into(),
        71 => [0, 1, 1, 0x80, 0, 1, 0].repeat(dice.below(3)).into(),
        73 | 75 => {
            let mut value = Draft::default();
            value.put_counted_u8(&b"node-a".to_vec().into());
            if code == 73 {
                value.put_counted_u8(&b"lab.example".to_vec().into());
            }
            value
        }
        _ => {
            let length = dice.pick(&[0, 1, 2, 4, 7, 60]);
            dice.bytes(length).into()
        }
    };
    to.put(&[code]);
    to.put_counted_u8(&value);
}

/// A list of capabilities.
pub fn capabilities(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    for _ in 0..dice.pick(&[0, 1, 2, 3, 5, 8, 30]) {
        put_capability(dice, &mut draft);
    }
    draft
}

/// A body: one parameter for all capabilities or one for each, in the form of RFC 5492 or RFC 9072.
pub fn body(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    draft.put(&[4]);
    draft.put(&dice.pick(&[65_001_u16, 65_002, 23_456, 1]).to_be_bytes());
    draft.put(&dice.pick(&[0_u16, 3, 9, 90, 180, 65_535]).to_be_bytes());
    draft.put(&dice.pick(&[[192, 0, 2, 1], [0, 0, 0, 2], [255; 4]]));
    let mut lists = vec![capabilities(dice)];
    if dice.chance(30) {
        lists = (0..dice.below(6)).map(|_| capabilities(dice)).collect();
    }
    let length: usize = lists.iter().map(|list| list.bytes.len() + 2).sum();
    let extended = length > 255 || dice.chance(20);
    let mut parameters = Draft::default();
    for list in &lists {
        parameters.put(&[2]);
        if extended {
            parameters.put_counted_u16(list);
        } else {
            parameters.put_counted_u8(list);
        }
    }
    if extended {
        draft.put_length_u8(255);
        draft.put(&[255]);
        draft.put_counted_u16(&parameters);
    } else {
        draft.put_counted_u8(&parameters);
    }
    draft.at_most(super::update::BODY_LENGTH_BYTES_MAX)
}

/// A NOTIFICATION body, often a shutdown with a message (RFC 9003).
pub fn notification(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    if dice.chance(50) {
        draft.put(&[6, dice.pick(&[2, 4])]);
        let text: &str = dice.pick(&[
            "",
            "maintenance, back at 14:00",
            "\u{202e}sdrawkcab",
            "ünïcödé — 路由器",
            "\u{1b}[2J\r\n",
            "\"quoted\\\" and more",
        ]);
        let mut text = Draft::from(text.as_bytes().repeat(dice.pick(&[1, 1, 1, 8])));
        text.bytes.truncate(255);
        draft.put_counted_u8(&text);
    } else {
        draft.put(&[dice.u8() % 10, dice.u8() % 13]);
        let length = dice.pick(&[0, 1, 2, 19, 21, 300]);
        draft.put(&dice.bytes(length));
    }
    draft
}

/// The bodies of the markers before and after a refresh (RFC 7313).
pub fn marks(dice: &mut Dice) -> [Draft; 2] {
    let afi = dice.pick(&[1, 2]);
    [1, 2].map(|subtype| vec![0, afi, subtype, 1].into())
}

/// A ROUTE-REFRESH body.
pub fn route_refresh(dice: &mut Dice) -> Draft {
    let [high, low] = dice.pick(&[1_u16, 1, 2, 25, 16_388]).to_be_bytes();
    vec![high, low, dice.pick(&[0, 0, 0, 1, 2, 255]), dice.pick(&[1, 1, 1, 2, 128])].into()
}
