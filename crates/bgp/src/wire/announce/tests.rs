use super::*;
use crate::wire::{Framing, Update, UpdateContext};
use fairway_ground::{
    AsPath, Community, ExtendedCommunity, FamilySet, LargeCommunity, LinkBandwidth, PathId,
    PeerKind, Prefix,
};
use fairway_seam::{Aggregator, UnknownAttribute};

fn attributes(next_hop: &str) -> PathAttributes {
    let next_hop = match next_hop.parse().unwrap() {
        IpAddr::V4(address) => NextHop::Ipv4(address),
        IpAddr::V6(global) => NextHop::Ipv6 { global, link_local: None },
    };
    PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop)
}

fn received(bytes: &[u8], four_octet_as: bool) -> Vec<Update> {
    let context = UpdateContext {
        four_octet_as,
        extended_next_hop: true,
        ..UpdateContext::new(PeerKind::Internal)
    };
    updates(bytes, context)
}

fn updates(bytes: &[u8], context: UpdateContext) -> Vec<Update> {
    let mut framing = Framing::default();
    framing.allow_extended_messages();
    framing.push(bytes);
    let mut updates = Vec::new();
    while let Some(message) = framing.next_message().unwrap() {
        assert_eq!(message.kind, MessageType::Update);
        updates.push(Update::parse(&message.body, context).unwrap());
    }
    updates
}

fn hosts(family: AddressFamily, count: u32) -> BTreeSet<Nlri> {
    (0..count)
        .map(|number| match family {
            AddressFamily::Ipv4Unicast => Prefix::from_ipv4_bits(0x0A00_0000 + number, 32),
            AddressFamily::Ipv6Unicast => {
                Prefix::from_ipv6_bits(0x2001_0db8 << 96 | u128::from(number), 128)
            }
        })
        .map(|prefix| prefix.unwrap().into())
        .collect()
}

//= RFC 4271 §5 MUST: an UPDATE that announces carries ORIGIN, AS_PATH and NEXT_HOP.
//= RFC 4271 §4.3 MUST: well-known attributes are sent with the transitive bit set.
//= RFC 4271 §4.3 MUST: well-known attributes are sent with the partial bit clear.
//= RFC 4271 §4.3 MUST: the four low bits of the attribute flags are sent as zero.
#[test]
fn golden_bytes_of_one_ipv4_route() {
    let block = AttributeBlock::encode(&attributes("192.0.2.7"), true).unwrap();
    let mut prefixes = BTreeSet::from(["198.51.100.10/32".parse().unwrap()]);
    let mut bytes = BytesMut::new();
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    let body = [
        &[0, 0][..],                           // no withdrawn routes
        &[0, 20],                              // attributes
        &[0x40, 1, 1, 0],                      // ORIGIN IGP
        &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9], // AS_PATH 65001
        &[0x40, 3, 4, 192, 0, 2, 7],           // NEXT_HOP
        &[32, 198, 51, 100, 10],               // the prefix
    ]
    .concat();
    assert_eq!(bytes[19..], body[..]);
    assert_eq!(bytes[16..19], [0, 48, 2]);
}

