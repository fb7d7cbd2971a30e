//! What do a broken NOTIFICATION and a broken ROUTE-REFRESH lead to? A NOTIFICATION is never
//! answered, however broken (RFC 4271 §6.4).

use crate::bytes::{notification, route_refresh};
use crate::entry::{
    Action::{Ignore, Notification, Silence},
    Data::Message,
    Entry, Manner,
    Moment::{BehindOpen, InsteadOfOpen},
    Verdict::Notified,
    entry, established,
};

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        established("shutdown-text-past-its-end", "CVE-2019-16159", |_| notification(6, 2, &[255, b'r', b'a', b'c', b'k']), Silence),
        established("shutdown-text-for-the-terminal", "RFC 9003 §2", |_| notification(6, 2, b"\x0a\x1b[2J\x07\xff\xfe\n\r\0"), Silence),
        established("codes-that-have-no-name", "CVE-2018-5380", |_| notification(255, 255, &[]), Silence),
        established("notification-of-4096-octets", "bgp_boofuzzer; CVE-2018-5378", |_| notification(3, 5, &[0xA5; 4075]), Silence),
        established("half-a-capability-in-a-notification", "RFC 5492 §5", |_| notification(2, 7, &[1, 200, 0]), Silence),
        established("hard-reset-with-nothing-inside", "RFC 8538 §3", |_| notification(6, 9, &[]), Silence),
        //+ RFC 4271 §6.4: a NOTIFICATION is answered with a NOTIFICATION.
        established("notifications-and-an-update", "RFC 4271 §6.4", |s| [notification(6, 4, &[]), notification(1, 1, &[]), s.update().bytes()].concat(), Silence),
        established("notification-and-a-reset", "CVE-2022-37035", |_| notification(6, 4, &[]), Silence).sent(Manner::ThenReset),
        entry(InsteadOfOpen, "notification-for-open", "RFC 4271 §8.2.2", |_| notification(2, 5, &[]), Silence).about(&[]),
        entry(BehindOpen, "notification-behind-open", "RFC 4271 §8.2.2", |_| notification(6, 7, &[]), Silence).about(&[]),
        established("refresh-of-three-octets", "RFC 2918 §3. Ours: 7/1 of RFC 7313 §5 for any subtype", |_| crate::bytes::message(5, &[0, 1, 0]), Notification(7, 1, Message)).bird(Notified(1, 2), "keeps 7/1 for the two subtypes that RFC 7313 names"),
        //+ RFC 7313 §5: a ROUTE-REFRESH of another length is answered with 7/1.
        //+ RFC 7313 §5: the data of 7/1 is the whole ROUTE-REFRESH message.
        established("end-of-refresh-of-five-octets", "RFC 7313 §5", |_| route_refresh(1, 2, 1, &[0]), Notification(7, 1, Message)),
        established("route-filter-cut-short", "CVE-2023-41360; FRR issue 22828 of 2026", |_| route_refresh(1, 0, 1, &[1, 64, 0, 200, 0x80]), Notification(7, 1, Message)),
        //+ RFC 2918 §4: a ROUTE-REFRESH of a family that we did not offer is ignored.
        established("refresh-of-another-family", "RFC 2918 §4", |_| route_refresh(25, 0, 70, &[]), Ignore),
        //+ RFC 7313 §5: a ROUTE-REFRESH of another subtype than 0, 1 and 2 is ignored.
        established("refresh-of-subtype-255", "RFC 7313 §5", |_| route_refresh(1, 255, 1, &[]), Ignore),
        established("end-of-refresh-without-a-begin", "RFC 7313 §4", |_| route_refresh(1, 2, 1, &[]), Ignore),
        established("refresh-storm", "CVE-2024-55553; FRR issue 22352 of 2026", |_| route_refresh(1, 0, 1, &[]).repeat(1000), Ignore),
    ]
}
