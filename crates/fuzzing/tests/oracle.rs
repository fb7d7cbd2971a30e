//! Two decoders read the same UPDATEs: ours, and one that others wrote from the same RFCs. They must agree on
//! every route, and the other must decode what our encoder writes.
//!
//! Only UPDATEs without faults are compared: the treatment of faults is defined by RFC 7606, and checked by
//! `targets/attribute_rules.rs`.

// What fails here fails the test.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgpkit_parser::models::{
    Afi, AsPath, AsPathSegment, AsnLength, AttributeValue, Attributes, BgpMessage,
    BgpUpdateMessage, Community, MetaCommunity, NetworkPrefix, NextHopAddress, Nlri, Origin, Safi,
};
use bgpkit_parser::parser::bgp::messages::{parse_bgp_message, parse_bgp_update_message};
use bytes::{Bytes, BytesMut};
use fairway_bgp::wire::announce::{self, AttributeBlock};
use fairway_bgp::wire::{Update, UpdateContext};
use fairway_fuzzing::grammar::update::UpdateDraft;
use fairway_fuzzing::targets::update::{ADD_PATH, EXTERNAL, INTERNAL, TWO_OCTET};
use fairway_fuzzing::{Dice, mutation};
use fairway_ground::{FamilySet, PathId, PeerKind, Prefix};
use fairway_seam::PathAttributes;

/// The placeholder for a number that an old speaker does not support (RFC 6793 §9).
const AS_TRANS: u32 = 23_456;

/// A route, in terms of both decoders.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Route {
    origin: &'static str,
    /// Whether a segment is a sequence, and its members.
    as_path: Vec<(bool, Vec<u32>)>,
    next_hop: Vec<IpAddr>,
    med: Option<u32>,
    local_pref: Option<u32>,
    atomic_aggregate: bool,
    aggregator: Option<(u32, IpAddr)>,
    communities: BTreeSet<u32>,
    large_communities: BTreeSet<[u32; 3]>,
}

/// The content of an UPDATE.
#[derive(Debug, PartialEq, Eq, Default)]
struct Reading {
    withdrawn: BTreeSet<fairway_ground::Nlri>,
    announced: BTreeMap<fairway_ground::Nlri, Route>,
}

/// Our decoding; `None` if there is a fault.
fn ours(body: &[u8], context: UpdateContext) -> Option<(Update, Reading)> {
    let update = Update::parse(body, context).ok().filter(|update| update.faults.is_empty())?;
    let mut reading =
        Reading { withdrawn: update.withdrawn.iter().copied().collect(), ..Reading::default() };
    for group in &update.announced {
        let route = our_route(&group.attributes);
        reading.announced.extend(group.prefixes.iter().map(|nlri| (*nlri, route.clone())));
    }
    Some((update, reading))
}

fn our_route(attributes: &PathAttributes) -> Route {
    let segments = attributes.as_path.0.iter().map(|segment| match segment {
        fairway_ground::AsPathSegment::Sequence(asns) => (true, asns.clone()),
        fairway_ground::AsPathSegment::Set(asns) => (false, asns.clone()),
    });
    let large = |it: &fairway_ground::LargeCommunity| [it.global, it.local1, it.local2];
    Route {
        origin: match attributes.origin {
            fairway_seam::Origin::Igp => "IGP",
            fairway_seam::Origin::Egp => "EGP",
            fairway_seam::Origin::Incomplete => "INCOMPLETE",
        },
        as_path: segments.collect(),
        next_hop: next_hop_addresses(attributes.next_hop),
        med: attributes.med,
        local_pref: attributes.local_pref,
        atomic_aggregate: attributes.atomic_aggregate,
        aggregator: attributes.aggregator.map(|it| (it.asn, it.router.into())),
        communities: attributes.communities.iter().map(|it| it.0).collect(),
        large_communities: attributes.large_communities.iter().map(large).collect(),
    }
}

