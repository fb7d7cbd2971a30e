//! What both sides advertise about restarts in their OPENs, and what follows from it (RFC 4724 §3,
//! RFC 8538 §2, RFC 9494 §3.1).
//!
//! Knows no session: [`super::Peer`] decides which routes are kept for how long.

use std::time::Duration;

use crate::wire::{Capability, KeptFamily, LongLivedOffer, Open, RestartOffer};
use fairway_ground::{AddressFamily, FamilySet, GracefulRestart, PerFamily};
use fairway_seam::PeerConfig;

/// What we advertise about our own restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnRestart {
    /// R: we have just restarted, and the neighbour should not wait for our End-of-RIB markers.
    pub restarted: bool,
    /// F: the destinations of our routes were forwarded to all the time.
    pub forwarding: bool,
}

/// What a session agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restarts {
    /// Families for which the neighbour keeps our routes while we are away.
    pub kept_for_us: FamilySet,
    /// Families for which we keep its routes while it is away.
    pub kept_for_it: FamilySet,
    /// Families for which it advertises that it forwarded all the time.
    pub forwarding: FamilySet,
    /// It advertises that it has just restarted.
    pub restarted: bool,
    /// It sends End-of-RIB markers, whatever it advertises for its routes.
    pub sends_markers: bool,
    /// A NOTIFICATION other than a Hard Reset keeps the routes (RFC 8538).
    pub notifications: bool,
    /// How long it may be away.
    pub restart_time: Duration,
    /// How long its routes may be used after that (RFC 9494).
    pub long_lived: PerFamily<Option<Duration>>,
    /// Families for which it advertises in the long-lived capability that it forwarded all the time.
    pub long_lived_forwarding: FamilySet,
}

/// What we offer. Where no route outlives a restart, it only promises End-of-RIB markers.
pub(super) fn offers(config: &PeerConfig, own: OwnRestart) -> Vec<Capability> {
    let Some(wanted) = config.graceful_restart else { return vec![Capability::end_of_rib()] };
    let kept =
        |family: AddressFamily| KeptFamily { family: family.into(), forwarding: own.forwarding };
    let restart = Capability::GracefulRestart(RestartOffer {
        restarted: own.restarted,
        notifications: true,
        restart_time_seconds: wanted.restart_time_seconds(),
        families: config.families.iter().map(kept).collect(),
    });
    let long_lived = long_lived_offers(config, wanted, own);
    let long_lived =
        (!long_lived.is_empty()).then_some(Capability::LongLivedGracefulRestart(long_lived));
    [restart].into_iter().chain(long_lived).collect()
}

fn long_lived_offers(
    config: &PeerConfig,
    wanted: GracefulRestart,
    own: OwnRestart,
) -> Vec<LongLivedOffer> {
    let stale_time_seconds = wanted.long_lived_stale_time_seconds();
    let families = config.families.iter().filter(|_| stale_time_seconds > 0);
    let offer = |family: AddressFamily| LongLivedOffer {
        family: family.into(),
        forwarding: own.forwarding,
        stale_time_seconds,
    };
    families.map(offer).collect()
}

/// Combines the neighbour's OPEN and our settings, for a session that carries `families`.
pub(super) fn agree(config: &PeerConfig, families: FamilySet, theirs: &Open) -> Restarts {
    let offer = theirs.capabilities.iter().find_map(|capability| match capability {
        Capability::GracefulRestart(offer) => Some(offer),
        _ => None,
    });
    let Some(offer) = offer else { return Restarts::default() };
    let sends_markers = Restarts { sends_markers: true, ..Restarts::default() };
    let Some(ours) = config.graceful_restart else { return sends_markers };
    let kept_for_it: FamilySet =
        families.iter().filter(|family| offer.of(*family).is_some()).collect();
    let forwards = |family: &AddressFamily| offer.of(*family).is_some_and(|it| it.forwarding);
    Restarts {
        kept_for_us: families,
        kept_for_it,
        forwarding: kept_for_it.iter().filter(forwards).collect(),
        restarted: offer.restarted,
        notifications: offer.notifications,
        restart_time: Duration::from_secs(offer.restart_time_seconds.into()),
        long_lived: long_lived(ours, families, theirs),
        long_lived_forwarding: long_lived_forwarding(families, theirs),
        ..sends_markers
    }
}