//= RFC 2545 §3 MUST: with a link-local address behind the global one the length is 32.
#[test]
fn golden_bytes_of_an_ipv4_route_by_way_of_ipv6() {
    let (global, link_local) = ("2001:db8::7".parse().unwrap(), "fe80::7".parse().unwrap());
    let octets = |address: std::net::Ipv6Addr| address.octets();
    for (next_hop, value) in [
        (NextHop::ipv6(global, None), octets(global).to_vec()),
        (NextHop::ipv6(global, Some(link_local)), [octets(global), octets(link_local)].concat()),
        (NextHop::ipv6(link_local, None), octets(link_local).repeat(2)),
    ] {
        let sent = PathAttributes { next_hop, ..attributes("192.0.2.7") };
        let block = AttributeBlock::encode(&sent, true).unwrap();
        let prefix: Nlri = "198.51.100.10/32".parse().unwrap();
        let mut bytes = BytesMut::new();
        announcement(
            AddressFamily::Ipv4Unicast,
            false,
            &block,
            &mut BTreeSet::from([prefix]),
            &mut bytes,
        );
        let length = u8::try_from(value.len()).unwrap();
        let reach =
            [&[0x90, 14, 0, length + 10, 0, 1, 1, length][..], &value, &[0, 32, 198, 51, 100, 10]]
                .concat();
        assert_eq!(bytes[23..][..reach.len()], reach);
        let update = received(&bytes, true).remove(0);
        assert_eq!(*update.announced[0].attributes, sent);
        assert_eq!(update.announced[0].prefixes, [prefix]);
    }
}

//= RFC 6793 §4.2.2 MUST NOT: AS4_PATH is sent when every number fits two octets.
#[test]
fn what_is_sent_is_what_a_receiver_reads() {
    for next_hop in ["192.0.2.7", "2001:db8::7"] {
        let mut sent = attributes(next_hop);
        sent.med = Some(7);
        sent.local_pref = Some(250);
        sent.communities = vec![Community(1), Community(0xFFFF_FF01)].into();
        sent.large_communities =
            vec![LargeCommunity { global: 65001, local1: 1, local2: 2 }].into();
        let family = AddressFamily::of(sent.next_hop.address());
        let prefixes = hosts(family, 3);
        for four_octet_as in [true, false] {
            let block = AttributeBlock::encode(&sent, four_octet_as).unwrap();
            let mut bytes = BytesMut::new();
            announcement(family, false, &block, &mut prefixes.clone(), &mut bytes);
            let updates = received(&bytes, four_octet_as);
            assert_eq!(updates.len(), 1);
            assert_eq!(updates[0].faults, []);
            assert_eq!(*updates[0].announced[0].attributes, sent);
            assert_eq!(updates[0].announced[0].prefixes, Vec::from_iter(prefixes.clone()));
        }
    }
}

//= RFC 4271 §4.1 MUST: no message is longer than 4096 octets.
#[test]
fn messages_are_packed_full_and_never_longer_than_4096() {
    for (family, next_hop) in
        [(AddressFamily::Ipv4Unicast, "192.0.2.7"), (AddressFamily::Ipv6Unicast, "2001:db8::7")]
    {
        let block = AttributeBlock::encode(&attributes(next_hop), true).unwrap();
        let all = hosts(family, 10_000);
        let one = nlri::encoded_length(*all.first().unwrap(), false);
        let mut left = all.clone();
        let mut prefixes = Vec::new();
        while !left.is_empty() {
            let mut bytes = BytesMut::new();
            announcement(family, false, &block, &mut left, &mut bytes);
            assert!(bytes.len() <= MESSAGE_LENGTH_BYTES_MAX);
            assert!(left.is_empty() || bytes.len() + one > MESSAGE_LENGTH_BYTES_MAX);
            prefixes.extend(received(&bytes, true).remove(0).announced.remove(0).prefixes);
        }
        assert_eq!(prefixes, Vec::from_iter(all.clone()));

        let mut left = all.clone();
        let mut withdrawn = Vec::new();
        while !left.is_empty() {
            let mut bytes = BytesMut::new();
            withdrawal(family, false, &mut left, &mut bytes);
            assert!(bytes.len() <= MESSAGE_LENGTH_BYTES_MAX);
            withdrawn.extend(received(&bytes, true).remove(0).withdrawn);
        }
        assert_eq!(withdrawn, Vec::from_iter(all));
    }
}

