//! The numbers of a Statistics Report about one neighbour (RFC 7854 §4.8, RFC 8671 §6.2), from its view. Used by the thread.

use fairway_bmp::message::Statistic;
use fairway_ground::{AddressFamily, PerFamily};
use fairway_seam::PeerView;

pub(super) fn numbers(peer: &PeerView) -> Vec<Statistic> {
    // A counter of 32 bits begins again at 0.
    let u32_of = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let rejected: u64 = peer.refusals.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let total = |counts: &PerFamily<u32>| {
        AddressFamily::ALL.iter().map(|it| u64::from(*counts.of(*it))).fold(0, u64::saturating_add)
    };
    let mut numbers = vec![
        Statistic::Rejected(u32_of(rejected)),
        Statistic::AdjRibIn(total(&peer.prefixes_accepted)),
        Statistic::TreatedAsWithdrawn(u32_of(peer.malformed.treated_as_withdraw)),
        Statistic::AdjRibOut(total(&peer.prefixes_advertised)),
    ];
    let families = peer.session.as_ref().map(|it| it.families);
    let families =
        AddressFamily::ALL.into_iter().filter(|it| families.is_some_and(|all| all.contains(*it)));
    for family in families {
        let (afi, safi) = (family.afi(), family.safi());
        numbers.push(Statistic::AdjRibInOf(afi, safi, (*peer.prefixes_accepted.of(family)).into()));
        numbers.push(Statistic::AdjRibOutOf(
            afi,
            safi,
            (*peer.prefixes_advertised.of(family)).into(),
        ));
    }
    numbers
}
