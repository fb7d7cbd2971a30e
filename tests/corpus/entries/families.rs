//! What is wrong with MP_REACH_NLRI or MP_UNREACH_NLRI, and what becomes of families that were not
//! negotiated? Those are parsed no further than their next hop: what is malformed behind it cannot
//! hurt, and changes nothing.

use crate::bytes::{
    EXTENDED, OPTIONAL, SEQUENCE, TRANSITIVE, as_path, attribute, mp_reach, mp_unreach, only,
    reach, segment,
};
use crate::entry::{
    Action::{Accept, Ignore, Notification, Withdraw},
    Data::{Attribute, Bytes},
    Entry, GLOBAL, NEXT_HOPS, Offer, PEER_AS, SUBJECT, SUBJECT6, SUBJECT6_NLRI, Scene,
    Verdict::{Notified, Up},
    established,
};

const LINK_LOCAL: [u8; 16] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const GROUP: [u8; 16] = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The IPv6 UPDATE with this value of MP_REACH_NLRI.
fn reaching(scene: &Scene, value: &[u8]) -> Vec<u8> {
    scene.update6().swap(attribute(OPTIONAL | EXTENDED, 14, value)).bytes()
}

/// The same with this next hop.
fn by_way_of(scene: &Scene, next_hop: &[u8]) -> Vec<u8> {
    reaching(scene, &reach(2, 1, next_hop, SUBJECT6_NLRI))
}

/// Routes of a family that was not negotiated.
fn foreign(scene: &Scene, afi: u16, safi: u8, next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    reaching(scene, &reach(afi, safi, next_hop, nlri))
}