#[test]
fn only_bulky_attributes_make_messages_longer_than_4096() {
    for (count, longest) in [(400, 4096), (1000, 65_535), (16_000, 65_535)] {
        let mut sent = attributes("192.0.2.7");
        sent.communities = (0..count).map(Community).collect();
        let block = AttributeBlock::encode_within(65_535, &sent, true).unwrap();
        let mut bytes = BytesMut::new();
        let mut left = hosts(AddressFamily::Ipv4Unicast, 20_000);
        announcement(AddressFamily::Ipv4Unicast, false, &block, &mut left, &mut bytes);
        assert!((longest - 4..=longest).contains(&bytes.len()), "{} bytes", bytes.len());
        assert_eq!(*received(&bytes, true).remove(0).announced[0].attributes, sent);
    }
    let mut sent = attributes("192.0.2.7");
    sent.communities = (0..16_400).map(Community).collect();
    let refused = AttributeBlock::encode_within(65_535, &sent, true);
    assert_eq!(refused, Err(TooLong(65_535)));
}

#[test]
fn end_of_rib_is_recognised_in_both_families() {
    for family in AddressFamily::ALL {
        let mut bytes = BytesMut::new();
        end_of_rib(family, &mut bytes);
        assert_eq!(received(&bytes, true)[0].end_of_rib, Some(family));
    }
}

#[test]
fn attributes_that_leave_no_room_for_a_prefix_are_refused() {
    for (family, next_hop, wasted) in [
        (AddressFamily::Ipv4Unicast, "192.0.2.7", 0..4),
        (AddressFamily::Ipv6Unicast, "2001:db8::7", 0..20),
    ] {
        let mut huge = attributes(next_hop);
        huge.communities = (0..1030).map(Community).collect();
        assert_eq!(AttributeBlock::encode(&huge, true), Err(TooLong(MESSAGE_LENGTH_BYTES_MAX)));
        // The longest block that is accepted still leaves room for a host route, and wastes little.
        while AttributeBlock::encode(&huge, true).is_err() {
            huge.communities.pop();
        }
        let block = AttributeBlock::encode(&huge, true).unwrap();
        let mut bytes = BytesMut::new();
        let mut prefixes = hosts(family, 1);
        announcement(family, true, &block, &mut prefixes, &mut bytes);
        assert!(prefixes.is_empty());
        let room = MESSAGE_LENGTH_BYTES_MAX - bytes.len();
        assert!(wasted.contains(&room), "{room} octets left");
    }
}

//= RFC 6793 §4.2.2 MUST: a speaker of two octets is sent AS_PATH in two octets, AS_TRANS for what does not fit.
//= RFC 6793 §4.2.2 MUST: a speaker of two octets is sent AS4_PATH beside a path that does not fit.
//= RFC 6793 §4.2.2 MUST: a speaker of two octets is sent AS4_AGGREGATOR, and AGGREGATOR with AS_TRANS.
//= RFC 6793 §4.2.3 MUST: AGGREGATOR with AS_TRANS gives way to AS4_AGGREGATOR.
#[test]
fn an_old_speaker_gets_as_trans_and_the_true_path_beside_it() {
    let mut sent = attributes("192.0.2.7");
    sent.as_path = AsPath::sequence(vec![4_200_000_000]);
    sent.aggregator = Some(Aggregator { asn: 4_200_000_000, router: [192, 0, 2, 1].into() });
    let block = AttributeBlock::encode(&sent, false).unwrap();
    let carries = |part: &[u8]| block.bytes.windows(part.len()).any(|window| window == part);
    assert!(carries(&[0x40, code::AS_PATH, 4, 2, 1, 0x5B, 0xA0]));
    assert!(carries(&[0xC0, code::AS4_PATH, 6, 2, 1, 0xFA, 0x56, 0xEA, 0x00]));
    assert!(carries(&[0xC0, code::AGGREGATOR, 6, 0x5B, 0xA0, 192, 0, 2, 1]));
    assert!(carries(&[0xC0, code::AS4_AGGREGATOR, 8, 0xFA, 0x56, 0xEA, 0x00, 192, 0, 2, 1]));
    let mut bytes = BytesMut::new();
    let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    let update = received(&bytes, false).remove(0);
    assert_eq!(*update.announced[0].attributes, sent, "the decoder merges them again");
}

