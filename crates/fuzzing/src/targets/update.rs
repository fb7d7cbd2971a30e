//! UPDATE, on each kind of session.

use std::collections::BTreeSet;

use bytes::BytesMut;
use fairway_bgp::wire::announce::{self, AttributeBlock};
use fairway_bgp::wire::attribute::{code, flag};
use fairway_bgp::wire::update::Announced;
use fairway_bgp::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, Framing, KnownAttributes, MESSAGE_LENGTH_BYTES_MAX,
    MessageType, Update, UpdateContext,
};
use fairway_ground::{AddressFamily, AsPathSegment, FamilySet, NextHop, Nlri, PeerKind};
use fairway_seam::PathAttributes;

use super::message::as_extended_body;
use super::nlri::assert_valid;
use super::pipeline::comparable;
use crate::{Answer, Outcome};

/// A session with another AS.
pub const EXTERNAL: UpdateContext = UpdateContext::new(PeerKind::External);
/// A session inside our own AS, where IPv4 routes may have IPv6 next hops.
pub const INTERNAL: UpdateContext =
    UpdateContext { extended_next_hop: true, ..UpdateContext::new(PeerKind::Internal) };
/// A session with a speaker that supports only two-octet AS numbers.
pub const TWO_OCTET: UpdateContext = UpdateContext { four_octet_as: false, ..EXTERNAL };

/// A session on which several paths to a prefix are announced.
pub const ADD_PATH: UpdateContext = UpdateContext { add_path: FamilySet::BOTH, ..EXTERNAL };

/// An UPDATE from another AS.
pub fn external(input: &[u8]) -> Outcome {
    check(as_extended_body(input), EXTERNAL)
}

/// An UPDATE from our own AS.
pub fn internal(input: &[u8]) -> Outcome {
    check(as_extended_body(input), INTERNAL)
}

/// An UPDATE from a speaker of two-octet AS numbers.
pub fn two_octet(input: &[u8]) -> Outcome {
    check(as_extended_body(input), TWO_OCTET)
}

/// An UPDATE with path identifiers.
pub fn add_path(input: &[u8]) -> Outcome {
    check(as_extended_body(input), ADD_PATH)
}

/// Longer bodies are parsed once: two results of one input take twice the memory that is allowed.
const KNOWN_LENGTH_BYTES_MAX: usize = 256;

/// Parses a body and asserts what holds for every body.
pub fn check(body: &[u8], context: UpdateContext) -> Outcome {
    let mut known = KnownAttributes::default();
    let first = Update::parse_knowing(body, context, &mut known);
    if body.len() < KNOWN_LENGTH_BYTES_MAX {
        // What a session remembers changes nothing.
        let again = Update::parse_knowing(body, context, &mut known);
        assert_eq!(first, again, "the second time it means something else");
    }
    let update = match first {
        Ok(update) => update,
        Err(error) => {
            let outcome = Outcome::of_error(&error);
            assert!(matches!(outcome.answer, Answer::Notification(3, _)), "{error:?}");
            return outcome;
        }
    };
    let outcome = Outcome::of_faults(&update.faults);
    assert_consistent(&update, outcome.answer, context);
    assert_no_prefix_is_lost(&update, body, context);
    for group in &update.announced {
        assert_survives_resending(group, body.len(), context);
    }
    assert_withdrawals_survive_resending(&update.withdrawn, context);
    match (outcome.answer, update.end_of_rib) {
        (Answer::Accepted, Some(_)) => Outcome::accepted("End-of-RIB"),
        (Answer::Accepted, None) if update.announced.is_empty() => Outcome::accepted("withdrawal"),
        _ => outcome,
    }
}