/// The neighbour's time for each family, and never longer than ours: the operator may bound it
/// (RFC 9494 §4.2).
fn long_lived(
    ours: GracefulRestart,
    families: FamilySet,
    theirs: &Open,
) -> PerFamily<Option<Duration>> {
    let mut times: PerFamily<Option<Duration>> = PerFamily::default();
    for offer in their_long_lived_offers(theirs) {
        let Some(family) = offer.family.family().filter(|it| families.contains(*it)) else {
            continue;
        };
        let seconds = offer.stale_time_seconds.min(ours.long_lived_stale_time_seconds());
        if seconds > 0 {
            times.of_mut(family).get_or_insert(Duration::from_secs(seconds.into()));
        }
    }
    times
}

fn long_lived_forwarding(families: FamilySet, theirs: &Open) -> FamilySet {
    let forwarding = their_long_lived_offers(theirs).filter(|offer| offer.forwarding);
    forwarding.filter_map(|it| it.family.family()).filter(|it| families.contains(*it)).collect()
}

fn their_long_lived_offers(theirs: &Open) -> impl Iterator<Item = &LongLivedOffer> {
    let offers = theirs.capabilities.iter().filter_map(|capability| match capability {
        Capability::LongLivedGracefulRestart(offers) => Some(offers),
        _ => None,
    });
    offers.flatten()
}

/// Whether long-lived stale routes may be advertised to a neighbour that offered `capabilities`.
/// Without the other capability the long-lived one means nothing (RFC 9494 §4.5).
pub(super) fn takes_long_lived(capabilities: &[Capability]) -> bool {
    let restarts = capabilities.iter().any(|it| matches!(it, Capability::GracefulRestart(_)));
    restarts && capabilities.iter().any(|it| matches!(it, Capability::LongLivedGracefulRestart(_)))
}

#[cfg(test)]
mod tests {
    use super::super::negotiate::our_open;
    use super::*;
    use crate::example::Example as _;

    const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;

    fn enabled(number: u8, restart: u16, long_lived: u32) -> PeerConfig {
        let graceful_restart = GracefulRestart::new(restart, long_lived);
        assert!(graceful_restart.is_some());
        PeerConfig { graceful_restart, ..PeerConfig::example(number) }
    }

    fn agreed(ours: &PeerConfig, theirs: &PeerConfig, own: OwnRestart) -> Restarts {
        agree(ours, ours.families.intersection(theirs.families), &our_open(theirs, own))
    }

    //= RFC 4724 §3 SHOULD: the capability is offered without a family by who only sends End-of-RIB markers.
    #[test]
    fn without_the_setting_only_markers_are_promised() {
        let none = OwnRestart::default();
        assert_eq!(offers(&PeerConfig::example(1), none), [Capability::end_of_rib()]);
        let plain = agreed(&enabled(1, 120, 0), &PeerConfig::example(2), none);
        assert_eq!((plain.kept_for_it, plain.kept_for_us), (FamilySet::EMPTY, FamilySet::BOTH));
        assert!(plain.sends_markers && !plain.notifications);
        let off = agreed(&PeerConfig::example(1), &enabled(2, 120, 60), none);
        assert_eq!(off, Restarts { sends_markers: true, ..Restarts::default() });
        let silent = Open { capabilities: Vec::new(), ..our_open(&enabled(2, 1, 1), none) };
        assert_eq!(agree(&enabled(1, 1, 1), FamilySet::BOTH, &silent), Restarts::default());
    }

    #[test]
    fn what_the_neighbour_says_of_itself_counts_for_the_families_of_the_session() {
        let mut theirs = enabled(2, 60, 0);
        theirs.families = FamilySet::only(IPV4);
        let own = OwnRestart { restarted: true, forwarding: true };
        let restarts = agreed(&enabled(1, 120, 300), &theirs, own);
        let expected = Restarts {
            kept_for_us: FamilySet::only(IPV4),
            kept_for_it: FamilySet::only(IPV4),
            forwarding: FamilySet::only(IPV4),
            restarted: true,
            sends_markers: true,
            notifications: true,
            restart_time: Duration::from_secs(60),
            long_lived: PerFamily::default(),
            long_lived_forwarding: FamilySet::EMPTY,
        };
        assert_eq!(restarts, expected);
        let cold = agreed(&enabled(1, 120, 0), &theirs, OwnRestart::default());
        assert_eq!((cold.forwarding, cold.restarted), (FamilySet::EMPTY, false));
    }

    #[test]
    fn nobody_keeps_routes_for_longer_than_either_side_wants() {
        for (ours, theirs, agreed_seconds) in
            [(300, 600, Some(300)), (600, 300, Some(300)), (0, 300, None), (300, 0, None)]
        {
            let restarts =
                agreed(&enabled(1, 120, ours), &enabled(2, 120, theirs), OwnRestart::default());
            let time = agreed_seconds.map(Duration::from_secs);
            assert_eq!(restarts.long_lived, PerFamily { ipv4: time, ipv6: time });
        }
    }
}