#[test]
fn attributes_that_we_do_not_interpret_are_sent_byte_for_byte_in_their_order() {
    let mut sent = attributes("192.0.2.7");
    let unknown = |code, length| UnknownAttribute { flags: 0xE0, code, value: vec![7; length] };
    sent.unknown = vec![unknown(11, 3), unknown(20, 300), unknown(99, 0)].into();
    sent.large_communities = vec![LargeCommunity { global: 1, local1: 2, local2: 3 }].into();
    let block = AttributeBlock::encode(&sent, true).unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    let update = received(&bytes, true).remove(0);
    assert_eq!(*update.announced[0].attributes, sent);
}

//+ RFC 4271 §5: a partial bit that is set is cleared.
#[test]
fn the_mark_of_who_did_not_know_an_attribute_goes_on() {
    let mut sent = attributes("192.0.2.7");
    sent.communities = vec![Community(9)].into();
    sent.large_communities = vec![LargeCommunity { global: 1, local1: 2, local2: 3 }].into();
    sent.aggregator = Some(Aggregator { asn: 7, router: [192, 0, 2, 1].into() });
    sent.extended_communities = vec![ExtendedCommunity([0, 2, 0, 1, 0, 0, 0, 1])].into();
    sent.only_to_customer = Some(7);
    sent.partial = vec![
        code::AGGREGATOR,
        code::COMMUNITIES,
        code::EXTENDED_COMMUNITIES,
        code::LARGE_COMMUNITIES,
        code::ONLY_TO_CUSTOMER,
    ]
    .into();
    let block = AttributeBlock::encode(&sent, true).unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    assert!(block.bytes.windows(3).any(|it| it == [0xE0, code::COMMUNITIES, 4]));
    assert_eq!(*received(&bytes, true).remove(0).announced[0].attributes, sent);
}

//= RFC 4360 §2 MUST: an extended community has eight octets, and the attribute code 16.
//= RFC 9234 §5 MUST: OTC is optional and transitive, has code 35 and four octets.
#[test]
fn golden_bytes_of_extended_communities_and_of_only_to_customer() {
    let mut sent = attributes("192.0.2.7");
    let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
    sent.extended_communities = vec![gigabit.community(65_001, true)].into();
    sent.only_to_customer = Some(65_001);
    let expected = [
        &[0xC0, 16, 8, 0, 4, 0xFD, 0xE9, 0x4C, 0xEE, 0x6B, 0x28][..],
        &[0xC0, 35, 4, 0, 0, 0xFD, 0xE9],
    ]
    .concat();
    let bytes = AttributeBlock::encode(&sent, true).unwrap().bytes;
    assert!(bytes.ends_with(&expected), "{bytes:02x?}");
}

#[test]
fn our_own_communities_are_not_marked_partial() {
    let mut sent = attributes("192.0.2.7");
    sent.large_communities = vec![LargeCommunity { global: 1, local1: 2, local2: 3 }].into();
    sent.communities = vec![Community(9)].into();
    let bytes = AttributeBlock::encode(&sent, true).unwrap().bytes;
    assert!(bytes.windows(3).any(|window| window == [0xC0, code::COMMUNITIES, 4]));
    assert!(bytes.windows(3).any(|window| window == [0xC0, code::LARGE_COMMUNITIES, 12]));
}

/// Type codes and flags of the attributes of one UPDATE, in order.
fn attributes_of(message: &[u8]) -> Vec<(u8, u8)> {
    let withdrawn = usize::from(u16::from_be_bytes([message[19], message[20]]));
    let length =
        usize::from(u16::from_be_bytes([message[21 + withdrawn], message[22 + withdrawn]]));
    let mut rest = &message[23 + withdrawn..][..length];
    let mut found = Vec::new();
    while let [flags, code, tail @ ..] = rest {
        let (header, length) = if flags & flag::EXTENDED_LENGTH == 0 {
            (1, usize::from(tail[0]))
        } else {
            (2, usize::from(u16::from_be_bytes([tail[0], tail[1]])))
        };
        found.push((*code, *flags));
        rest = &tail[header + length..];
    }
    found
}

