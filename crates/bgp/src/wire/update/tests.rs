use super::*;
use crate::wire::header::{MessageType, framed};
use fairway_ground::{AsPath, PathId, PeerKind};
use fairway_seam::Origin;

const EXTERNAL: UpdateContext = UpdateContext::new(PeerKind::External);
const INTERNAL: UpdateContext = UpdateContext::new(PeerKind::Internal);
const OLD: UpdateContext = UpdateContext { four_octet_as: false, ..EXTERNAL };

const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
const PATH: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9];
const OLD_PATH: &[u8] = &[0x40, 2, 4, 2, 1, 0xFD, 0xE9];
const NEXT_HOP: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
const PREFIX: &[u8] = &[24, 10, 1, 1];

fn body(attributes: &[&[u8]], nlri: &[u8]) -> Vec<u8> {
    let attributes = attributes.concat();
    let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
    [&[0, 0], &length[..], &attributes, nlri].concat()
}

fn parse(attributes: &[&[u8]], context: UpdateContext) -> Result<Update, WireError> {
    Update::parse(&body(attributes, PREFIX), context)
}

fn code_of(outcome: Result<Update, WireError>) -> (u8, u8) {
    let notification = outcome.unwrap_err().notification();
    (notification.code, notification.subcode)
}

/// The prefix is withdrawn, and the fault blames `code`.
fn assert_withdrawn(outcome: Result<Update, WireError>, code: u8) {
    let update = outcome.unwrap();
    assert_eq!(update.announced, [], "code {code}");
    assert_eq!(update.withdrawn, ["10.1.1.0/24".parse().unwrap()], "code {code}");
    assert!(
        update
            .faults
            .iter()
            .any(|fault| fault.code == code && fault.disposition == Disposition::TreatAsWithdraw)
    );
}

#[test]
fn a_good_update_is_read_whole() {
    let update = parse(&[ORIGIN, PATH, NEXT_HOP], EXTERNAL).unwrap();
    assert_eq!(update.faults, []);
    let announced = &update.announced[0];
    assert_eq!(announced.prefixes, ["10.1.1.0/24".parse().unwrap()]);
    assert_eq!(announced.attributes.origin, Origin::Igp);
    assert_eq!(announced.attributes.as_path, AsPath::sequence(vec![65001]));
}