/// The other's decoding, in our terms.
fn theirs(update: &BgpUpdateMessage, merged: bool) -> Reading {
    let attributes = &update.attributes;
    let mut reading = Reading::default();
    reading.withdrawn.extend(update.withdrawn_prefixes.iter().map(prefix));
    if !update.announced_prefixes.is_empty() {
        let next_hop = attributes.next_hop().into_iter().collect();
        let route = their_route(attributes, next_hop, merged);
        let prefixes = update.announced_prefixes.iter().map(prefix);
        reading.announced.extend(prefixes.map(|prefix| (prefix, route.clone())));
    }
    for (nlri, reachable) in attributes.iter().filter_map(|value| match value {
        AttributeValue::MpReachNlri(nlri) => Some((nlri, true)),
        AttributeValue::MpUnreachNlri(nlri) => Some((nlri, false)),
        _ => None,
    }) {
        // Families that we do not support.
        if !matches!((nlri.afi, nlri.safi), (Afi::Ipv4 | Afi::Ipv6, Safi::Unicast)) {
            continue;
        }
        let prefixes = nlri.prefixes.iter().map(prefix);
        if reachable && !nlri.prefixes.is_empty() {
            let route = their_route(attributes, multiprotocol_next_hop(nlri), merged);
            reading.announced.extend(prefixes.map(|prefix| (prefix, route.clone())));
        } else if !reachable {
            reading.withdrawn.extend(prefixes);
        }
    }
    reading
}

fn prefix(prefix: &NetworkPrefix) -> fairway_ground::Nlri {
    // RFC 4271 §4.3: bits after the length have no meaning; the other keeps them, we do not.
    fairway_ground::Nlri {
        prefix: Prefix::try_from(prefix.prefix.trunc()).expect("host bits are cleared"),
        path_id: prefix.path_id.map_or(PathId::NONE, PathId::new),
    }
}

fn next_hop_addresses(next_hop: fairway_ground::NextHop) -> Vec<IpAddr> {
    match next_hop {
        fairway_ground::NextHop::Ipv4(address) => vec![address.into()],
        fairway_ground::NextHop::Ipv6 { global, link_local } => {
            [Some(global), link_local].into_iter().flatten().map(IpAddr::V6).collect()
        }
    }
}

fn multiprotocol_next_hop(nlri: &Nlri) -> Vec<IpAddr> {
    match nlri.next_hop {
        Some(NextHopAddress::Ipv4(address)) => vec![address.into()],
        Some(NextHopAddress::Ipv6(address)) => vec![address.into()],
        // The placeholder for a link-local address, and the form of one without a global address, are not
        // compared.
        Some(NextHopAddress::Ipv6LinkLocal(first, second)) => {
            next_hop_addresses(fairway_ground::NextHop::ipv6(first, Some(second)))
        }
        other => panic!("a next hop that is not valid for unicast: {other:?}"),
    }
}

fn their_route(attributes: &Attributes, next_hop: Vec<IpAddr>, merged: bool) -> Route {
    let mut communities = BTreeSet::new();
    let mut large_communities = BTreeSet::new();
    for community in attributes.iter_communities() {
        match community {
            MetaCommunity::Plain(plain) => drop(communities.insert(number(plain))),
            MetaCommunity::Large(large) => {
                let [local1, local2] = large.local_data;
                large_communities.insert([large.global_admin, local1, local2]);
            }
            MetaCommunity::Extended(_) | MetaCommunity::Ipv6Extended(_) => {}
        }
    }
    let aggregator = attributes.iter().find_map(|value| match value {
        AttributeValue::Aggregator { asn, id } => Some((asn.to_u32(), (*id).into())),
        _ => None,
    });
    let wide = attributes.iter().find_map(|value| match value {
        AttributeValue::As4Aggregator { asn, id } if merged => Some((asn.to_u32(), (*id).into())),
        _ => None,
    });
    // The other merges AS4_PATH regardless of AGGREGATOR. An AS number there other than AS_TRANS makes both
    // AS4 attributes stale (RFC 6793 §4.2.3), so its merged path is not compared.
    let is_stale = wide.is_some() && aggregator.is_some_and(|(asn, _)| asn != AS_TRANS);
    let aggregator = if is_stale { aggregator } else { aggregator.and(wide).or(aggregator) };
    let as_path = if merged && !is_stale {
        attributes.effective_as_path()
    } else {
        attributes.as_path().cloned()
    };
    let as_path = as_path.as_ref().map(segments).unwrap_or_default();
    Route {
        origin: match attributes.origin() {
            Origin::IGP => "IGP",
            Origin::EGP => "EGP",
            Origin::INCOMPLETE => "INCOMPLETE",
        },
        as_path: if merged { joined(&as_path) } else { as_path },
        next_hop,
        med: attributes.multi_exit_discriminator(),
        local_pref: attributes.local_preference(),
        atomic_aggregate: attributes.atomic_aggregate(),
        aggregator,
        communities,
        large_communities,
    }
}

fn segments(path: &AsPath) -> Vec<(bool, Vec<u32>)> {
    let segments = path.iter_segments().map(|segment| {
        let is_sequence = matches!(segment, AsPathSegment::AsSequence(_));
        (is_sequence, segment.iter().map(|asn| asn.to_u32()).collect())
    });
    segments.collect()
}

