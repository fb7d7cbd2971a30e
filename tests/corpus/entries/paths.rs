//! What is wrong with, or only odd in, an AS path?

use crate::bytes::{
    AS_TRANS, CONFED_SEQUENCE, SEQUENCE, SET, TRANSITIVE, WELL_KNOWN, as_path, attribute,
    old_segment, segment,
};
use crate::entry::{
    Action::{Accept, Discard, Exclude, Withdraw},
    Entry, Kind, OUR_AS, Offer, PEER_AS, SECOND_ORIGIN, Scene,
    Verdict::Up,
    established,
};

const PEER: u32 = PEER_AS as u32;
const ORIGIN: u32 = SECOND_ORIGIN as u32;
/// An AS number that needs four octets.
const WIDE: u32 = 4_200_000_000;
/// The most hops that fit into a message with one prefix and the other mandatory attributes. There
/// is no room for one more, which a speaker that passes it on must add.
const HOPS_MAX: u32 = 1011;

/// The UPDATE with an AS_PATH of these segments.
fn along(scene: &Scene, segments: &[Vec<u8>]) -> Vec<u8> {
    scene.update().swap(as_path(segments)).bytes()
}

fn good() -> Vec<u8> {
    segment(SEQUENCE, &[PEER, ORIGIN])
}

/// `hops` in segments of 255, without LOCAL_PREF: it must fit.
fn long(scene: &Scene, hops: u32) -> Vec<u8> {
    let asns: Vec<u32> = (0..hops).map(|hop| PEER + 100 + hop).collect();
    let asns = [&[PEER], &asns[1..]].concat();
    let segments: Vec<_> = asns.chunks(255).map(|part| segment(SEQUENCE, part)).collect();
    scene.update().without(5).swap(as_path(&segments)).bytes()
}

/// `hops` of two octets each.
fn long_old(scene: &Scene, hops: usize) -> Vec<u8> {
    let asns = vec![PEER_AS; hops];
    let segments: Vec<_> = asns.chunks(255).map(|part| old_segment(SEQUENCE, part)).collect();
    scene.update().swap(as_path(&segments)).bytes()
}

/// From an old speaker: a path with a last hop that did not fit, and `as4_path` to correct that.
fn mended(scene: &Scene, as4_path: &[u8], first: bool) -> Vec<u8> {
    let trans = u16::try_from(AS_TRANS).unwrap_or(0);
    let update = scene.update().swap(as_path(&[old_segment(SEQUENCE, &[PEER_AS, trans])]));
    let as4_path = attribute(TRANSITIVE, 17, as4_path);
    if first { update.first(as4_path).bytes() } else { update.with(as4_path).bytes() }
}