#[test]
fn bytes_that_hang_or_crash_zettabgp_only_cost_their_routes() {
    // RFC 4271 attributes, each a reproducer against zettabgp 0.6.0.
    let stray_byte: &[u8] = &[0x40, 2, 7, 2, 1, 0, 0, 0xFD, 0xE9, 0];
    assert_withdrawn(parse(&[ORIGIN, stray_byte, NEXT_HOP], EXTERNAL), code::AS_PATH);
    for value in [&[2, 2, 0][..], &[2, 2]] {
        let length = u8::try_from(value.len()).unwrap();
        let path = [&[0x40, 2, length], value].concat();
        assert_withdrawn(parse(&[ORIGIN, &path, NEXT_HOP], EXTERNAL), code::AS_PATH);
        assert_withdrawn(parse(&[ORIGIN, &path, NEXT_HOP], OLD), code::AS_PATH);
    }
    let communities: &[u8] = &[0xC0, 8, 5, 1, 2, 3, 4, 5];
    assert_withdrawn(parse(&[ORIGIN, PATH, NEXT_HOP, communities], EXTERNAL), code::COMMUNITIES);
    let large: &[u8] = &[0xC0, 32, 13, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
    assert_withdrawn(parse(&[ORIGIN, PATH, NEXT_HOP, large], EXTERNAL), code::LARGE_COMMUNITIES);
    let originator: &[u8] = &[0x80, 9, 2, 1, 1];
    assert_withdrawn(parse(&[ORIGIN, PATH, NEXT_HOP, originator], INTERNAL), code::ORIGINATOR_ID);
}

#[test]
fn the_endless_loop_of_zettabgp_as_a_whole_body() {
    let body = [0, 0, 0, 10, 0x40, 2, 7, 2, 1, 0, 0, 0xFD, 0xE9, 0];
    // It announces nothing, so there is nothing to withdraw (RFC 7606 §5.2).
    assert_eq!(code_of(Update::parse(&body, EXTERNAL)), (3, 1));
}

#[test]
fn attributes_that_crash_zettabgp_are_kept_as_bytes() {
    for (code, value) in [
        (22_u8, &[0_u8, 1, 0, 4, 1][..]), // PMSI tunnel
        (128, &[0, 0, 0, 1, 2, 2, 0]),    // ATTR_SET around a bad path
        (40, &[0; 8]),                    // Prefix-SID, all zero
    ] {
        let length = u8::try_from(value.len()).unwrap();
        let attribute = [&[0xC0, code, length], value].concat();
        let update = parse(&[ORIGIN, PATH, NEXT_HOP, &attribute], EXTERNAL).unwrap();
        assert_eq!(update.announced[0].attributes.unknown[0].value, value);
    }
}

#[test]
fn an_ipv6_next_hop_is_never_mistaken_for_an_ipv4_one() {
    // MP_REACH_NLRI for IPv4 with a next hop of 16 bytes, which we did not offer (RFC 8950).
    let reach = [
        &[0x80, 14, 25, 0, 1, 1, 16][..],
        &[0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0, 24, 10, 1, 1],
    ]
    .concat();
    assert_eq!(code_of(parse(&[&reach, ORIGIN, PATH], EXTERNAL)), (3, 9));
}

/// An IPv4 route in MP_REACH_NLRI, by way of `next_hop`.
fn ipv4_by_way_of(next_hop: &[u8]) -> Vec<u8> {
    let length = u8::try_from(next_hop.len()).unwrap();
    [&[0x80, 14, length + 9, 0, 1, 1, length][..], next_hop, &[0, 24, 10, 1, 1]].concat()
}

//= RFC 8950 §3 MUST: the length of the next hop says of which protocol it is.
//= RFC 8950 §3 MUST: the length of an IPv6 next hop of an IPv4 route is 16 or 32.
#[test]
fn where_it_was_agreed_on_ipv4_routes_may_have_next_hops_of_both_protocols() {
    let agreed = UpdateContext { extended_next_hop: true, ..EXTERNAL };
    let global: [u8; 16] = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let link_local: [u8; 16] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let next_hop_of = |bytes: &[u8]| {
        let update = Update::parse(&body(&[&ipv4_by_way_of(bytes), ORIGIN, PATH], &[]), agreed);
        let mut update = update.unwrap();
        assert_eq!(update.announced[0].prefixes, ["10.1.1.0/24".parse().unwrap()]);
        update.announced.remove(0).attributes.next_hop
    };
    assert_eq!(next_hop_of(&[192, 0, 2, 1]), NextHop::Ipv4([192, 0, 2, 1].into()));
    assert_eq!(next_hop_of(&global), NextHop::ipv6(global.into(), None));
    let both = [global, link_local].concat();
    assert_eq!(next_hop_of(&both), NextHop::ipv6(global.into(), Some(link_local.into())));
    // As an unnumbered FRR and BIRD write it.
    let only = NextHop::ipv6(link_local.into(), None);
    assert_eq!(next_hop_of(&[link_local, link_local].concat()), only);
    assert_eq!(next_hop_of(&[[0; 16], link_local].concat()), only);
    assert_eq!(next_hop_of(&link_local), only);
    for length in [0, 3, 5, 12, 15, 17, 31, 33, 48] {
        let attribute = ipv4_by_way_of(&vec![1; length]);
        let outcome = Update::parse(&body(&[&attribute, ORIGIN, PATH], &[]), agreed);
        assert_eq!(code_of(outcome), (3, 9), "{length}");
    }
}

#[test]
fn body_prefixes_are_ipv4_on_every_transport() {
    let update = parse(&[ORIGIN, PATH, NEXT_HOP], INTERNAL).unwrap();
    assert_eq!(update.announced[0].prefixes[0].to_string(), "10.1.1.0/24");
    let withdrawn = [0, 6, 0, 0, 24, 10, 1, 1, 0, 0];
    let update = Update::parse(&withdrawn, INTERNAL).unwrap();
    let withdrawn: Vec<_> = update.withdrawn.iter().map(ToString::to_string).collect();
    assert_eq!(withdrawn, ["0.0.0.0/0", "0.0.0.0/0", "10.1.1.0/24"]);
}

#[test]
fn a_count_larger_than_the_path_withdraws() {
    let path: &[u8] = &[0x40, 2, 6, 2, 9, 0, 0, 0xFD, 0xE9];
    assert_withdrawn(parse(&[ORIGIN, path, NEXT_HOP], EXTERNAL), code::AS_PATH);
}

//+ RFC 7606 §3 (g): of an attribute that is repeated only the first counts.
#[test]
fn the_first_of_two_origins_counts_and_wrong_flags_withdraw() {
    let second: &[u8] = &[0x40, 1, 1, 2];
    let update = parse(&[ORIGIN, second, PATH, NEXT_HOP], EXTERNAL).unwrap();
    assert_eq!(update.announced[0].attributes.origin, Origin::Igp);
    assert_eq!(update.faults[0].disposition, Disposition::Discard);
    let optional: &[u8] = &[0xC0, 1, 1, 0];
    assert_withdrawn(parse(&[optional, PATH, NEXT_HOP], EXTERNAL), code::ORIGIN);
}

//+ RFC 7606 §3 (d): routes without ORIGIN count as withdrawn.
//+ RFC 7606 §3 (d): routes without AS_PATH count as withdrawn.
//+ RFC 7606 §3 (d): routes of the body without NEXT_HOP count as withdrawn.
#[test]
fn missing_mandatory_attributes_withdraw() {
    assert_withdrawn(parse(&[PATH, NEXT_HOP], EXTERNAL), code::ORIGIN);
    assert_withdrawn(parse(&[ORIGIN, NEXT_HOP], EXTERNAL), code::AS_PATH);
    assert_withdrawn(parse(&[ORIGIN, PATH], EXTERNAL), code::NEXT_HOP);
    assert_withdrawn(parse(&[], EXTERNAL), code::ORIGIN);
}

#[test]
fn lengths_that_hide_the_prefixes_reset_and_others_withdraw() {
    assert_eq!(code_of(Update::parse(&[0, 9, 0, 0], EXTERNAL)), (3, 1));
    assert_eq!(code_of(Update::parse(&[0, 0, 0, 9, 0x40], EXTERNAL)), (3, 1));
    assert_eq!(code_of(Update::parse(&[0xFF, 0xF1, 0x44, 1], EXTERNAL)), (3, 1));
    // The list's own length holds; an attribute inside overruns it.
    let overrun: &[u8] = &[0x40, 5, 200, 1];
    assert_withdrawn(parse(&[ORIGIN, PATH, NEXT_HOP, overrun], EXTERNAL), 0);
    assert_withdrawn(parse(&[ORIGIN, PATH, NEXT_HOP, &[0x40, 5]], EXTERNAL), 0);
}

//+ RFC 4271 §6.3: prefixes that cannot be read are answered with Invalid Network Field, 3/10.
#[test]
fn prefixes_that_cannot_be_read_reset() {
    for nlri in [&[33, 1, 1, 1, 1, 1][..], &[24, 10]] {
        let outcome = Update::parse(&body(&[ORIGIN, PATH, NEXT_HOP], nlri), EXTERNAL);
        assert_eq!(code_of(outcome), (3, 10));
    }
}

#[test]
fn multiprotocol_faults_reset() {
    let cut: &[u8] = &[0x80, 14, 6, 0, 2, 1, 32, 1, 2];
    assert_eq!(code_of(parse(&[cut], EXTERNAL)), (3, 9));
    let unreach: &[u8] = &[0x80, 15, 2, 0, 2];
    assert_eq!(code_of(parse(&[unreach], EXTERNAL)), (3, 9));
    let empty: &[u8] = &[0x80, 15, 3, 0, 2, 1];
    assert_eq!(code_of(parse(&[empty, empty], EXTERNAL)), (3, 1));
}

//= RFC 2545 §3 MUST: a next hop has 16 octets, or 32 with a link-local address behind the global one.
#[test]
fn both_lengths_of_an_ipv6_next_hop_are_read() {
    let global = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let local = [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    for (next_hop, has_link_local) in [(global.to_vec(), false), ([global, local].concat(), true)] {
        let length = u8::try_from(next_hop.len()).unwrap();
        let prefix = [32, 0x20, 1, 0x0D, 0xB8];
        let value = [&[0, 2, 1, length][..], &next_hop, &[0], &prefix].concat();
        let reach = [&[0x80, 14, u8::try_from(value.len()).unwrap()], value.as_slice()].concat();
        let update = Update::parse(&body(&[&reach, ORIGIN, PATH], &[]), EXTERNAL).unwrap();
        let NextHop::Ipv6 { link_local, .. } = update.announced[0].attributes.next_hop else {
            panic!("an IPv6 next hop");
        };
        assert_eq!(link_local.is_some(), has_link_local);
    }
}

//= RFC 4271 §5.1.5 MUST: LOCAL_PREF that an external peer sends is ignored.
#[test]
fn attributes_of_internal_peers_are_dropped_from_external_ones() {
    let local_pref: &[u8] = &[0x40, 5, 4, 0, 0, 0, 200];
    let update = parse(&[ORIGIN, PATH, NEXT_HOP, local_pref], EXTERNAL).unwrap();
    assert_eq!(update.announced[0].attributes.local_pref, None);
    let update = parse(&[ORIGIN, PATH, NEXT_HOP, local_pref], INTERNAL).unwrap();
    assert_eq!(update.announced[0].attributes.local_pref, Some(200));
}

#[test]
fn an_as4_path_in_any_place_is_harmless() {
    for malformed in [&[0x40, 17, 1, 0][..], &[0xC0, 17, 1, 0]] {
        for (path, context) in [(PATH, EXTERNAL), (OLD_PATH, OLD)] {
            let update = parse(&[malformed, ORIGIN, path, NEXT_HOP], context).unwrap();
            assert_eq!(update.faults[0].disposition, Disposition::Discard);
            assert_eq!(update.announced.len(), 1);
        }
    }
}

//+ RFC 4271 §6.3: an unknown well-known attribute is answered with 3/2 and the attribute as data.
#[test]
fn an_unknown_well_known_attribute_resets_with_its_bytes() {
    let unknown: &[u8] = &[0x40, 99, 1, 7];
    let notification = parse(&[ORIGIN, unknown], EXTERNAL).unwrap_err().notification();
    assert_eq!((notification.code, notification.subcode), (3, 2));
    assert_eq!(notification.data, unknown);
}

#[test]
fn no_prefix_of_a_good_message_panics() {
    let body = body(&[ORIGIN, PATH, NEXT_HOP, &[0xC0, 8, 4, 1, 2, 3, 4]], PREFIX);
    for end in 0..body.len() {
        let _ = Update::parse(&body[..end], EXTERNAL);
    }
}

/// Mutants of good messages through framing and parsing: nothing may panic or hang, and what is
/// announced must survive being sent on. A short run of what the fuzz targets do for hours.
#[test]
fn a_hundred_thousand_mutants_neither_panic_nor_hang() {
    let good = body(
        &[
            &[
                0x80, 14, 23, 0, 2, 1, 16, 0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                0, 8, 0x20,
            ],
            ORIGIN,
            PATH,
            NEXT_HOP,
            &[0x80, 4, 4, 0, 0, 0, 1],
            &[0x40, 5, 4, 0, 0, 0, 100],
            &[0xC0, 7, 8, 0, 0, 0xFD, 0xE9, 1, 1, 1, 1],
            &[0xC0, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xC0, 16, 8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xC0, 32, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        ],
        PREFIX,
    );
    assert!(Update::parse(&good, INTERNAL).unwrap().faults.is_empty());
    let mut rng = fairway_ground::Rng::seeded(4271);
    let mut announced = 0_u32;
    for _ in 0..100_000 {
        let mut mutant = good.clone();
        for _ in 0..=rng.next_u64() % 4 {
            let at = usize::try_from(rng.next_u64()).unwrap() % mutant.len();
            match rng.next_u64() % 3 {
                0 => mutant[at] = rng.next_u64().to_be_bytes()[0],
                1 => drop(mutant.remove(at)),
                _ => mutant.insert(at, rng.next_u64().to_be_bytes()[0]),
            }
        }
        let whole = framed(MessageType::Update, &mutant).unwrap();
        let extended = UpdateContext { extended_next_hop: true, ..EXTERNAL };
        let contexts = [EXTERNAL, INTERNAL, OLD, extended];
        let context = contexts[usize::try_from(rng.next_u64() % 4).unwrap()];
        let Ok(update) = Update::parse(&whole[19..], context) else {
            continue;
        };
        for group in &update.announced {
            announced += 1;
            let block = crate::wire::announce::AttributeBlock::encode(&group.attributes, true);
            assert!(block.is_ok());
        }
    }
    assert!(announced > 1_000, "mutants that still announce: {announced}");
}

//+ RFC 4760 §6: a family that is not supported is read no further.
#[test]
fn a_family_that_the_session_does_not_carry_is_read_no_further() {
    let context =
        UpdateContext { families: FamilySet::only(AddressFamily::Ipv4Unicast), ..EXTERNAL };
    let cut: &[u8] = &[0x80, 14, 6, 0, 2, 1, 0, 0, 200];
    let update = Update::parse(&body(&[cut, ORIGIN, PATH], &[]), context).unwrap();
    assert!(update.announced.is_empty() && update.withdrawn.is_empty());
    let marker: &[u8] = &[0x80, 15, 3, 0, 2, 1];
    assert_eq!(Update::parse(&body(&[marker], &[]), context).unwrap().end_of_rib, None);
}

#[test]
fn prefixes_in_the_body_are_ipv4_and_so_only_for_sessions_that_carry_it() {
    let context =
        UpdateContext { families: FamilySet::only(AddressFamily::Ipv6Unicast), ..EXTERNAL };
    let hop: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
    let announcement = body(&[ORIGIN, PATH, hop], &[8, 10]);
    assert_eq!(Update::parse(&announcement, EXTERNAL).unwrap().announced.len(), 1);
    let update = Update::parse(&announcement, context).unwrap();
    assert!(update.announced.is_empty() && update.withdrawn.is_empty(), "{update:?}");
    assert_eq!(Update::parse(&body(&[], &[]), context).unwrap().end_of_rib, None);
}

#[test]
fn a_fault_that_repeats_a_thousand_times_is_one() {
    let unknown: &[u8] = &[0x80, 99, 0];
    let many: Vec<&[u8]> = std::iter::repeat_n(unknown, 1_000).collect();
    let update = Update::parse(&body(&many, &[]), EXTERNAL).unwrap();
    assert_eq!(update.faults.len(), 1);
}

//= RFC 6793 §4.2.3 MUST: an AGGREGATOR other than AS_TRANS makes AS4_AGGREGATOR be ignored.
//= RFC 6793 §4.2.3 MUST: an AGGREGATOR other than AS_TRANS makes AS4_PATH be ignored.
#[test]
fn an_aggregator_that_is_younger_than_the_as4_attributes_outdates_them() {
    let path: &[u8] = &[0x40, 2, 4, 2, 1, 0x5B, 0xA0];
    let as4_path: &[u8] = &[0xC0, 17, 6, 2, 1, 0, 1, 0, 1];
    let as4_aggregator: &[u8] = &[0xC0, 18, 8, 0, 1, 0, 1, 1, 1, 1, 1];
    for (asn, kept) in [([0x5B, 0xA0], 65_537), ([0xFD, 0xE9], 65_001)] {
        let aggregator = [&[0xC0, 7, 6][..], &asn, &[1, 1, 1, 1]].concat();
        let list = [ORIGIN, path, NEXT_HOP, &aggregator, as4_path, as4_aggregator];
        let attributes = &parse(&list, OLD).unwrap().announced[0].attributes;
        assert_eq!(attributes.aggregator.unwrap().asn, kept);
        let hop = if kept == 65_537 { 65_537 } else { 23_456 };
        assert_eq!(attributes.as_path, AsPath::sequence(vec![hop]));
    }
}

fn path(number: u32, prefix: &str) -> Nlri {
    Nlri { path_id: PathId::new(number), ..prefix.parse().unwrap() }
}

//= RFC 7911 §5 MUST: prefixes are read with path identifiers in the families that both agreed on.
#[test]
fn path_identifiers_are_read_in_the_families_that_agreed_on_them() {
    let ipv4_only = FamilySet::only(AddressFamily::Ipv4Unicast);
    let context = UpdateContext { add_path: ipv4_only, ..EXTERNAL };
    let unreach = [0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0x0D, 0xB8];
    let attributes = [&unreach[..], ORIGIN, PATH, NEXT_HOP].concat();
    let length = u8::try_from(attributes.len()).unwrap();
    let body = [
        &[0, 8, 0, 0, 0, 2, 24, 10, 1, 1, 0, length][..],
        &attributes,
        &[0, 0, 0, 1, 24, 10, 1, 1],
    ]
    .concat();
    let update = Update::parse(&body, context).unwrap();
    assert_eq!(update.withdrawn, [path(2, "10.1.1.0/24"), path(0, "2001:db8::/32")]);
    assert_eq!(update.announced[0].prefixes, [path(1, "10.1.1.0/24")]);
    assert_eq!(update.faults, []);
}

//= RFC 7606 §3 (d) MUST: treat-as-withdraw concerns the paths that the message names, and no other.
#[test]
fn a_malformed_attribute_withdraws_the_path_and_not_its_siblings() {
    let context = UpdateContext { add_path: FamilySet::BOTH, ..EXTERNAL };
    let attributes = [PATH, NEXT_HOP].concat();
    let length = u8::try_from(attributes.len()).unwrap();
    let body = [&[0, 0, 0, length][..], &attributes, &[0, 0, 0, 9, 24, 10, 1, 1]].concat();
    let update = Update::parse(&body, context).unwrap();
    assert_eq!((update.withdrawn, update.announced.len()), (vec![path(9, "10.1.1.0/24")], 0));
}

#[test]
fn identifiers_that_are_missing_or_torn_end_the_session_as_other_prefixes_do() {
    let context = UpdateContext { add_path: FamilySet::BOTH, ..EXTERNAL };
    let answer = |body: &[u8]| {
        let notification = Update::parse(body, context).unwrap_err().notification();
        (notification.code, notification.subcode)
    };
    assert_eq!(answer(&[0, 4, 24, 10, 1, 1, 0, 0]), (3, 10));
    assert_eq!(answer(&[0, 3, 0, 0, 0, 0, 0]), (3, 10));
    let unreach = |nlri: &[u8]| {
        let length = u8::try_from(nlri.len()).unwrap();
        [&[0, 0, 0, length + 6, 0x80, 15, length + 3, 0, 2, 1], nlri].concat()
    };
    assert_eq!(answer(&unreach(&[32, 0x20, 1, 0x0D, 0xB8])), (3, 9));
    assert_eq!(answer(&unreach(&[0, 0, 0, 1])), (3, 9));
    // No prefix at all is the marker, with identifiers or without.
    let marker = Update::parse(&unreach(&[]), context).unwrap();
    assert_eq!(marker.end_of_rib, Some(AddressFamily::Ipv6Unicast));
}