/// Prefix-SID with an SRv6 L3 service and a structure that moves 255 bits to bit 128.
fn transposed_sid() -> Vec<u8> {
    let structure = [1, 0, 6, 40, 24, 16, 0, 255, 128];
    let sid = [&[0][..], &[0x20; 16], &[0, 0, 19, 0], &structure].concat();
    let information = [&[1, 0, u8::try_from(sid.len()).unwrap_or(0)][..], &sid].concat();
    let length = u8::try_from(information.len() + 1).unwrap_or(0);
    attribute(TRANSITIVE, 40, &[&[5, 0, length, 0][..], &information].concat())
}

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    let bad_reach = Notification(3, 9, Attribute(14));
    let bad_unreach = Notification(3, 9, Attribute(15));
    let on6 = |entry: Entry| entry.about(&[SUBJECT6]);
    vec![
        on6(established("global-and-link-local-next-hop", "RFC 2545 §3", |s| by_way_of(s, &[GLOBAL, LINK_LOCAL].concat()), Accept)),
        on6(established("reserved-octet-255", "RFC 4760 §3", |s| { let mut value = reach(2, 1, &GLOBAL, SUBJECT6_NLRI); value[20] = 255; reaching(s, &value) }, Accept)),
        on6(established("mp-next-hop-of-no-octet", "RFC 7606 §7.11", |s| by_way_of(s, &[]), bad_reach)),
        on6(established("ipv4-next-hop-of-ipv6", "RFC 7606 §7.11", |s| by_way_of(s, &s.peer), bad_reach)).bird(Up { present: false }, "withdraws for a next hop of a wrong length"),
        on6(established("mp-next-hop-past-the-attribute", "CVE-2023-46752", |s| reaching(s, &[0, 2, 1, 32, 1, 2, 3, 4, 5]), bad_reach)),
        on6(established("mp-reach-of-three-octets", "RFC 7606 §5.3", |s| reaching(s, &[0, 2, 1]), bad_reach)),
        on6(established("mp-reach-twice", "RFC 7606 §3 (g)", |s| s.update6().with(mp_reach(2, 1, &GLOBAL, SUBJECT6_NLRI)).bytes(), Notification(3, 1, Bytes(&[])))),
        on6(established("mp-reach-transitive", "RFC 7606 §5.3", |s| s.update6().swap(attribute(TRANSITIVE, 14, &reach(2, 1, &GLOBAL, SUBJECT6_NLRI))).bytes(), bad_reach)).bird(Notified(3, 1), "has another subcode for it"),
        on6(established("half-an-ipv6-prefix", "RFC 7606 §5.3", |s| reaching(s, &reach(2, 1, &GLOBAL, &SUBJECT6_NLRI[..4])), bad_reach)).bird(Notified(3, 1), "has another subcode for it"),
        on6(established("ipv6-prefix-of-129-bits", "RFC 7606 §5.3", |s| reaching(s, &reach(2, 1, &GLOBAL, &[129; 18])), bad_reach)).bird(Notified(3, 10), "has another subcode for it"),
        on6(established("next-hop-of-zeros", "RFC 4271 §6.3, RFC 4760 §3", |s| by_way_of(s, &[0; 16]), Withdraw)),
        on6(established("next-hop-of-an-ipv6-group", "RFC 4271 §6.3, RFC 4760 §3", |s| by_way_of(s, &GROUP), Withdraw)).bird(Up { present: true }, NEXT_HOPS),
        established("ipv6-multicast-prefix", "RFC 4271 §6.3: ignored", |s| reaching(s, &reach(2, 1, &GLOBAL, &[8, 0xFF])), Ignore).about(&["ff00::/8"]),
        established("ipv4-in-mp-reach", "RFC 4760 §3", |s| foreign(s, 1, 1, &s.peer, &[24, 10, 1, 4]), Accept).about(&["10.1.4.0/24"]),
        established("ipv4-by-way-of-ipv6", "RFC 8950 §4: not agreed on", |s| foreign(s, 1, 1, &GLOBAL, &[24, 10, 1, 4]), bad_reach).bird(Up { present: true }, "reads such a next hop without having agreed on it"),
        established("bad-attribute-of-two-families", "RFC 7606 §2", |s| s.update().first(mp_reach(2, 1, &GLOBAL, SUBJECT6_NLRI)).with(attribute(TRANSITIVE, 8, &[0])).bytes(), Withdraw).about(&[SUBJECT, SUBJECT6]),
        on6(established("mp-unreach-of-two-octets", "RFC 7606 §5.3", |_| only(&[attribute(OPTIONAL, 15, &[0, 2])]).bytes(), bad_unreach)),
        on6(established("half-a-prefix-in-mp-unreach", "RFC 7606 §5.3", |_| only(&[mp_unreach(2, 1, &SUBJECT6_NLRI[..4])]).bytes(), bad_unreach)).bird(Notified(3, 1), "has another subcode for it"),
        on6(established("mp-unreach-twice", "RFC 7606 §3 (g)", |_| only(&[mp_unreach(2, 1, SUBJECT6_NLRI), mp_unreach(1, 1, &[])]).bytes(), Notification(3, 1, Bytes(&[])))),
        on6(established("ipv6-on-a-session-of-ipv4", "RFC 4760 §6", |s| s.update6().bytes(), Ignore)).offering(Offer::Ipv4),
        established("family-that-does-not-exist", "RFC 4760 §6", |s| foreign(s, 65535, 255, &[1; 7], &[255; 9]), Ignore),
        established("foreign-next-hop-past-the-attribute", "RFC 7606 §7.11. Ours: no milder than for our families", |s| reaching(s, &[0, 25, 70, 9, 1]), bad_reach),
        established("flowspec-of-length-0", "CVE-2023-38406", |s| foreign(s, 1, 133, &[], &[0]), Ignore),
        established("flowspec-and-no-attributes", "CVE-2023-41909", |_| only(&[mp_reach(1, 133, &[], &[3, 1, 8, 10])]).bytes(), Ignore),
        established("flowspec-past-its-end", "CVE-2025-43972; BIRD 2026", |s| foreign(s, 1, 133, &[], &[0xFF, 0xFF, 3, 0x01]), Ignore),
        established("label-past-its-end", "CVE-2023-38407", |s| foreign(s, 1, 4, &s.peer, &[200, 0, 0, 1]), Ignore),
        established("label-longer-than-its-prefix", "FRR 2026: prefix length underflow", |s| foreign(s, 1, 4, &s.peer, &[10, 0, 0, 0x11]), Ignore),
        established("labels-without-a-bottom", "FRR 2026: label stack in a debug line", |s| foreign(s, 2, 4, &GLOBAL, &[&[240][..], &[0; 30]].concat()), Ignore),
        established("vpn-sid-moved-out-of-itself", "FRR F-004 of 2026", |s| s.update6().swap(mp_reach(2, 128, &[&[0; 8][..], &GLOBAL].concat(), &[&[112, 0, 0, 0x11][..], &[0; 11]].concat())).with(transposed_sid()).bytes(), Ignore),
        established("vpn-without-a-sid", "FRR 2026: shown with a null pointer", |s| s.update6().swap(mp_reach(1, 128, &[&[0; 8][..], &s.peer].concat(), &[&[112, 0, 0, 0x11][..], &[0; 11]].concat())).with(attribute(TRANSITIVE, 40, &[5, 0, 1, 0])).bytes(), Ignore),
        established("evpn-prefix-of-200-bits", "FRR 2026: length of EVPN type 5", |s| foreign(s, 25, 70, &s.peer, &[&[5, 34][..], &[0; 22], &[200], &[0; 11]].concat()), Ignore),
        established("link-state-that-lies", "2023-08 disclosure, VU#347067", |s| foreign(s, 16388, 71, &s.peer, &[0, 1, 255, 255, 1]), Ignore),
        established("foreign-withdrawal-beside-a-prefix", "RFC 4760 §6", |s| s.update().first(mp_unreach(1, 133, &[0, 255])).bytes(), Accept),
        established("foreign-routes-of-a-bad-path", "RFC 7606 §5.2", |s| s.update6().swap(mp_reach(25, 70, &s.peer, &[1; 9])).swap(as_path(&[segment(SEQUENCE, &[PEER_AS.into(), 0])])).bytes(), Ignore),
    ]
}
