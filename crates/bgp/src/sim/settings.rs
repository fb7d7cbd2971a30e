//! The settings of two speakers that match, drawn from a seed.

use std::time::Duration;

use crate::example::Example as _;
use fairway_ground::{
    AddressFamily, FamilySet, GracefulRestart, HoldTime, RemoteAs, Rng, Role, RouterId,
};
use fairway_seam::PeerConfig;

/// The settings of speaker `number` (1 or 2) with an identifier of its own.
pub(super) fn speaker(number: u8, router_id: u32) -> PeerConfig {
    let example = PeerConfig::example(number);
    PeerConfig {
        router_id: RouterId::new(router_id).unwrap_or(example.router_id),
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        ..example
    }
}

/// eBGP or iBGP, identifiers in both orders and equal ones (RFC 6286), hold times of 0, 3 and 9 s,
/// OPEN at once or delayed, roles that match, refreshes with and without marks. Equal identifiers
/// within one AS never make a session.
pub(super) fn drawn(rng: &mut Rng) -> [PeerConfig; 2] {
    let mut one_of = |count: u64| usize::try_from(rng.next_u64() % count).unwrap_or(0);
    let internal = one_of(3) == 0;
    let identifiers: &[(u32, u32)] = &[(1, 2), (2, 1), (7, 7)];
    let (left, right) = identifiers[one_of(if internal { 2 } else { 3 })];
    let mut settings = [speaker(1, left), speaker(2, right)];
    if internal {
        let [left, right] = &mut settings;
        right.local_asn = left.local_asn;
        right.remote_as = RemoteAs::Asn(left.local_asn);
        left.remote_as = RemoteAs::Asn(left.local_asn);
    }
    let role = Role::ALL.get(one_of(10)).copied();
    let counterpart = role.map(Role::counterpart).filter(|_| one_of(2) == 0);
    settings[0].role = role;
    settings[1].role = counterpart;
    for config in &mut settings {
        config.enhanced_refresh = one_of(2) == 0;
        let seconds = [0, 3, 9, 9][one_of(4)];
        config.hold_time = HoldTime::from_seconds(seconds).unwrap_or_default();
        let delays_ms = [None, None, Some(200), Some(3000)];
        config.delay_open_time = delays_ms[one_of(4)].map(Duration::from_millis);
    }
    settings
}

/// The same, nearly all of them with graceful restart, and restart times that are shorter than what
/// goes wrong, and longer.
pub(super) fn drawn_with_restarts(rng: &mut Rng) -> [PeerConfig; 2] {
    let mut settings = drawn(rng);
    for config in &mut settings {
        let mut one_of = |count: u64| usize::try_from(rng.next_u64() % count).unwrap_or(0);
        let seconds = [2, 8, 20, 120][one_of(4)];
        let wanted = GracefulRestart::new(seconds, 0);
        config.graceful_restart = wanted.filter(|_| one_of(8) > 0);
    }
    settings
}
