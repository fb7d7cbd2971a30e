//! The value of one attribute, in an otherwise valid UPDATE, on each kind of session.

use fairway_bgp::wire::attribute::{Disposition, code};
use fairway_bgp::wire::{Update, UpdateContext};
use fairway_ground::{Nlri, PeerKind, Prefix};
use fairway_seam::{Origin, PathAttributes};

use super::attribute_rules::{Expected, expected, segments};
use super::update::{self, EXTERNAL, INTERNAL, TWO_OCTET};
use crate::grammar::attribute::{Attribute, proper_flags};
use crate::grammar::update::UpdateDraft;
use crate::{Answer, Outcome};

/// Leaves room for the rest of the message.
const VALUE_LENGTH_BYTES_MAX: usize = 3_900;

/// `input` as the value of the attribute `type_code`, on every kind of session. Returns the outcome of one of
/// them, in turn.
pub fn value(type_code: u8, input: &[u8]) -> Outcome {
    let value = &input[..input.len().min(VALUE_LENGTH_BYTES_MAX)];
    let on = |context| match type_code {
        code::MP_REACH_NLRI | code::MP_UNREACH_NLRI => multiprotocol(type_code, value, context),
        _ => ordinary(type_code, value, context),
    };
    let outcomes = [on(EXTERNAL), on(INTERNAL), on(TWO_OCTET)];
    let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
    outcomes[sum % outcomes.len()]
}

fn attribute(type_code: u8, value: &[u8]) -> Attribute {
    Attribute { flags: proper_flags(type_code), code: type_code, value: value.to_vec().into() }
}

/// An UPDATE with the attribute, the mandatory ones, and `announced`.
fn body(type_code: u8, value: &[u8], context: UpdateContext, announced: &[u8]) -> Vec<u8> {
    let path: &[u8] =
        if context.four_octet_as { &[2, 1, 0, 0, 0xFD, 0xE9] } else { &[2, 1, 0xFD, 0xE9] };
    let mut attributes = vec![
        attribute(code::ORIGIN, &[0]),
        attribute(code::AS_PATH, path),
        attribute(code::NEXT_HOP, &[192, 0, 2, 1]),
    ];
    attributes.retain(|attribute| attribute.code != type_code);
    attributes.push(attribute(type_code, value));
    let announced = announced.to_vec().into();
    UpdateDraft { attributes, announced, ..UpdateDraft::default() }.body().bytes
}

/// MP_REACH_NLRI and MP_UNREACH_NLRI contain prefixes: they can be parsed, or the session ends.
fn multiprotocol(type_code: u8, value: &[u8], context: UpdateContext) -> Outcome {
    let outcome = update::check(&body(type_code, value, context, &[]), context);
    match outcome.answer {
        Answer::Notification(code, subcode) => {
            assert_eq!((code, subcode, outcome.code), (3, 9, type_code), "{outcome:?}");
        }
        Answer::TreatAsWithdraw => assert_eq!(outcome.code, code::MP_REACH_NLRI),
        // Prefixes that are not valid for unicast are ignored, without naming an attribute.
        Answer::AttributeDiscard => assert_eq!(outcome.code, 0),
        Answer::Accepted => {}
        Answer::Ignored => panic!("an UPDATE is never ignored: {outcome:?}"),
    }
    outcome
}

fn ordinary(type_code: u8, value: &[u8], context: UpdateContext) -> Outcome {
    let body = body(type_code, value, context, &[24, 10, 1, 1]);
    let outcome = update::check(&body, context);
    let update = Update::parse(&body, context).expect("no ordinary attribute ends a session");
    let prefix = Nlri::from("10.1.1.0/24".parse::<Prefix>().expect("a prefix"));
    let blamed = |disposition| {
        let mut faults = update.faults.iter();
        faults.any(|fault| fault.code == type_code && fault.disposition == disposition)
    };
    match expected(type_code, value, context) {
        Expected::Withdrawn => {
            assert_eq!(update.withdrawn, [prefix], "{value:?}");
            assert!(blamed(Disposition::TreatAsWithdraw), "{value:?}: {update:?}");
        }
        Expected::Discarded => {
            assert!(blamed(Disposition::Discard), "{value:?}: {update:?}");
            assert_eq!(update.announced.len(), 1, "{value:?}: {update:?}");
            assert_absent(type_code, &update.announced[0].attributes);
        }
        Expected::Taken => {
            assert_eq!(update.faults, [], "{value:?}");
            assert_eq!(update.announced.len(), 1, "{value:?}: {update:?}");
            assert_eq!(update.announced[0].prefixes, [prefix]);
            assert_says(type_code, value, context, &update.announced[0].attributes);
        }
    }
    outcome
}

