//! What is wrong with the OPEN, or odd in its capabilities? Capabilities that we do not know, or that cannot
//! be parsed, are ignored (RFC 5492 §3): one of them is no reason to do without a session.

use crate::bytes::{AS_TRANS, capability, four_octet_as, long_parameter, multiprotocol, parameter};
use crate::entry::{
    Action::{self, Accept, Notification},
    Data::Bytes,
    Entry,
    Moment::InsteadOfOpen,
    Offer, Scene,
    Verdict::{Notified, Up},
    entry,
};

/// The length of a full OPEN, in octets.
const FULL: usize = 4096;

/// An OPEN is about no prefixes: those of before and after it tell whether the session is up.
fn open(
    name: &'static str,
    source: &'static str,
    bytes: fn(&Scene) -> Vec<u8>,
    action: Action,
) -> Entry {
    entry(InsteadOfOpen, name, source, bytes, action).about(&[])
}

/// The good OPEN with one more capability.
fn adding(scene: &Scene, code: u8, value: &[u8]) -> Vec<u8> {
    let mut capabilities = scene.capabilities();
    capabilities.push(capability(code, value));
    scene.open().capabilities(&capabilities).bytes()
}

/// The good OPEN with `other` in the place of its four-octet AS number.
fn numbered(scene: &Scene, other: Vec<u8>) -> Vec<u8> {
    let old = Scene { offer: Offer::Old, ..*scene };
    let mut capabilities = old.capabilities();
    capabilities.push(other);
    scene.open().capabilities(&capabilities).bytes()
}

/// What an OPEN has behind its BGP identifier.
fn behind_the_identifier(open: &[u8]) -> Vec<u8> {
    open[28..].to_vec()
}

/// An OPEN filled with unknown capabilities.
fn flood(scene: &Scene) -> Vec<u8> {
    let good = long_parameter(2, &scene.capabilities().concat());
    let begun = scene.open().extended(&[good.clone(), long_parameter(2, &[])]).bytes().len();
    let mut unknown = Vec::new();
    while FULL - begun - unknown.len() >= 8 {
        unknown.extend(capability(130, &[1, 2]));
    }
    let rest = FULL - begun - unknown.len() - 2;
    unknown.extend(capability(131, &vec![0; rest]));
    scene.open().extended(&[good, long_parameter(2, &unknown)]).bytes()
}