fn number(community: Community) -> u32 {
    match community {
        Community::NoExport => 0xFFFF_FF01,
        Community::NoAdvertise => 0xFFFF_FF02,
        Community::NoExportSubConfed => 0xFFFF_FF03,
        Community::Custom(asn, value) => asn.to_u32() << 16 | u32::from(value),
    }
}

fn width(context: UpdateContext) -> AsnLength {
    if context.four_octet_as { AsnLength::Bits32 } else { AsnLength::Bits16 }
}

/// Cases in which the other decoder is wrong, and that are not compared.
///
/// A length octet of 0 is the default route (RFC 4271 §4.3). The other takes it for the beginning of a path
/// identifier, although none was negotiated (RFC 7911 §3), whenever the following bytes can be parsed that
/// way; only a default route that is alone in its list is unambiguous.
fn is_misread(update: &Update, context: UpdateContext) -> bool {
    let announced = update.announced.iter().map(|group| &group.prefixes);
    context.add_path.is_empty()
        && announced
            .chain([&update.withdrawn])
            .any(|list| list.len() > 1 && list.iter().any(|nlri| nlri.prefix.length() == 0))
}

/// Merges adjacent sequences: a path of more than 255 hops needs several segments, and where they are split
/// has no meaning (RFC 4271 §5.1.2).
fn joined(segments: &[(bool, Vec<u32>)]) -> Vec<(bool, Vec<u32>)> {
    let mut joined: Vec<(bool, Vec<u32>)> = Vec::new();
    for (is_sequence, asns) in segments {
        match joined.last_mut() {
            Some((true, last)) if *is_sequence => last.extend(asns),
            _ => joined.push((*is_sequence, asns.clone())),
        }
    }
    joined
}

/// Fails with the first difference only: complete decodings are too long to read.
fn assert_same(ours: &Reading, theirs: &Reading, seed: u64) {
    assert_eq!(ours.withdrawn, theirs.withdrawn, "seed {seed}, ours is left");
    assert!(
        ours.announced.keys().eq(theirs.announced.keys()),
        "seed {seed}: we read {:?}, the other {:?}",
        ours.announced.keys(),
        theirs.announced.keys()
    );
    for (prefix, route) in &ours.announced {
        assert_eq!(*route, theirs.announced[prefix], "seed {seed}, {prefix}, ours is left");
    }
}

/// Decodes a body with both decoders; `None` if it is not compared.
fn assert_agreed(body: &[u8], context: UpdateContext, seed: u64) -> Option<Update> {
    let (update, mut ours) =
        ours(body, context).filter(|(update, _)| !is_misread(update, context))?;
    let add_path = !context.add_path.is_empty();
    let read = parse_bgp_update_message(Bytes::copy_from_slice(body), add_path, &width(context));
    let read = read.unwrap_or_else(|error| panic!("seed {seed}: {error} in {body:02x?}"));
    let is_old = !context.four_octet_as;
    let mut theirs = theirs(&read, is_old);
    if is_old {
        let routes = ours.announced.values_mut();
        routes.for_each(|route| route.as_path = joined(&route.as_path));
    }
    if context.kind == PeerKind::External {
        // RFC 4271 §5.1.5: the other decoder does not know the kind of peer.
        theirs.announced.values_mut().for_each(|route| route.local_pref = None);
    }
    // A prefix that is withdrawn and announced in one UPDATE is announced (RFC 4271 §4.3): both lists are
    // sets here, without an order.
    ours.withdrawn.retain(|prefix| !ours.announced.contains_key(prefix));
    theirs.withdrawn.retain(|prefix| !theirs.announced.contains_key(prefix));
    assert_same(&ours, &theirs, seed);
    Some(update)
}

const CONTEXTS: [UpdateContext; 4] = [EXTERNAL, INTERNAL, TWO_OCTET, ADD_PATH];

#[test]
fn both_decoders_agree_on_valid_updates() {
    let mut compared = 0;
    for seed in 0..60_000 {
        let context = CONTEXTS[usize::try_from(seed % 4).unwrap()];
        let body = UpdateDraft::draw(&mut Dice::seeded(seed), context).body();
        compared += u32::from(assert_agreed(&body.bytes, context, seed).is_some());
    }
    assert!(compared > 40_000, "only {compared} of 60000 were compared");
}

#[test]
fn both_decoders_agree_on_mutants_in_which_we_find_no_fault() {
    let mut compared = 0;
    for seed in 0..100_000 {
        let context = CONTEXTS[usize::try_from(seed % 4).unwrap()];
        let body = mutation::update(&mut Dice::seeded(seed), context);
        compared += u32::from(assert_agreed(&body.bytes, context, seed).is_some());
    }
    assert!(compared > 25_000, "only {compared} of 100000 were compared");
}

