//! UPDATE bodies.

use fairway_bgp::wire::UpdateContext;
use fairway_bgp::wire::attribute::code;
use fairway_ground::{AddressFamily, PeerKind};

use super::attribute::{Attribute, mp_reach, mp_unreach, proper_flags};
use super::{Draft, prefix};
use crate::Dice;

/// Maximum length of a body: a message of 4096 less its header.
pub const BODY_LENGTH_BYTES_MAX: usize = 4077;
/// The same for an extended message (RFC 8654).
pub const EXTENDED_BODY_LENGTH_BYTES_MAX: usize = 65_516;

/// An UPDATE in parts, so that complete attributes can be removed, duplicated and swapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateDraft {
    /// Withdrawn prefixes.
    pub withdrawn: Draft,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Announced prefixes.
    pub announced: Draft,
    /// It may be as long as RFC 8654 allows.
    pub extended: bool,
}

/// The content of an UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    AnnounceIpv4,
    AnnounceIpv6,
    AnnounceBoth,
    WithdrawIpv4,
    WithdrawIpv6,
    EndOfRib,
    Flood,
}

fn usual(dice: &mut Dice) -> Subject {
    use Subject::*;
    dice.pick(&[
        AnnounceIpv4,
        AnnounceIpv4,
        AnnounceIpv4,
        AnnounceIpv6,
        AnnounceIpv6,
        AnnounceBoth,
        WithdrawIpv4,
        WithdrawIpv6,
        EndOfRib,
    ])
}

impl UpdateDraft {
    /// A valid one for this session, with attributes that only internal peers send if it is internal.
    pub fn draw(dice: &mut Dice, context: UpdateContext) -> Self {
        use Subject::*;
        let subject = if dice.chance(1) { Flood } else { usual(dice) };
        let mut draft = Self::default();
        let most = if dice.chance(2) { 600 } else { 8 };
        match subject {
            Flood => draft.flood(dice, context),
            WithdrawIpv4 => {
                draft.withdrawn = prefix::list(dice, context, AddressFamily::Ipv4Unicast, most)
            }
            WithdrawIpv6 => {
                draft.push(code::MP_UNREACH_NLRI, mp_unreach(dice, context, most.min(100)))
            }
            EndOfRib if dice.chance(50) => {
                draft.push(code::MP_UNREACH_NLRI, mp_unreach(dice, context, 0))
            }
            EndOfRib => {}
            AnnounceIpv4 | AnnounceIpv6 | AnnounceBoth => {
                if subject != AnnounceIpv4 {
                    draft.push(code::MP_REACH_NLRI, mp_reach(dice, context, most.min(100)));
                }
                draft.describe(dice, context);
                if subject != AnnounceIpv6 {
                    prefix::put(dice, context, AddressFamily::Ipv4Unicast, &mut draft.announced);
                    let more = prefix::list(dice, context, AddressFamily::Ipv4Unicast, most);
                    draft.announced.put_draft(&more);
                }
            }
        }
        draft
    }

    /// Makes one of its parts as large as a message allows, of the smallest elements.
    fn flood(&mut self, dice: &mut Dice, context: UpdateContext) {
        const COUNT: usize = 3_700;
        match dice.below(7) {
            6 => self.bulk(dice, context),
            0 => self.withdrawn = prefix::flood(dice, context, BODY_LENGTH_BYTES_MAX - 4),
            1 => {
                let mut value = Draft::from(vec![0, 2, 1]);
                value.put_draft(&prefix::flood(dice, context, COUNT));
                self.push(code::MP_UNREACH_NLRI, value);
            }
            2 => {
                let mut value = Draft::from(vec![0, 1, 1, 4, 192, 0, 2, 1, 0]);
                value.put_draft(&prefix::flood(dice, context, COUNT));
                self.push(code::MP_REACH_NLRI, value);
                self.describe(dice, context);
            }
            3 => {
                self.describe(dice, context);
                self.announced = prefix::flood(dice, context, BODY_LENGTH_BYTES_MAX);
            }
            4 => {
                self.describe(dice, context);
                let segment =
                    [&[2, 1][..], &vec![1; if context.four_octet_as { 4 } else { 2 }]].concat();
                let path = segment.repeat(COUNT / segment.len()).into();
                self.attributes.retain(|attribute| attribute.code != code::AS_PATH);
                self.push(code::AS_PATH, path);
                self.announced = vec![0].into();
            }
            _ => {
                for _ in 0..COUNT / 3 {
                    let type_code = dice.u8();
                    self.push(type_code, Draft::default());
                }
                self.announced = vec![0].into();
            }
        }
    }

    /// Attributes of a length that only an extended message can carry, and a few routes.
    fn bulk(&mut self, dice: &mut Dice, context: UpdateContext) {
        self.extended = true;
        self.describe(dice, context);
        let (type_code, octets) =
            dice.pick(&[(code::COMMUNITIES, 4), (code::LARGE_COMMUNITIES, 12), (99, 1)]);
        // Mostly just over the ordinary limit: more variety at the same cost.
        let longest = if dice.chance(10) { 60_000 } else { 4_096 };
        let length = longest / octets * octets;
        self.attributes.retain(|attribute| attribute.code != type_code);
        let value = dice.bytes(length).into();
        self.push(type_code, value);
        self.announced = prefix::list(dice, context, AddressFamily::Ipv4Unicast, 100);
    }

    fn push(&mut self, type_code: u8, value: Draft) {
        let flags = proper_flags(type_code);
        self.attributes.push(Attribute { flags, code: type_code, value });
    }

    /// Adds the mandatory attributes of a route, and some optional ones.
    fn describe(&mut self, dice: &mut Dice, context: UpdateContext) {
        let internal = context.kind == PeerKind::Internal;
        let old = !context.four_octet_as;
        let mut add = |dice: &mut Dice, type_code, percent| {
            if dice.chance(percent) {
                self.attributes.push(Attribute::draw(dice, type_code, context));
            }
        };
        add(dice, code::ORIGIN, 100);
        add(dice, code::AS_PATH, 100);
        add(dice, code::NEXT_HOP, 100);
        add(dice, code::MULTI_EXIT_DISC, 30);
        add(dice, code::LOCAL_PREF, if internal { 90 } else { 3 });
        add(dice, code::ATOMIC_AGGREGATE, 10);
        add(dice, code::AGGREGATOR, 15);
        add(dice, code::COMMUNITIES, 40);
        add(dice, code::ORIGINATOR_ID, if internal { 20 } else { 1 });
        add(dice, code::CLUSTER_LIST, if internal { 20 } else { 1 });
        add(dice, code::EXTENDED_COMMUNITIES, 15);
        add(dice, code::AS4_PATH, if old { 30 } else { 1 });
        add(dice, code::AS4_AGGREGATOR, if old { 10 } else { 1 });
        add(dice, code::LARGE_COMMUNITIES, 25);
        add(dice, code::ONLY_TO_CUSTOMER, 10);
    }

    /// The maximum length of its body.
    pub fn length_bytes_max(&self) -> usize {
        if self.extended { EXTENDED_BODY_LENGTH_BYTES_MAX } else { BODY_LENGTH_BYTES_MAX }
    }

    /// The body in wire format, truncated at the maximum length of a message.
    pub fn body(&self) -> Draft {
        let mut list = Draft::default();
        for attribute in &self.attributes {
            attribute.put(&mut list);
        }
        let mut body = Draft::default();
        body.put_counted_u16(&self.withdrawn);
        body.put_counted_u16(&list);
        body.put_draft(&self.announced);
        body.at_most(self.length_bytes_max())
    }
}
