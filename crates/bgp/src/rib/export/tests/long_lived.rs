//! Long-lived stale routes (RFC 9494 §4.3, §4.6): which peers are sent them, and how?

use super::*;

/// What is sent of a route with LLGR_STALE that was received from a peer of kind `from`.
fn told_stale(to: PeerKind, from: PeerKind, takes_long_lived: bool) -> Option<Arc<PathAttributes>> {
    let mut config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    if to == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
    exporter.0 = exporter.0.take_long_lived(takes_long_lived);
    let stale =
        with(heard(from), |it| it.communities = vec![Community(1), Community::LLGR_STALE].into());
    let prefix = "203.0.113.0/24".parse().unwrap();
    let made = exporter.pass_on(prefix, &stale).unwrap();
    assert_eq!(exporter.0.policy.passes_on(prefix, &stale), made.is_some());
    made
}

//= RFC 9494 §4.3 SHOULD NOT: a route with LLGR_STALE is told to a neighbour that did not offer the capability.
//= RFC 9494 §4.3 MUST NOT: LLGR_STALE is removed when a route is passed on.
#[test]
fn other_systems_are_told_only_if_they_know_what_it_means() {
    let (to, from) = (PeerKind::External, PeerKind::Internal);
    assert_eq!(told_stale(to, from, false), None);
    let told = told_stale(to, from, true).unwrap();
    assert_eq!(told.communities, [Community(1), Community::LLGR_STALE]);
}

//= RFC 9494 §4.6 MAY: inside the AS a route with LLGR_STALE is told to a neighbour that did not offer the capability.
//= RFC 9494 §4.6 MUST: such a neighbour is told the route with NO_EXPORT.
//= RFC 9494 §4.6 MUST: such a neighbour is told the route with a LOCAL_PREF of zero.
//= RFC 9494 §4.6 MUST: such a neighbour is an internal one.
#[test]
fn inside_the_as_those_who_do_not_know_are_told_in_words_that_they_do() {
    let (to, from) = (PeerKind::Internal, PeerKind::External);
    let told = told_stale(to, from, false).unwrap();
    assert_eq!(told.communities, [Community(1), Community::LLGR_STALE, Community::NO_EXPORT]);
    assert_eq!(told.local_pref, Some(0));
    let knows = told_stale(to, from, true).unwrap();
    assert_eq!(knows.communities, [Community(1), Community::LLGR_STALE]);
    assert_eq!(knows.local_pref, Some(LOCAL_PREF_DEFAULT));
    // Other routes are not touched.
    assert_eq!(told_of_fresh(), Some(LOCAL_PREF_DEFAULT));
}

fn told_of_fresh() -> Option<u32> {
    told(PeerKind::Internal, &heard(PeerKind::External)).unwrap().local_pref
}
