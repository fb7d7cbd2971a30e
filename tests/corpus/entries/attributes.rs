//! What is wrong with the other attributes that we know?

use crate::bytes::{EXTENDED, OPTIONAL, TRANSITIVE, WELL_KNOWN, attribute};
use crate::entry::{
    Action::{Accept, Discard, Exclude, Notification, Withdraw},
    Data::Attribute,
    Entry, Kind, NEXT_HOPS, Scene,
    Verdict::Up,
    WELL_KNOWN_WITHDRAWS, established,
};

fn with(scene: &Scene, flags: u8, code: u8, value: &[u8]) -> Vec<u8> {
    scene.update().without(code).with(attribute(flags, code, value)).bytes()
}

fn next_hop(scene: &Scene, value: &[u8]) -> Vec<u8> {
    with(scene, WELL_KNOWN, 3, value)
}

/// The LOCAL_PREF that must not be kept from an external peer.
const PREFERRED: &[u8] = &[0, 0, 0, 200];

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        established("origin-3", "RFC 7606 §7.1", |s| with(s, WELL_KNOWN, 1, &[3]), Withdraw),
        established("origin-of-no-octet", "RFC 7606 §7.1", |s| with(s, WELL_KNOWN, 1, &[]), Withdraw),
        established("origin-without-flags", "RFC 7606 §3 (c); GoBGP issue 3392", |s| with(s, 0, 1, &[0]), Withdraw),
        established("origin-twice", "RFC 7606 §3 (g)", |s| s.update().with(attribute(WELL_KNOWN, 1, &[2])).bytes(), Accept).shows("/origin", "IGP"),
        established("next-hop-of-five-octets", "RFC 7606 §7.3", |s| next_hop(s, &[127, 0, 0, 9, 0]), Withdraw),
        established("next-hop-of-an-ipv6-address", "CVE-2026-30405", |s| next_hop(s, &crate::entry::GLOBAL), Withdraw),
        established("next-hop-0.0.0.0", "RFC 4271 §6.3", |s| next_hop(s, &[0; 4]), Withdraw),
        established("next-hop-of-a-multicast-group", "RFC 4271 §6.3", |s| next_hop(s, &[224, 0, 0, 5]), Withdraw).bird(Up { present: true }, NEXT_HOPS),
        established("next-hop-broadcast", "RFC 4271 §6.3", |s| next_hop(s, &[255; 4]), Withdraw).bird(Up { present: true }, NEXT_HOPS),
        //+ RFC 4271 §6.3: a next hop that is our own address is taken.
        established("our-own-next-hop", "RFC 4271 §5.1.3", |s| next_hop(s, &s.speaker), Exclude).bird(Up { present: true }, NEXT_HOPS),
        //+ RFC 4271 §6.3: the next hop of an external peer next door is in a subnet that we share.
        established("next-hop-on-no-shared-network", "RFC 4271 §6.3", |s| next_hop(s, &[203, 0, 113, 9]), Exclude).internal(Accept).adjacent().bird_on(Kind::External, Up { present: true }, NEXT_HOPS),
        established("med-of-three-octets", "RFC 7606 §7.4", |s| with(s, OPTIONAL, 4, &[0, 0, 1]), Withdraw),
        //+ RFC 4271 §5.1.5: LOCAL_PREF is sent to external peers.
        established("local-pref", "RFC 7606 §7.5", |s| with(s, WELL_KNOWN, 5, PREFERRED), Discard(&[5])).internal(Accept),
        established("local-pref-of-three-octets", "RFC 7606 §7.5", |s| with(s, WELL_KNOWN, 5, &PREFERRED[1..]), Discard(&[5])).internal(Withdraw),
        established("atomic-aggregate-of-one-octet", "RFC 7606 §7.6", |s| with(s, WELL_KNOWN, 6, &[0]), Discard(&[6])),
        established("aggregator-of-six-octets", "RFC 7606 §7.7", |s| with(s, TRANSITIVE, 7, &[0xFB, 0xF5, 1, 1, 1, 1]), Discard(&[7])),
        //+ RFC 7607 §2: a route with AS 0 is passed on.
        established("aggregator-of-as-0", "RFC 7607 §2", |s| with(s, TRANSITIVE, 7, &[0, 0, 0, 0, 1, 1, 1, 1]), Discard(&[7])),
        established("communities-of-five-octets", "RFC 7606 §7.8", |s| with(s, TRANSITIVE, 8, &[0, 1, 0, 2, 3]), Withdraw),
        established("communities-of-no-octet", "RFC 7606 §7.8", |s| with(s, TRANSITIVE, 8, &[]), Withdraw),
        established("communities-not-transitive", "RFC 7606 §3 (c)", |s| with(s, OPTIONAL, 8, &[0, 1, 0, 2]), Withdraw),
        established("1000-communities", "RFC 1997", |s| with(s, TRANSITIVE | EXTENDED, 8, &(0..1000_u32).flat_map(|it| (0xFBF5_0000 + it).to_be_bytes()).collect::<Vec<_>>()), Accept),
        established("extended-communities-of-seven-octets", "RFC 7606 §7.14", |s| with(s, TRANSITIVE, 16, &[7; 7]), Withdraw),
        established("large-communities-of-eleven-octets", "RFC 8092 §6", |s| with(s, TRANSITIVE, 32, &[7; 11]), Withdraw),
        established("originator-id-of-three-octets", "RFC 7606 §7.9", |s| with(s, OPTIONAL, 9, &[1; 3]), Discard(&[9])).internal(Withdraw),
        //+ RFC 4456 §8: a route with our own identifier as ORIGINATOR_ID is ignored.
        established("our-own-originator-id", "RFC 4456 §8", |s| with(s, OPTIONAL, 9, &s.speaker), Discard(&[9])).internal(Exclude),
        established("cluster-list-of-six-octets", "CVE-2018-5379; RFC 7606 §7.10", |s| s.update().with(attribute(OPTIONAL, 10, &[1; 6])).with(attribute(TRANSITIVE, 99, &[1])).bytes(), Discard(&[10])).internal(Withdraw),
        established("discard-and-withdraw", "RFC 7606 §3 (h)", |s| s.update().with(attribute(WELL_KNOWN, 6, &[0])).with(attribute(TRANSITIVE, 8, &[0])).bytes(), Withdraw),
        established("withdraw-and-reset", "RFC 7606 §3 (h)", |s| s.update().swap(attribute(WELL_KNOWN, 1, &[9])).with(attribute(WELL_KNOWN, 99, &[7])).bytes(), Notification(3, 2, Attribute(99))).bird(Up { present: false }, WELL_KNOWN_WITHDRAWS),
    ]
}