//= RFC 4760 §3 MUST: the reserved octet of MP_REACH_NLRI is sent as zero.
//= RFC 4760 §3 MUST: MP_REACH_NLRI comes with ORIGIN and AS_PATH.
//= RFC 4760 §3 SHOULD NOT: NEXT_HOP comes with the prefixes of MP_REACH_NLRI alone.
//= RFC 7606 §5.1 MUST: MP_REACH_NLRI is the first attribute.
//= RFC 2545 §3 MUST: the length of a next hop without a link-local address is 16.
#[test]
fn golden_bytes_of_one_ipv6_route() {
    let block = AttributeBlock::encode(&attributes("2001:db8::7"), true).unwrap();
    let mut prefixes = BTreeSet::from(["2001:db8:1::/48".parse().unwrap()]);
    let mut bytes = BytesMut::new();
    announcement(AddressFamily::Ipv6Unicast, false, &block, &mut prefixes, &mut bytes);
    let body = [
        &[0, 0][..],                     // no withdrawn routes
        &[0, 45],                        // attributes
        &[0x90, 14, 0, 28, 0, 2, 1, 16], // MP_REACH_NLRI, next hop
        &[0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
        &[0],                                  // reserved
        &[48, 0x20, 0x01, 0x0D, 0xB8, 0, 1],   // the prefix
        &[0x40, 1, 1, 0],                      // ORIGIN IGP
        &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9], // AS_PATH 65001
    ]
    .concat();
    assert_eq!(bytes[19..], body[..]);
}

//= RFC 4271 §5 SHOULD: attributes are sent in the order of their type codes.
//= RFC 4271 §4.3 MUST: optional attributes that are not transitive are sent with the partial bit clear.
//= RFC 6793 §4.2.2 MUST NOT: AS4_AGGREGATOR is sent when the number fits two octets.
#[test]
fn attributes_go_out_in_order() {
    let mut sent = attributes("192.0.2.7");
    sent.as_path = AsPath::sequence(vec![4_200_000_000]);
    (sent.med, sent.local_pref) = (Some(7), Some(250));
    sent.atomic_aggregate = true;
    sent.aggregator = Some(fairway_seam::Aggregator { asn: 65001, router: [1, 1, 1, 1].into() });
    sent.communities = vec![Community(1)].into();
    sent.extended_communities = vec![ExtendedCommunity([0, 2, 0, 1, 0, 0, 0, 1])].into();
    sent.large_communities = vec![LargeCommunity { global: 65001, local1: 1, local2: 2 }].into();
    sent.only_to_customer = Some(65001);
    let unknown = |code| UnknownAttribute { flags: 0xC0, code, value: vec![1] };
    sent.unknown = [11, 20, 34, 99].map(unknown).into();
    for (four_octet_as, expected) in [
        (true, &[1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 20, 32, 34, 35, 99][..]),
        (false, &[1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 17, 20, 32, 34, 35, 99]),
    ] {
        let block = AttributeBlock::encode(&sent, four_octet_as).unwrap();
        let mut bytes = BytesMut::new();
        let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
        announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
        let sent = attributes_of(&bytes);
        let codes: Vec<u8> = sent.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, expected);
        for (code, flags) in sent {
            let kind = match code {
                1..=3 | 5 | 6 => flag::TRANSITIVE,
                4 => flag::OPTIONAL,
                _ => flag::OPTIONAL | flag::TRANSITIVE,
            };
            assert_eq!(flags, kind, "attribute {code}");
        }
    }
}