/// An UPDATE is consistent.
pub fn assert_consistent(update: &Update, answer: Answer, context: UpdateContext) {
    if answer == Answer::TreatAsWithdraw {
        // `withdrawn` may be empty, too: routes of a family that the session does not carry.
        assert!(update.announced.is_empty(), "withdrawn and announced: {update:?}");
    }
    if update.end_of_rib.is_some() {
        assert!(update.announced.is_empty() && update.withdrawn.is_empty(), "{update:?}");
    }
    let announced = update.announced.iter().flat_map(|group| &group.prefixes);
    announced.chain(&update.withdrawn).for_each(|nlri| assert_valid(nlri.prefix));
    let mut seen = BTreeSet::new();
    for fault in &update.faults {
        assert!(seen.insert((fault.code, fault.disposition, fault.what)), "twice: {fault:?}");
        assert!(!fault.what.is_empty());
    }
    for Announced { prefixes, attributes } in &update.announced {
        assert!(!prefixes.is_empty());
        let family = prefixes[0].prefix.family();
        assert!(prefixes.iter().all(|nlri| nlri.prefix.family() == family), "mixed: {prefixes:?}");
        match (family, attributes.next_hop) {
            (AddressFamily::Ipv4Unicast, NextHop::Ipv4(_))
            | (AddressFamily::Ipv6Unicast, NextHop::Ipv6 { .. }) => {}
            (AddressFamily::Ipv4Unicast, NextHop::Ipv6 { .. }) => {
                assert!(context.extended_next_hop);
            }
            (AddressFamily::Ipv6Unicast, NextHop::Ipv4(_)) => panic!("{attributes:?}"),
        }
        assert_well_formed(attributes, context);
        if context.kind == PeerKind::External {
            assert_eq!(attributes.local_pref, None);
        }
    }
}

/// Every prefix in the body is announced or withdrawn, and no other is; except for multicast ones, which are
/// ignored (RFC 4271 §6.3). The prefixes are found here without our parser.
fn assert_no_prefix_is_lost(update: &Update, body: &[u8], context: UpdateContext) {
    let of = |family| if context.add_path.contains(family) { 4 } else { 0 };
    let (of4, of6) = (of(AddressFamily::Ipv4Unicast), of(AddressFamily::Ipv6Unicast));
    let length = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    let list = 2 + length(0);
    let announced = list + 2 + length(list);
    let mut count = lengths(&body[2..list], of4).count() + lengths(&body[announced..], of4).count();
    let mut attributes = &body[list + 2..announced];
    while let [flags, code, ..] = *attributes {
        let (header, length) = match *attributes {
            [_, _, high, low, ..] if flags & flag::EXTENDED_LENGTH != 0 => {
                (4, usize::from(u16::from_be_bytes([high, low])))
            }
            [_, _, length, ..] if flags & flag::EXTENDED_LENGTH == 0 => (3, usize::from(length)),
            _ => break,
        };
        let Some(value) = attributes.get(header..header + length) else { break };
        count += match (code, value) {
            (code::MP_REACH_NLRI, [0, afi @ (1 | 2), 1, next_hop, rest @ ..]) => {
                let before = if *afi == 1 { of4 } else { of6 };
                lengths(&rest[usize::from(*next_hop) + 1..], before).count()
            }
            (code::MP_UNREACH_NLRI, [0, 1, 1, rest @ ..]) => lengths(rest, of4).count(),
            (code::MP_UNREACH_NLRI, [0, 2, 1, rest @ ..]) => lengths(rest, of6).count(),
            _ => 0,
        };
        attributes = &attributes[header + length..];
    }
    let prefixes = update.announced.iter().map(|group| group.prefixes.len()).sum::<usize>();
    let known = prefixes + update.withdrawn.len();
    let passed_over =
        update.faults.iter().any(|fault| fault.code == 0 && fault.what.contains(MULTICAST));
    assert!(known == count || known < count && passed_over, "{known} of {count}: {update:?}");
}

/// A word in the fault of a multicast prefix.
const MULTICAST: &str = "multicast";

/// The lengths of the prefixes in a list, with `before` octets before each.
fn lengths(list: &[u8], before: usize) -> impl Iterator<Item = u8> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (length, after) = rest.get(before..)?.split_first()?;
        rest = after.get(usize::from(length.div_ceil(8))..)?;
        Some(*length)
    })
}