#[rustfmt::skip]
pub(super) fn entries() -> Vec<Entry> {
    let old = |entry: Entry| entry.offering(Offer::Old);
    vec![
        established("segment-past-the-path", "RFC 7606 §7.2", |s| along(s, &[vec![SEQUENCE, 9, 0, 0, 0xFB, 0xF5]]), Withdraw),
        established("segment-of-no-as", "RFC 7606 §7.2", |s| along(s, &[good(), vec![SEQUENCE, 0]]), Withdraw),
        established("stray-octet-behind-a-segment", "RFC 7606 §7.2", |s| along(s, &[good(), vec![SEQUENCE]]), Withdraw),
        established("segment-of-type-5", "RFC 7606 §7.2", |s| along(s, &[segment(5, &[PEER, ORIGIN])]), Withdraw),
        //= RFC 7607 §2 MUST NOT: a route with AS 0 is passed on.
        established("as-0-in-the-path", "RFC 7607 §2", |s| along(s, &[segment(SEQUENCE, &[PEER, 0, ORIGIN])]), Withdraw).bird(Up { present: true }, "2.0.12 does not look for AS 0"),
        //+ RFC 9774 §3: an AS_SET in AS_PATH withdraws the routes.
        established("as-set", "RFC 9774 §3", |s| along(s, &[segment(SEQUENCE, &[PEER]), segment(SET, &[1, ORIGIN])]), Withdraw).bird(Up { present: true }, "2.0.12 is older than RFC 9774"),
        //+ RFC 5065 §5: a confederation segment from outside one is a malformed AS_PATH.
        established("confederation-of-a-stranger", "RFC 5065 §5.3", |s| along(s, &[segment(CONFED_SEQUENCE, &[64512]), good()]), Withdraw),
        established("empty-path", "CVE-2026-49838; RFC 4271 §6.3", |s| along(s, &[]), Exclude).internal(Accept).shows_path("Local").bird_on(Kind::External, Up { present: true }, "asks for the first AS only where it is told to"),
        //+ RFC 7606 §7.2: a path that does not begin with the AS of the external peer withdraws the route.
        established("first-as-of-somebody-else", "RFC 4271 §6.3", |s| along(s, &[segment(SEQUENCE, &[64999, ORIGIN])]), Exclude).internal(Accept).shows_path("64999 64520").bird_on(Kind::External, Up { present: true }, "asks for the first AS only where it is told to"),
        //+ RFC 4271 §9.1.2: a route with our own AS in its path is not chosen.
        established("our-own-as-in-the-path", "RFC 4271 §9.1.2", |s| along(s, &[segment(SEQUENCE, &[PEER, OUR_AS.into(), ORIGIN])]), Exclude),
        established("numbers-of-two-octets", "RFC 6793 §4.1", |s| along(s, &[old_segment(SEQUENCE, &[PEER_AS, SECOND_ORIGIN])]), Withdraw),
        established("as-trans-between-new-speakers", "RFC 6793 §9. Ours: not looked at", |s| along(s, &[segment(SEQUENCE, &[PEER, AS_TRANS])]), Accept).shows_path("64501 23456"),
        established("last-as-numbers", "RFC 7300 §2. Ours: not looked at", |s| along(s, &[segment(SEQUENCE, &[PEER, 65535, u32::MAX])]), Accept).shows_path("64501 65535 4294967295"),
        established("path-of-765-hops", "2009-02-16 incident", |s| long(s, 765), Accept).of_a_long_path(),
        established("path-that-fits-only-on-the-way-in", "CVE-2017-16227; RFC 4271 §4", |s| long(s, HOPS_MAX), Accept).of_a_long_path().too_long_to_tell(),
        old(established("path-of-1950-hops-of-two-octets", "CVE-2026-49943, CVE-2018-12066", |s| long_old(s, 1950), Accept)).of_a_long_path().too_long_to_tell(),
        //+ RFC 6793 §4.2.3: AS_PATH and AS4_PATH become one path.
        old(established("as4-path-merged", "RFC 6793 §4.2.3", |s| mended(s, &segment(SEQUENCE, &[WIDE]), false), Accept)).shows_path("64501 4200000000"),
        old(established("as4-path-before-the-path", "RFC 6793 §4.2.3", |s| mended(s, &segment(SEQUENCE, &[WIDE]), true), Accept)).shows_path("64501 4200000000"),
        //+ RFC 6793 §4.2.3: an AS4_PATH longer than AS_PATH is ignored.
        old(established("as4-path-longer-than-the-path", "RFC 6793 §4.2.3", |s| mended(s, &segment(SEQUENCE, &[1, 2, WIDE]), false), Accept)).shows_path("64501 23456"),
        old(established("as4-path-of-one-octet", "RFC 6793 §6", |s| mended(s, &[0], true), Discard(&[17]))).shows_path("64501 23456"),
        //= RFC 5065 §5 MUST NOT: confederation segments are sent to peers outside a confederation.
        old(established("confederation-in-as4-path", "2008-2009 incidents; RFC 6793 §6", |s| mended(s, &[segment(CONFED_SEQUENCE, &[64512]), segment(SEQUENCE, &[WIDE])].concat(), false), Accept)).shows_path("64501 4200000000"),
        established("as4-path-from-a-new-speaker-first", "CVE-2026-41643", |s| s.update().first(attribute(WELL_KNOWN, 17, &[0])).bytes(), Discard(&[17])).bird(Up { present: false }, "looks at the flags before it drops the attribute"),
        established("confederation-in-as4-path-from-a-new-speaker", "2008-2009 incidents; RFC 6793 §4.1", |s| s.update().with(attribute(TRANSITIVE, 17, &segment(CONFED_SEQUENCE, &[64512]))).bytes(), Discard(&[17])),
    ]
}
