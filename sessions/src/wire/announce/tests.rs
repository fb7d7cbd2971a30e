use super::*;
use crate::types::{
    Aggregator, AsPath, Community, FamilySet, LargeCommunity, PeerKind, UnknownAttribute,
};
use crate::wire::{Framing, Update, UpdateContext};

fn attributes(next_hop: &str) -> PathAttributes {
    let next_hop = match next_hop.parse().unwrap() {
        IpAddr::V4(address) => NextHop::Ipv4(address),
        IpAddr::V6(global) => NextHop::Ipv6 { global, link_local: None },
    };
    PathAttributes::originated(AsPath::sequence(vec![65001]), next_hop)
}

fn received(bytes: &[u8], four_octet_as: bool) -> Vec<Update> {
    let mut framing = Framing::default();
    framing.push(bytes);
    let context =
        UpdateContext { kind: PeerKind::Internal, four_octet_as, families: FamilySet::BOTH };
    let mut updates = Vec::new();
    while let Some(message) = framing.next_message().unwrap() {
        assert_eq!(message.kind, MessageType::Update);
        updates.push(Update::parse(&message.body, context).unwrap());
    }
    updates
}

fn hosts(family: AddressFamily, count: u32) -> BTreeSet<Prefix> {
    (0..count)
        .map(|number| match family {
            AddressFamily::Ipv4Unicast => Prefix::from_ipv4_bits(0x0A00_0000 + number, 32),
            AddressFamily::Ipv6Unicast => {
                Prefix::from_ipv6_bits(0x2001_0db8 << 96 | u128::from(number), 128)
            }
        })
        .map(Result::unwrap)
        .collect()
}

#[test]
fn golden_bytes_of_one_ipv4_route() {
    let block = AttributeBlock::encode(&attributes("192.0.2.7"), true).unwrap();
    let mut prefixes = BTreeSet::from(["198.51.100.10/32".parse().unwrap()]);
    let mut bytes = BytesMut::new();
    announcement(AddressFamily::Ipv4Unicast, &block, &mut prefixes, &mut bytes);
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

#[test]
fn what_is_sent_is_what_a_receiver_reads() {
    for next_hop in ["192.0.2.7", "2001:db8::7"] {
        let mut sent = attributes(next_hop);
        sent.med = Some(7);
        sent.local_pref = Some(250);
        sent.communities = vec![Community(1), Community(0xFFFF_FF01)];
        sent.large_communities = vec![LargeCommunity { global: 65001, local1: 1, local2: 2 }];
        let family = AddressFamily::of(sent.next_hop.address());
        let prefixes = hosts(family, 3);
        for four_octet_as in [true, false] {
            let block = AttributeBlock::encode(&sent, four_octet_as).unwrap();
            let mut bytes = BytesMut::new();
            announcement(family, &block, &mut prefixes.clone(), &mut bytes);
            let updates = received(&bytes, four_octet_as);
            assert_eq!(updates.len(), 1);
            assert_eq!(updates[0].faults, []);
            assert_eq!(updates[0].announced[0].attributes, sent);
            assert_eq!(updates[0].announced[0].prefixes, Vec::from_iter(prefixes.clone()));
        }
    }
}

#[test]
fn messages_are_packed_full_and_never_longer_than_4096() {
    for (family, next_hop) in
        [(AddressFamily::Ipv4Unicast, "192.0.2.7"), (AddressFamily::Ipv6Unicast, "2001:db8::7")]
    {
        let block = AttributeBlock::encode(&attributes(next_hop), true).unwrap();
        let all = hosts(family, 10_000);
        let one = nlri::encoded_length(*all.first().unwrap());
        let mut left = all.clone();
        let mut prefixes = Vec::new();
        while !left.is_empty() {
            let mut bytes = BytesMut::new();
            announcement(family, &block, &mut left, &mut bytes);
            assert!(bytes.len() <= MESSAGE_LENGTH_BYTES_MAX);
            assert!(left.is_empty() || bytes.len() + one > MESSAGE_LENGTH_BYTES_MAX);
            prefixes.extend(received(&bytes, true).remove(0).announced.remove(0).prefixes);
        }
        assert_eq!(prefixes, Vec::from_iter(all.clone()));

        let mut left = all.clone();
        let mut withdrawn = Vec::new();
        while !left.is_empty() {
            let mut bytes = BytesMut::new();
            withdrawal(family, &mut left, &mut bytes);
            assert!(bytes.len() <= MESSAGE_LENGTH_BYTES_MAX);
            withdrawn.extend(received(&bytes, true).remove(0).withdrawn);
        }
        assert_eq!(withdrawn, Vec::from_iter(all));
    }
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
    let mut huge = attributes("192.0.2.7");
    huge.communities = (0..1030).map(Community).collect();
    assert_eq!(AttributeBlock::encode(&huge, true), Err(TooLong));
    // The longest block that is accepted still carries a route of either family.
    while AttributeBlock::encode(&huge, true).is_err() {
        huge.communities.pop();
    }
    for family in AddressFamily::ALL {
        let block = AttributeBlock::encode(&huge, true).unwrap();
        let mut bytes = BytesMut::new();
        assert_eq!(announcement(family, &block, &mut hosts(family, 1), &mut bytes).len(), 1);
        assert!(bytes.len() <= MESSAGE_LENGTH_BYTES_MAX);
    }
}

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
    announcement(AddressFamily::Ipv4Unicast, &block, &mut prefixes, &mut bytes);
    let update = received(&bytes, false).remove(0);
    assert_eq!(update.announced[0].attributes, sent, "and puts them together again");
}

#[test]
fn attributes_that_we_do_not_interpret_are_sent_byte_for_byte_in_their_order() {
    let mut sent = attributes("192.0.2.7");
    let unknown = |code, length| UnknownAttribute { flags: 0xE0, code, value: vec![7; length] };
    sent.unknown = vec![unknown(11, 3), unknown(20, 300), unknown(99, 0)];
    sent.large_communities = vec![LargeCommunity { global: 1, local1: 2, local2: 3 }];
    let block = AttributeBlock::encode(&sent, true).unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = hosts(AddressFamily::Ipv4Unicast, 1);
    announcement(AddressFamily::Ipv4Unicast, &block, &mut prefixes, &mut bytes);
    let update = received(&bytes, true).remove(0);
    assert_eq!(update.announced[0].attributes, sent);
}

#[test]
fn our_own_communities_are_not_marked_partial() {
    let mut sent = attributes("192.0.2.7");
    sent.large_communities = vec![LargeCommunity { global: 1, local1: 2, local2: 3 }];
    sent.communities = vec![Community(9)];
    let bytes = AttributeBlock::encode(&sent, true).unwrap().bytes;
    assert!(bytes.windows(3).any(|window| window == [0xC0, code::COMMUNITIES, 4]));
    assert!(bytes.windows(3).any(|window| window == [0xC0, code::LARGE_COMMUNITIES, 12]));
}
