//! What is wrong with the lengths of an UPDATE, or with its prefixes? Prefixes that cannot be parsed end the
//! session, since it is unknown which routes they were (RFC 7606 §5.3); attributes without a clear end
//! withdraw the prefixes that are in sight (RFC 7606 §4).

use crate::bytes::{OPTIONAL, TRANSITIVE, WELL_KNOWN, attribute, mp_unreach, only};
use crate::entry::{
    Action::{Accept, Ignore, Notification, Withdraw},
    Data::{Attribute, Bytes},
    Entry, Offer, SUBJECT_NLRI, SUBJECT6_NLRI, Scene,
    Verdict::{Notified, Up},
    WELL_KNOWN_WITHDRAWS, established,
};

/// Path 1 to the subject.
const PATH_1: &[u8] = &[0, 0, 0, 1, 24, 10, 1, 1];

/// On a session with path identifiers.
fn paths(
    name: &'static str,
    source: &'static str,
    bytes: fn(&Scene) -> Vec<u8>,
    action: crate::entry::Action,
) -> Entry {
    established(name, source, bytes, action).offering(Offer::Ipv4Paths)
}

/// Prefixes up to the last octet that a message may have: 10.2.0.0/24, 10.2.1.0/24 and so on.
fn full(scene: &Scene) -> Vec<u8> {
    let room = 4096 - scene.update().nlri(&[]).bytes().len();
    let mut nlri = [8, 11].repeat(room % 4 / 2);
    if room % 2 == 1 {
        nlri.push(0);
    }
    let count = (room - nlri.len()) / 4;
    for number in 0..u16::try_from(count).unwrap_or(0) {
        let [high, low] = number.to_be_bytes();
        nlri.extend([24, 10, 2 + high, low]);
    }
    scene.update().nlri(&nlri).bytes()
}