#[test]
fn the_other_decoder_reads_what_our_encoder_writes() {
    let mut routes = 0;
    for seed in 0..30_000 {
        let several = if seed % 2 == 0 { FamilySet::BOTH } else { FamilySet::EMPTY };
        let session = UpdateContext { add_path: several, ..INTERNAL };
        let body = UpdateDraft::draw(&mut Dice::seeded(seed), session).body();
        let Some((update, _)) = ours(&body.bytes, session) else { continue };
        if is_misread(&update, session) {
            continue;
        }
        for group in &update.announced {
            for context in [session, UpdateContext { four_octet_as: false, ..session }] {
                let Ok(block) = AttributeBlock::encode(&group.attributes, context.four_octet_as)
                else {
                    continue;
                };
                let mut pending: BTreeSet<fairway_ground::Nlri> =
                    group.prefixes.iter().copied().collect();
                let path_ids = !several.is_empty();
                let all = pending.clone();
                let mut bytes = BytesMut::new();
                let mut read = Reading::default();
                while !pending.is_empty() {
                    let family = group.prefixes[0].prefix.family();
                    announce::announcement(family, path_ids, &block, &mut pending, &mut bytes);
                    let mut message = bytes.split().freeze();
                    let message = parse_bgp_message(&mut message, path_ids, &width(context));
                    let Ok(BgpMessage::Update(update)) = message else {
                        panic!("seed {seed}: {message:?}");
                    };
                    let warnings = update.attributes.validation_warnings();
                    assert!(warnings.is_empty(), "seed {seed}: {warnings:?}");
                    read.announced.extend(theirs(&update, true).announced);
                }
                let mut meant = our_route(&group.attributes);
                meant.as_path = joined(&meant.as_path);
                assert!(read.announced.keys().eq(&all), "seed {seed}");
                for route in read.announced.values() {
                    assert_eq!(*route, meant, "seed {seed}, ours is right");
                }
                routes += all.len();
            }
        }
    }
    assert!(routes > 30_000, "only {routes} routes");
}

/// UPDATEs as routers send them, byte for byte.
#[test]
fn both_decoders_agree_on_golden_updates() {
    let golden: [(&[u8], UpdateContext); 7] = [
        // 198.51.100.10/32 from AS 65001.
        (
            b"\0\0\0\x14\x40\x01\x01\x00\x40\x02\x06\x02\x01\0\0\xfd\xe9\x40\x03\x04\xc0\0\x02\x07\
              \x20\xc6\x33\x64\x0a",
            EXTERNAL,
        ),
        // The same from an old speaker.
        (
            b"\0\0\0\x12\x40\x01\x01\x00\x40\x02\x04\x02\x01\xfd\xe9\x40\x03\x04\xc0\0\x02\x07\
              \x20\xc6\x33\x64\x0a",
            TWO_OCTET,
        ),
        // 2001:db8::/32 with a link-local next hop in addition to the global one.
        (
            b"\0\0\0\x3b\x90\x0e\x00\x2a\x00\x02\x01\x20\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\
              \xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x20\x20\x01\x0d\xb8\
              \x40\x01\x01\x00\x40\x02\x06\x02\x01\0\0\xfd\xe9",
            EXTERNAL,
        ),
        // Paths 1 and 2 to 198.51.100.10/32, and the withdrawal of path 3.
        (
            b"\0\x09\0\0\0\x03\x20\xc6\x33\x64\x0a\
              \0\x14\x40\x01\x01\x00\x40\x02\x06\x02\x01\0\0\xfd\xe9\x40\x03\x04\xc0\0\x02\x07\
              \0\0\0\x01\x20\xc6\x33\x64\x0a\0\0\0\x02\x20\xc6\x33\x64\x0a",
            ADD_PATH,
        ),
        // Withdrawals of 10.1.1.0/24 and 10.2.0.0/15.
        (b"\0\x07\x18\x0a\x01\x01\x0f\x0a\x02\0\0", INTERNAL),
        // End-of-RIB of both families.
        (b"\0\0\0\0", EXTERNAL),
        (b"\0\0\0\x06\x80\x0f\x03\0\x02\x01", EXTERNAL),
    ];
    for (number, (body, context)) in golden.into_iter().enumerate() {
        let seed = u64::try_from(number).unwrap();
        assert!(assert_agreed(body, context, seed).is_some(), "{body:02x?}");
    }
}