const MALFORMED: Action = Notification(2, 0, Bytes(&[]));
/// Why BIRD does not open a session.
const STRICT: &str = "a capability that cannot be read ends the attempt";
const WRONG_AS: Action = Notification(2, 2, Bytes(&[]));

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    vec![
        //+ RFC 4271 §6.2: another version is answered with 2/1, and the data says 4.
        open("version-5", "RFC 4271 §6.2", |s| { let mut open = s.open(); open.version = 5; open.bytes() }, Notification(2, 1, Bytes(&[0, 4]))),
        //+ RFC 4271 §6.2: an AS that is not the one that was configured is answered with Bad Peer AS, 2/2.
        open("another-as", "RFC 4271 §6.2", |s| { let mut open = s.open(); open.asn = 64999; open.raw(&behind_the_identifier(&numbered(s, four_octet_as(64999)))).bytes() }, WRONG_AS),
        //+ RFC 7607 §2: AS 0 in an OPEN is answered with Bad Peer AS, 2/2.
        open("as-0", "RFC 7607 §2", |s| { let mut open = s.open(); open.asn = 0; open.raw(&[0]).bytes() }, WRONG_AS),
        open("four-octet-as-0", "RFC 7607 §2", |s| numbered(s, four_octet_as(0)), WRONG_AS),
        //+ RFC 6793 §4.1: the AS number of the capability counts, not the field of two octets.
        open("as-numbers-that-contradict-each-other", "RFC 6793 §4.1: the capability counts", |s| numbered(s, four_octet_as(4_200_000_001)), WRONG_AS),
        open("as-trans-and-the-right-as", "RFC 6793 §9", |s| { let mut open = s.open(); open.asn = u16::try_from(AS_TRANS).unwrap_or(0); open.bytes() }, Accept),
        open("four-octet-as-of-two-octets", "CVE-2012-0255", |s| numbered(s, capability(65, &[0xFB, 0xF5])), MALFORMED),
        //+ RFC 4271 §6.2: a hold time of one or two seconds is answered with 2/6.
        open("hold-time-1", "RFC 4271 §6.2", |s| { let mut open = s.open(); open.hold_time = 1; open.bytes() }, Notification(2, 6, Bytes(&[]))),
        open("hold-time-0", "RFC 4271 §4.2", |s| { let mut open = s.open(); open.hold_time = 0; open.bytes() }, Accept),
        //+ RFC 6286 §2.2: an identifier of zero is answered with Bad BGP Identifier, 2/3.
        open("identifier-0", "RFC 6286 §2.2", |s| { let mut open = s.open(); open.router_id = [0; 4]; open.bytes() }, Notification(2, 3, Bytes(&[]))),
        //+ RFC 6286 §2.2: our own identifier from an internal peer is answered with 2/3.
        //+ RFC 6286 §2.2: our own identifier from an external peer is accepted.
        open("our-own-identifier", "RFC 6286 §2.2", |s| { let mut open = s.open(); open.router_id = s.speaker; open.bytes() }, Accept).internal(Notification(2, 3, Bytes(&[]))),
        open("identifier-of-a-multicast-group", "RFC 6286 §2.1: any number but 0", |s| { let mut open = s.open(); open.router_id = [224, 0, 0, 1]; open.bytes() }, Accept),
        //+ RFC 4271 §6.2: an unknown optional parameter is answered with 2/4.
        open("unknown-parameter", "RFC 4271 §6.2", |s| s.open().parameters(&[parameter(7, &[1])]).bytes(), Notification(2, 4, Bytes(&[]))),
        open("no-parameters", "RFC 4271 §4.2", |s| s.open().raw(&[0]).bytes(), Accept).offering(Offer::OldIpv4).offering_no_refresh(),
        open("parameters-cut-behind-their-length", "CVE-2022-43681", |s| s.open().raw(&[5]).bytes(), MALFORMED),
        open("bytes-behind-the-parameters", "RFC 4271 §4.2", |s| s.open().raw(&[behind_the_identifier(&s.open().bytes()), vec![9, 9]].concat()).bytes(), MALFORMED).bird(Up { present: true }, "does not look behind the parameters"),
        open("parameter-past-the-list", "RFC 4271 §4.2; bgp_boofuzzer", |s| s.open().raw(&[4, 2, 9, 2, 0]).bytes(), MALFORMED),
        open("capability-past-its-parameter", "CVE-2026-49837", |s| s.open().raw(&[4, 2, 2, 65, 200]).bytes(), MALFORMED),
        open("capability-without-a-length", "CVE-2022-36440", |s| s.open().raw(&[3, 2, 1, 65]).bytes(), MALFORMED),
        open("extended-marker-and-nothing", "CVE-2022-40302", |s| s.open().raw(&[255, 255]).bytes(), MALFORMED),
        open("extended-length-past-the-message", "CVE-2022-40318", |s| s.open().raw(&[255, 255, 0, 200, 2, 0, 0]).bytes(), MALFORMED),
        open("extended-parameter-past-the-list", "RFC 9072 §2", |s| s.open().raw(&[255, 255, 0, 4, 2, 0, 9, 1]).bytes(), MALFORMED),
        open("extended-form-without-need", "RFC 9072 §2", |s| s.open().extended(&[long_parameter(2, &s.capabilities().concat())]).bytes(), Accept),
        open("extended-marker-behind-a-parameter", "RFC 9072 §2", |s| s.open().parameters(&[parameter(2, &[]), parameter(255, &[])]).bytes(), Notification(2, 4, Bytes(&[]))),
        open("software-version-of-no-octet", "CVE-2025-43971", |s| adding(s, 75, &[]), Accept),
        open("software-version-past-its-end", "CVE-2023-41361", |s| adding(s, 75, &[200, b'x']), Accept),
        open("long-lived-restart-of-three-octets", "CVE-2023-31489", |s| adding(s, 71, &[0, 1, 1]), Accept).bird(Notified(2, 0), STRICT),
        open("graceful-restart-of-one-octet", "RFC 4724 §3", |s| adding(s, 64, &[0]), Accept).bird(Notified(2, 0), STRICT),
        open("route-filters-that-lie", "CVE-2012-1820", |s| adding(s, 3, &[0, 1, 0, 1, 200, 64, 3]), Accept),
        open("multiprotocol-of-three-octets", "CVE-2018-5381", |s| adding(s, 1, &[0, 1, 1]), Accept).bird(Notified(2, 0), STRICT),
        open("host-name-that-lies", "draft-walton-bgp-hostname-capability", |s| adding(s, 73, &[200, b'a']), Accept).bird(Notified(2, 0), STRICT),
        open("role-of-two-octets", "RFC 9234 §4.1", |s| adding(s, 9, &[0, 1]), Accept).bird(Notified(2, 0), STRICT),
        open("add-path-of-a-direction-of-9", "RFC 7911 §4", |s| adding(s, 69, &[0, 1, 1, 9]), Accept),
        //+ RFC 5492 §4: a capability that comes twice, word for word, is accepted.
        open("same-capability-40-times", "RFC 5492 §4", |s| s.open().capabilities(&[s.capabilities().concat(), multiprotocol(1, 1).repeat(36)]).bytes(), Accept),
        open("4096-octets-of-capabilities", "RFC 9072 §2; RFC 8654 §4", flood, Accept),
        //+ RFC 5492 §5: the data of 2/7 lists the capabilities that were missed, as an OPEN would.
        open("no-common-family", "RFC 5492 §5", |s| s.open().capabilities(&[multiprotocol(25, 70), four_octet_as(s.kind.peer_asn().into())]).bytes(), Notification(2, 7, Bytes(&[1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1]))),
    ]
}
