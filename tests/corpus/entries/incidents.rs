//! What becomes of attributes that we do not know, harmless or infamous? Optional ones are bytes: the route
//! is used, and the next peer gets them unparsed, with the partial bit, or not at all where they are not
//! transitive (RFC 4271 §5). Well-known ones that are unknown are faults.

use crate::bytes::{EXTENDED, OPTIONAL, TRANSITIVE, WELL_KNOWN, attribute};
use crate::entry::{
    Action::{Accept, Notification, Withdraw},
    Data::Attribute,
    Entry, Scene,
    Verdict::Up,
    WELL_KNOWN_WITHDRAWS, established,
};

fn with(scene: &Scene, flags: u8, code: u8, value: &[u8]) -> Vec<u8> {
    scene.update().with(attribute(flags, code, value)).bytes()
}

/// As many attributes as fit, each of no octet, most of them repeated.
fn crowd(scene: &Scene) -> Vec<u8> {
    let codes = (41..=200).cycle().take(1300);
    codes.fold(scene.update(), |update, code| update.with(attribute(TRANSITIVE, code, &[]))).bytes()
}

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        established("attribute-99-of-3000-octets", "2010-08-27 incident", |s| with(s, TRANSITIVE | EXTENDED, 99, &[0xA5; 3000]), Accept),
        established("attribute-255", "2019-01 incident, CVE-2019-5892", |s| with(s, TRANSITIVE, 255, &[1; 8]), Accept),
        established("entropy-label-of-junk", "2023-06-02 incident, CVE-2023-4481", |s| with(s, TRANSITIVE, 28, &[0xDE, 0xAD, 0xBE, 0xEF]), Accept),
        established("tunnel-cut-short", "CVE-2023-38802", |s| with(s, TRANSITIVE, 23, &[0, 8, 0, 200, 1]), Accept),
        established("tunnel-that-lies", "CVE-2024-44070, CVE-2023-40457; FRR 2026: used after it was freed", |s| with(s, TRANSITIVE, 23, &[0, 1, 0, 4, 255, 255, 0, 0]), Accept),
        established("accumulated-metric-of-one-octet", "CVE-2023-41359", |s| with(s, OPTIONAL, 26, &[1]), Accept),
        established("link-state-attribute-that-lies", "2023-08 disclosure, CVE-2023-38283", |s| with(s, OPTIONAL, 29, &[4, 1, 255, 255]), Accept),
        established("prefix-sid-of-zeros", "2025-05-20 incident", |s| with(s, TRANSITIVE, 40, &[0; 40]), Accept),
        established("prefix-sid-past-its-end", "CVE-2024-31948; 2025-08 incident", |s| with(s, TRANSITIVE, 40, &[1, 255, 255, 0]), Accept),
        established("prefix-sid-cut-short", "CVE-2023-31490", |s| with(s, TRANSITIVE, 40, &[5]), Accept),
        established("only-to-customer-of-1024-octets", "2025-10-24 incident", |s| with(s, TRANSITIVE | EXTENDED, 35, &[0; 1024]), Withdraw),
        established("path-limit-cut-short", "2023-08 disclosure: attribute 21", |s| with(s, TRANSITIVE, 21, &[1]), Accept),
        established("ipv6-community-of-19-octets", "CVE-2026-37461; 2023-08 disclosure", |s| with(s, TRANSITIVE, 25, &[1; 19]), Accept),
        established("attribute-set-around-a-bad-path", "RFC 6368 §5", |s| with(s, TRANSITIVE, 128, &[0, 0, 0, 1, WELL_KNOWN, 2, 2, 2, 0]), Accept),
        //+ RFC 4271 §5: an unknown attribute that is not transitive is passed on.
        established("unknown-and-not-transitive", "RFC 4271 §5", |s| with(s, OPTIONAL, 99, &[1, 2, 3]), Accept),
        //+ RFC 4271 §6.3: an unknown well-known attribute is answered with 3/2 and the attribute as data.
        established("unknown-well-known", "CVE-2026-41642; RFC 4271 §6.3", |s| with(s, WELL_KNOWN, 99, &[7]), Notification(3, 2, Attribute(99))).bird(Up { present: false }, WELL_KNOWN_WITHDRAWS),
        established("unknown-up-to-4096-octets", "FRR 2026: re-encoding a large attribute; RFC 4271 §4", |s| s.update().without(5).filled_to(4096, 99).bytes(), Accept).too_long_to_tell(),
        established("1300-attributes-of-no-octet", "RFC 7606 §3 (g)", crowd, Accept),
    ]
}