/// Accepted attributes satisfy the invariants of their types.
pub fn assert_well_formed(attributes: &PathAttributes, context: UpdateContext) {
    let PathAttributes { as_path, communities, large_communities, unknown, .. } = attributes;
    let extended = &attributes.extended_communities;
    assert!(extended.is_sorted_by(|one, next| one < next), "{extended:?}");
    assert!(communities.is_sorted_by(|one, next| one < next), "{communities:?}");
    assert!(large_communities.is_sorted_by(|one, next| one < next), "{large_communities:?}");
    assert!(unknown.is_sorted_by(|one, next| one.code < next.code), "{unknown:?}");
    assert!(as_path.asns().all(|asn| asn != 0), "AS 0 in {as_path}");
    for segment in &as_path.0 {
        // RFC 9774: sets are not accepted.
        let AsPathSegment::Sequence(asns) = segment else { panic!("a set in {as_path}") };
        // Two attributes that were merged may become one segment (RFC 6793 §4.2.3).
        assert!((1..=255).contains(&asns.len()) || !context.four_octet_as && asns.len() > 255);
    }
    assert!(attributes.aggregator.is_none_or(|aggregator| aggregator.asn != 0));
    assert!(!attributes.next_hop.address().is_unspecified());
    assert!(!attributes.next_hop.address().is_multicast());
}

/// Accepted routes can be sent again, and are decoded unchanged: every prefix, and every attribute that we
/// interpret.
fn assert_survives_resending(group: &Announced, length: usize, context: UpdateContext) {
    let Announced { prefixes, attributes } = group;
    let encode_within =
        |length| AttributeBlock::encode_within(length, attributes, context.four_octet_as);
    let Ok(block) = encode_within(EXTENDED_MESSAGE_LENGTH_BYTES_MAX) else {
        // Our encoding may be larger by a second octet in some headers; and a path with two octets for some
        // hops may have six for all.
        assert!(length > 60_000 || !context.four_octet_as, "{length} bytes became too long");
        return;
    };
    let is_ordinary = encode_within(MESSAGE_LENGTH_BYTES_MAX).is_ok();
    assert!(is_ordinary || length > 3_800 || !context.four_octet_as, "{length} became too long");
    let all = set_of(prefixes.iter());
    let mut pending = all.clone();
    let family = prefixes[0].prefix.family();
    let path_ids = context.add_path.contains(family);
    let mut bytes = BytesMut::new();
    while !pending.is_empty() {
        let before = pending.len();
        announce::announcement(family, path_ids, &block, &mut pending, &mut bytes);
        assert!(pending.len() < before, "an announcement without prefixes");
    }
    let expected = comparable(attributes);
    let mut received = BTreeSet::new();
    for update in read(&bytes, context) {
        assert_eq!(update.faults, []);
        assert_eq!((update.withdrawn.len(), update.announced.len()), (0, 1));
        assert_eq!(comparable(&update.announced[0].attributes), expected);
        received.extend(update.announced[0].prefixes.iter().copied());
    }
    assert_eq!(received, all);
}

fn assert_withdrawals_survive_resending(withdrawn: &[Nlri], context: UpdateContext) {
    for family in AddressFamily::ALL {
        let all = set_of(withdrawn.iter().filter(|nlri| nlri.prefix.family() == family));
        let path_ids = context.add_path.contains(family);
        let mut pending = all.clone();
        let mut bytes = BytesMut::new();
        while !pending.is_empty() {
            announce::withdrawal(family, path_ids, &mut pending, &mut bytes);
        }
        let updates = read(&bytes, context);
        let received = set_of(updates.iter().flat_map(|update| &update.withdrawn));
        assert_eq!(received, all);
        assert!(updates.iter().all(|update| update.faults.is_empty()));
    }
}

/// Inserted one by one, since collecting a set creates a list first: the memory of this check must not count
/// for a flood of equal prefixes.
pub fn set_of<'a>(prefixes: impl Iterator<Item = &'a Nlri>) -> BTreeSet<Nlri> {
    let mut set = BTreeSet::new();
    for prefix in prefixes {
        set.insert(*prefix);
    }
    set
}

/// Our UPDATEs, as a receiver decodes them.
fn read(bytes: &[u8], context: UpdateContext) -> Vec<Update> {
    let mut framing = Framing::default();
    framing.allow_extended_messages();
    framing.push(bytes);
    let mut updates = Vec::new();
    while let Some(message) = framing.next_message().expect("our own stream") {
        assert_eq!(message.kind, MessageType::Update);
        updates.push(Update::parse(&message.body, context).expect("our own UPDATE"));
    }
    updates
}
