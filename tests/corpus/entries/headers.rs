//! What is wrong with the header, with how the stream is cut, or with when a message comes?

use crate::bytes::{header, keepalive, kind, message, only, route_refresh};
use crate::entry::{
    Action::{Accept, Ignore, Notification, Silence},
    Data::Bytes,
    Entry, Manner,
    Moment::{BehindOpen, InsteadOfKeepalive, InsteadOfOpen},
    SUBJECT_NLRI, Scene,
    Verdict::Up,
    entry, established,
};

/// A KEEPALIVE with one bit of its marker clear.
fn unmarked() -> Vec<u8> {
    let mut bytes = keepalive();
    bytes[3] = 0xFE;
    bytes
}

/// The CAPABILITY message of a draft, which was not negotiated.
fn dynamic_capability(body: &[u8]) -> Vec<u8> {
    message(6, body)
}

/// The subject announced and withdrawn by turns, at last announced.
fn turns(scene: &Scene) -> Vec<u8> {
    let announced = scene.update().bytes();
    let withdrawn = only(&[]).withdrawn(SUBJECT_NLRI).bytes();
    [withdrawn, announced].concat().repeat(100)
}

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        //+ RFC 4271 §6.1: a marker that is not all ones is answered with 1/1.
        established("marker-with-a-clear-bit", "RFC 4271 §6.1", |_| unmarked(), Notification(1, 1, Bytes(&[]))),
        entry(InsteadOfOpen, "web-request-on-the-port", "RFC 4271 §6.1; scanners", |_| b"GET / HTTP/1.1\r\nHost: router\r\n\r\n".to_vec(), Notification(1, 1, Bytes(&[]))).about(&[]),
        //+ RFC 4271 §6.1: a length below 19 or above 4096 is answered with 1/2.
        established("length-18", "RFC 4271 §6.1", |_| header(18, kind::KEEPALIVE), Notification(1, 2, Bytes(&[0, 18]))),
        established("length-0", "RFC 4271 §6.1", |_| header(0, kind::UPDATE), Notification(1, 2, Bytes(&[0, 0]))),
        //+ RFC 4271 §6.1: a length below 19 or above 4096 is answered with 1/2.
        established("length-4097", "RFC 8654 §4: not agreed on", |_| header(4097, kind::UPDATE), Notification(1, 2, Bytes(&[0x10, 1]))),
        established("length-65535", "RFC 4271 §6.1", |_| header(65535, kind::UPDATE), Notification(1, 2, Bytes(&[255, 255]))),
        //+ RFC 4271 §6.1: a KEEPALIVE of any length but 19 octets is answered with 1/2.
        established("keepalive-of-20", "RFC 4271 §4.4", |_| message(kind::KEEPALIVE, &[0]), Notification(1, 2, Bytes(&[0, 20]))).bird(Up { present: true }, "does not look behind the header of a KEEPALIVE"),
        //+ RFC 4271 §6.1: an UPDATE shorter than 23 octets is answered with 1/2.
        established("update-of-22", "RFC 4271 §4.3", |_| message(kind::UPDATE, &[0, 0, 0]), Notification(1, 2, Bytes(&[0, 22]))),
        //+ RFC 4271 §6.1: a NOTIFICATION shorter than 21 octets is answered with 1/2.
        established("notification-of-20", "RFC 4271 §4.5, §6.1", |_| message(kind::NOTIFICATION, &[6]), Notification(1, 2, Bytes(&[0, 20]))),
        //+ RFC 4271 §6.1: an OPEN shorter than 29 octets is answered with 1/2.
        entry(InsteadOfOpen, "open-of-28", "RFC 4271 §4.2", |_| message(kind::OPEN, &[4, 0, 0, 0, 90, 1, 1, 1, 1]), Notification(1, 2, Bytes(&[0, 28]))).about(&[]),
        established("type-0", "RFC 4271 §6.1", |_| header(19, 0), Notification(1, 3, Bytes(&[0]))),
        //+ RFC 4271 §6.1: an unknown type is answered with 1/3 and the type as data.
        established("type-77", "CVE-2023-46565", |_| header(19, 77), Notification(1, 3, Bytes(&[77]))),
        established("dynamic-multiprotocol-capability", "CVE-2024-31949, CVE-2022-37032", |_| dynamic_capability(&[0, 1, 4, 0, 1, 0, 1, 1, 1]), Notification(1, 3, Bytes(&[6]))),
        established("dynamic-software-version-and-role", "FRR 2026: lengths of dynamic capabilities", |_| dynamic_capability(&[0, 75, 2, 200, b'x', 0, 9, 0]), Notification(1, 3, Bytes(&[6]))),
        established("dynamic-capability-storm", "FRR issue 22352 of 2026", |_| dynamic_capability(&[1, 2, 0]).repeat(500), Notification(1, 3, Bytes(&[6]))),
        established("fault-with-60-kilobytes-behind-it", "RFC 4271 §6; a reset must not overtake the answer", |_| [unmarked(), vec![0xA5; 60_000]].concat(), Notification(1, 1, Bytes(&[]))),
        established("fin-in-a-header", "RFC 4271 §8.2.2, event 18", |_| keepalive()[..10].to_vec(), Silence).sent(Manner::ThenFin),
        established("fin-in-an-update", "RFC 4271 §8.2.2, event 18", |s| s.update().bytes()[..40].to_vec(), Silence).sent(Manner::ThenFin),
        established("reset-behind-an-update", "RFC 4271 §8.2.2, event 18", |s| s.update().bytes(), Silence).sent(Manner::ThenReset),
        //+ RFC 4271 §4: a message is processed only when all of it has been received.
        established("update-byte-by-byte", "RFC 4271 §4: a stream has no segments", |s| [keepalive(), s.update().bytes()].concat(), Accept).sent(Manner::ByteByByte),
        entry(InsteadOfOpen, "open-byte-by-byte", "RFC 4271 §4: a stream has no segments", |s| s.open().bytes(), Accept).sent(Manner::ByteByByte).about(&[]),
        entry(BehindOpen, "session-in-one-segment", "RFC 4271 §4: a stream has no segments", |s| [keepalive(), s.update().nlri(&[24, 10, 1, 4]).bytes()].concat(), Accept).about(&["10.1.4.0/24"]),
        established("200-updates-in-one-segment", "RFC 4271 §4: a stream has no segments", turns, Accept),
        entry(InsteadOfOpen, "keepalive-for-open", "RFC 6608 §4", |_| keepalive(), Notification(5, 1, Bytes(&[kind::KEEPALIVE]))).about(&[]),
        //+ RFC 6608 §4: a message that OpenSent does not allow is answered with 5/1.
        entry(InsteadOfOpen, "update-for-open", "RFC 6608 §4", |s| s.update().bytes(), Notification(5, 1, Bytes(&[kind::UPDATE]))).about(&[]),
        //+ RFC 6608 §4: a message that OpenConfirm does not allow is answered with 5/2.
        entry(InsteadOfKeepalive, "update-for-keepalive", "RFC 6608 §4", |s| s.update().bytes(), Notification(5, 2, Bytes(&[kind::UPDATE]))).about(&[]).bird(Up { present: true }, "takes an UPDATE for the KEEPALIVE that some old speakers never send"),
        entry(InsteadOfKeepalive, "route-refresh-for-keepalive", "RFC 6608 §4", |_| route_refresh(1, 0, 1, &[]), Notification(5, 2, Bytes(&[kind::ROUTE_REFRESH]))).about(&[]),
        entry(InsteadOfKeepalive, "second-open", "RFC 6608 §4", |s| s.open().bytes(), Notification(5, 2, Bytes(&[kind::OPEN]))).about(&[]),
        //+ RFC 6608 §4: a message that Established does not allow is answered with 5/3.
        established("open-in-established", "RFC 6608 §4", |s| s.open().bytes(), Notification(5, 3, Bytes(&[kind::OPEN]))),
        established("100-keepalives-in-one-segment", "RFC 4271 §4.4", |_| keepalive().repeat(100), Ignore),
    ]
}