const MALFORMED: crate::entry::Action = Notification(3, 1, Bytes(&[]));
const UNREADABLE: crate::entry::Action = Notification(3, 10, Bytes(&[]));

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        established("withdrawn-length-past-the-message", "RFC 7606 §3 (b)", |s| s.update().lies(1000, 0).bytes(), MALFORMED),
        established("attribute-length-past-the-message", "CVE-2017-15865", |s| s.update().lies(0, 1000).bytes(), MALFORMED),
        established("both-lengths-65535", "RFC 7606 §3 (b)", |_| only(&[]).lies(65535, 65535).bytes(), MALFORMED),
        established("attribute-length-that-takes-the-prefix-in", "RFC 7606 §5.2", |s| s.update().lies(0, 4).bytes(), MALFORMED),
        established("attribute-past-the-list", "RFC 7606 §4", |s| s.update().with(vec![OPTIONAL, 4, 200, 0]).bytes(), Withdraw),
        established("two-stray-octets", "RFC 7606 §4", |s| s.update().with(vec![WELL_KNOWN, 99]).bytes(), Withdraw),
        established("three-stray-zeros", "RFC 4271 §6.3: attribute 0, well-known", |s| s.update().with(vec![0, 0, 0]).bytes(), Notification(3, 2, Attribute(0))).bird(Up { present: false }, WELL_KNOWN_WITHDRAWS),
        established("stray-octet-and-nothing-announced", "RFC 7606 §5.2", |_| only(&[mp_unreach(2, 1, SUBJECT6_NLRI), vec![WELL_KNOWN]]).bytes(), MALFORMED),
        established("prefix-of-33-bits", "RFC 7606 §5.3", |s| s.update().nlri(&[33, 10, 1, 1, 1, 0]).bytes(), UNREADABLE),
        established("prefix-cut-short", "RFC 7606 §5.3", |s| s.update().nlri(&[24, 10, 1]).bytes(), UNREADABLE).bird(Notified(3, 1), "has another subcode for it"),
        established("withdrawn-prefix-longer-than-its-field", "CVE-2026-37462", |s| s.update().withdrawn(&[24, 10]).bytes(), UNREADABLE).bird(Notified(3, 1), "has another subcode for it"),
        established("withdrawn-prefix-of-33-bits", "RFC 7606 §5.3", |_| only(&[]).withdrawn(&[33, 10, 1, 1, 1, 0]).bytes(), UNREADABLE),
        established("bits-behind-the-length", "RFC 4271 §4.3", |s| s.update().nlri(&[20, 10, 1, 255]).bytes(), Accept).about(&["10.1.240.0/20"]),
        established("default-route", "RFC 4271 §4.3", |s| s.update().nlri(&[0]).bytes(), Accept).about(&["0.0.0.0/0"]),
        //+ RFC 4271 §6.3: a prefix that makes no sense, as a multicast one, is ignored.
        established("multicast-prefix", "RFC 4271 §6.3: ignored", |s| s.update().nlri(&[4, 224]).bytes(), Ignore).about(&["224.0.0.0/4"]),
        //+ RFC 4271 §4.3: a prefix that one UPDATE withdraws and announces counts as announced.
        established("same-prefix-withdrawn-and-announced", "RFC 4271 §4.3", |s| s.update().withdrawn(SUBJECT_NLRI).bytes(), Accept),
        established("withdrawn-and-never-announced", "CVE-2026-42285", |_| only(&[]).withdrawn(&[24, 10, 99, 9]).bytes(), Ignore),
        established("path-identifiers-nobody-agreed-on", "RFC 7911 §5: read as prefixes", |s| s.update().nlri(&[0, 0, 0, 1, 24, 10, 1, 1]).bytes(), Accept).about(&["0.0.0.0/0", "0.0.0.0/1", "1.0.0.0/10"]),
        paths("path-identifiers-left-out", "FRR: read beyond the end", |s| s.update().bytes(), UNREADABLE).bird(Notified(3, 1), "has another subcode for it"),
        paths("half-a-path-identifier", "RFC 7911 §3", |s| s.update().nlri(&[0, 0]).bytes(), UNREADABLE).bird(Notified(3, 1), "has another subcode for it"),
        paths("path-identifier-and-no-prefix", "RFC 7911 §3", |s| s.update().nlri(&[0, 0, 0, 1]).bytes(), UNREADABLE).bird(Notified(3, 1), "has another subcode for it"),
        paths("path-that-takes-the-place-of-itself", "RFC 7911 §5", |s| s.update().nlri(PATH_1).bytes(), Accept),
        //+ RFC 7911 §5: the withdrawal of a path identifier that was never seen is ignored.
        paths("path-withdrawn-and-never-announced", "RFC 7911 §5", |_| only(&[]).withdrawn(&[0, 0, 0, 9, 24, 10, 1, 1]).bytes(), Ignore),
        paths("path-withdrawn-by-a-missing-attribute", "RFC 7606 §2", |s| s.update().without(1).nlri(PATH_1).bytes(), Withdraw),
        established("4096-octets-of-prefixes", "RFC 4271 §4", full, Accept).about(&["10.2.0.0/24", "10.2.255.0/24", "10.5.0.0/24"]),
        established("end-of-rib-again-and-again", "RFC 4724 §2", |_| [only(&[]).bytes(), only(&[mp_unreach(2, 1, &[])]).bytes()].concat().repeat(20), Ignore),
        established("attributes-and-no-prefix", "RFC 7606 §5.2", |s| s.update().nlri(&[]).bytes(), Ignore),
        established("prefix-and-no-attributes", "CVE-2023-41358", |_| only(&[]).nlri(SUBJECT_NLRI).bytes(), Withdraw),
        established("prefix-and-an-unknown-attribute", "CVE-2023-46753", |_| only(&[attribute(TRANSITIVE, 99, &[0])]).nlri(SUBJECT_NLRI).bytes(), Withdraw),
        established("prefix-and-mp-unreach", "CVE-2023-47234", |_| only(&[mp_unreach(2, 1, &[48, 0x20, 1, 0x0D, 0xB8, 0, 9])]).nlri(SUBJECT_NLRI).bytes(), Withdraw),
        established("end-of-rib-with-a-prefix", "CVE-2023-47235", |_| only(&[mp_unreach(2, 1, &[])]).nlri(SUBJECT_NLRI).bytes(), Withdraw),
        established("origin-missing", "RFC 7606 §3 (d)", |s| s.update().without(1).bytes(), Withdraw),
        established("as-path-missing", "RFC 7606 §3 (d)", |s| s.update().without(2).bytes(), Withdraw),
        established("next-hop-missing", "RFC 7606 §3 (d)", |s| s.update().without(3).bytes(), Withdraw),
    ]
}