/// A discarded attribute leaves no value.
fn assert_absent(type_code: u8, attributes: &PathAttributes) {
    assert!(attributes.unknown.iter().all(|unknown| unknown.code != type_code));
    match type_code {
        code::LOCAL_PREF => assert_eq!(attributes.local_pref, None),
        code::ATOMIC_AGGREGATE => assert!(!attributes.atomic_aggregate),
        code::AGGREGATOR => assert_eq!(attributes.aggregator, None),
        _ => {}
    }
}

/// The decoded value matches the octets.
fn assert_says(type_code: u8, value: &[u8], context: UpdateContext, attributes: &PathAttributes) {
    let number = |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum << 8 | u32::from(*octet));
    let mut numbers: Vec<u32> = value.chunks(4).map(number).collect();
    match type_code {
        code::ORIGIN => {
            let all = [Origin::Igp, Origin::Egp, Origin::Incomplete];
            assert_eq!(attributes.origin, all[usize::from(value[0])]);
        }
        code::AS_PATH => {
            let octets = if context.four_octet_as { 4 } else { 2 };
            let asns = segments(value, octets).into_iter().flatten().flat_map(|(_, asns)| asns);
            assert!(attributes.as_path.asns().eq(asns), "{}", attributes.as_path);
        }
        code::NEXT_HOP => {
            assert_eq!(attributes.next_hop.to_string(), value_as_address(number(value)));
        }
        code::MULTI_EXIT_DISC => assert_eq!(attributes.med, Some(number(value))),
        code::LOCAL_PREF => {
            assert_eq!(context.kind, PeerKind::Internal);
            assert_eq!(attributes.local_pref, Some(number(value)));
        }
        code::ATOMIC_AGGREGATE => assert!(attributes.atomic_aggregate),
        code::AGGREGATOR => {
            let (asn, router) = value.split_at(value.len() - 4);
            let aggregator = attributes.aggregator.expect("an aggregator");
            assert_eq!(
                (aggregator.asn, aggregator.router.octets().as_slice()),
                (number(asn), router)
            );
        }
        code::COMMUNITIES => {
            numbers.sort_unstable();
            numbers.dedup();
            assert!(attributes.communities.iter().map(|it| it.0).eq(numbers));
        }
        code::EXTENDED_COMMUNITIES => {
            let mut extended: Vec<&[u8]> = value.chunks(8).collect();
            extended.sort_unstable();
            extended.dedup();
            assert!(attributes.extended_communities.iter().map(|it| it.0.as_slice()).eq(extended));
        }
        code::ONLY_TO_CUSTOMER => assert_eq!(attributes.only_to_customer, Some(number(value))),
        code::LARGE_COMMUNITIES => {
            let mut large: Vec<&[u32]> = numbers.chunks(3).collect();
            large.sort_unstable();
            large.dedup();
            let got = attributes.large_communities.iter();
            let got: Vec<[u32; 3]> = got.map(|it| [it.global, it.local1, it.local2]).collect();
            assert_eq!(got, large);
        }
        // Merged into the path, or kept: does not depend on the octets alone.
        code::AS4_PATH | code::AS4_AGGREGATOR => {}
        _ => {
            let [unknown] = attributes.unknown.as_slice() else { panic!("{attributes:?}") };
            assert_eq!((unknown.code, unknown.value.as_slice()), (type_code, value));
        }
    }
}

fn value_as_address(number: u32) -> String {
    std::net::Ipv4Addr::from(number).to_string()
}