//= RFC 6793 §4.1 MUST: a speaker of four octets is sent AS_PATH in four octets.
//= RFC 6793 §4.1 MUST NOT: a speaker of four octets is sent AS4_PATH.
#[test]
fn a_new_speaker_gets_the_true_path_and_nothing_beside_it() {
    let mut sent = attributes("192.0.2.7");
    sent.as_path = AsPath::sequence(vec![4_200_000_000, 65001]);
    let block = AttributeBlock::encode(&sent, true).unwrap();
    let path = [0x40, 2, 10, 2, 2, 0xFA, 0x56, 0xEA, 0x00, 0, 0, 0xFD, 0xE9];
    assert_eq!(block.bytes[4..][..path.len()], path);
    let mut bytes = BytesMut::new();
    let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut prefixes, &mut bytes);
    assert!(attributes_of(&bytes).iter().all(|(code, _)| *code != code::AS4_PATH));
}

//= RFC 7606 §5.1 MUST NOT: an UPDATE has prefixes in more than one of its four fields.
//= RFC 7606 §5.1 MUST: MP_UNREACH_NLRI is the first attribute.
//= RFC 4760 §4 MAY: an UPDATE with MP_UNREACH_NLRI has no other attribute.
#[test]
fn every_update_has_prefixes_in_one_field_only() {
    for family in AddressFamily::ALL {
        let next_hop =
            if family == AddressFamily::Ipv4Unicast { "192.0.2.7" } else { "2001:db8::7" };
        let block = AttributeBlock::encode(&attributes(next_hop), true).unwrap();
        let (mut announced, mut withdrawn) = (BytesMut::new(), BytesMut::new());
        announcement(family, false, &block, &mut hosts(family, 3), &mut announced);
        withdrawal(family, false, &mut hosts(family, 3), &mut withdrawn);
        let fields = |message: &[u8]| {
            let body = &message[19..];
            let gone = usize::from(u16::from_be_bytes([body[0], body[1]]));
            let length = usize::from(u16::from_be_bytes([body[2 + gone], body[3 + gone]]));
            let codes: Vec<u8> = attributes_of(message).iter().map(|(code, _)| *code).collect();
            (gone > 0, body.len() > 4 + gone + length, codes)
        };
        match family {
            AddressFamily::Ipv4Unicast => {
                assert_eq!(fields(&announced), (false, true, vec![1, 2, 3]));
                assert_eq!(fields(&withdrawn), (true, false, vec![]));
            }
            AddressFamily::Ipv6Unicast => {
                assert_eq!(fields(&announced), (false, false, vec![14, 1, 2]));
                assert_eq!(fields(&withdrawn), (false, false, vec![15]));
            }
        }
    }
}

fn paths(prefix: &str, numbers: &[u32]) -> BTreeSet<Nlri> {
    let prefix = prefix.parse().unwrap();
    numbers.iter().map(|number| Nlri { prefix, path_id: PathId::new(*number) }).collect()
}

fn received_with_path_ids(bytes: &[u8]) -> Vec<Update> {
    let context = UpdateContext::new(PeerKind::Internal);
    updates(bytes, UpdateContext { add_path: FamilySet::BOTH, ..context })
}

//= RFC 7911 §3 MUST: announced prefixes of the body have path identifiers where both agreed on them.
//= RFC 7911 §3 MUST: withdrawn prefixes have path identifiers where both agreed on them.
#[test]
fn golden_bytes_of_two_paths_in_the_body() {
    let family = AddressFamily::Ipv4Unicast;
    let block = AttributeBlock::encode(&attributes("192.0.2.7"), true).unwrap();
    let mut bytes = BytesMut::new();
    let both = paths("198.51.100.10/32", &[1, 2]);
    announcement(family, true, &block, &mut both.clone(), &mut bytes);
    let body = [
        &[0, 0, 0, 20][..],
        &[0x40, 1, 1, 0],
        &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9],
        &[0x40, 3, 4, 192, 0, 2, 7],
        &[0, 0, 0, 1, 32, 198, 51, 100, 10], // path 1
        &[0, 0, 0, 2, 32, 198, 51, 100, 10], // path 2
    ]
    .concat();
    assert_eq!(bytes[19..], body[..]);
    let mut gone = BytesMut::new();
    withdrawal(family, true, &mut paths("198.51.100.10/32", &[2]), &mut gone);
    assert_eq!(gone[19..], [0, 9, 0, 0, 0, 2, 32, 198, 51, 100, 10, 0, 0]);
    let read = received_with_path_ids(&[bytes, gone].concat());
    assert_eq!(read[0].announced[0].prefixes, Vec::from_iter(both));
    assert_eq!(read[1].withdrawn, Vec::from_iter(paths("198.51.100.10/32", &[2])));
}

//= RFC 7911 §3 MUST: prefixes of MP_REACH_NLRI and MP_UNREACH_NLRI have path identifiers where both agreed on them.
#[test]
fn golden_bytes_of_a_path_in_the_multiprotocol_attributes() {
    let family = AddressFamily::Ipv6Unicast;
    let block = AttributeBlock::encode(&attributes("2001:db8::7"), true).unwrap();
    let mut bytes = BytesMut::new();
    let path = paths("2001:db8:1::/48", &[0x0102_0304]);
    announcement(family, true, &block, &mut path.clone(), &mut bytes);
    let nlri = [1, 2, 3, 4, 48, 0x20, 1, 0x0D, 0xB8, 0, 1];
    let next_hop = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let reach = [&[0x90, 14, 0, 32, 0, 2, 1, 16], &next_hop[..], &[0], &nlri].concat();
    assert_eq!(bytes[23..][..reach.len()], reach);
    let mut gone = BytesMut::new();
    withdrawal(family, true, &mut path.clone(), &mut gone);
    assert_eq!(gone[23..], [&[0x90, 15, 0, 14, 0, 2, 1][..], &nlri].concat());
    let read = received_with_path_ids(&[bytes, gone].concat());
    assert_eq!(read[0].announced[0].prefixes, Vec::from_iter(path.clone()));
    assert_eq!(read[1].withdrawn, Vec::from_iter(path));
}

#[test]
fn messages_with_path_identifiers_are_packed_full_too() {
    for (family, next_hop) in
        [(AddressFamily::Ipv4Unicast, "192.0.2.7"), (AddressFamily::Ipv6Unicast, "2001:db8::7")]
    {
        let block = AttributeBlock::encode(&attributes(next_hop), true).unwrap();
        let all = hosts(family, 2_000);
        let one = nlri::encoded_length(*all.first().unwrap(), true);
        let (mut told, mut gone) = (all.clone(), all.clone());
        let (mut announced, mut withdrawn) = (Vec::new(), Vec::new());
        while !(told.is_empty() && gone.is_empty()) {
            let mut bytes = BytesMut::new();
            announcement(family, true, &block, &mut told, &mut bytes);
            assert!(told.is_empty() || bytes.len() + one > MESSAGE_LENGTH_BYTES_MAX);
            let announcement_length = bytes.len();
            withdrawal(family, true, &mut gone, &mut bytes);
            let withdrawal_length = bytes.len() - announcement_length;
            assert!(announcement_length.max(withdrawal_length) <= MESSAGE_LENGTH_BYTES_MAX);
            assert!(gone.is_empty() || withdrawal_length + one > MESSAGE_LENGTH_BYTES_MAX);
            for update in received_with_path_ids(&bytes) {
                announced.extend(update.announced.into_iter().flat_map(|it| it.prefixes));
                withdrawn.extend(update.withdrawn);
            }
        }
        assert_eq!(announced, Vec::from_iter(all.clone()));
        assert_eq!(withdrawn, Vec::from_iter(all));
    }
}
