//! `show bgp ipv4|ipv6 unicast neighbors PEER prefix-counts`: how many paths of a neighbour are in each
//! table.
//!
//! Not all routes that `toReceive` refuses are kept, so `Adj-in` counts the accepted ones.

use std::fmt::Write;

use fairway_ground::AddressFamily;
use fairway_seam::DecisionStep;

use super::family_key::family_key;
use super::object::Object;
use super::peer_routes::warning;
use super::{ShowError, Snapshot, neighbor};

/// FRR's names, and the numbers behind them.
struct Counts {
    peer: String,
    accepted: usize,
    rows: [(&'static str, usize); 10],
}

fn counts(
    snapshot: &Snapshot<'_>,
    wanted: &str,
    family: AddressFamily,
) -> Result<Counts, ShowError> {
    let peers = neighbor::find(snapshot, Some(wanted));
    let peer = *peers.first().ok_or(ShowError::NoSuchNeighbor)?;
    if !peer.config.families.contains(family) {
        return Err(ShowError::NoSuchFamily);
    }
    let paths = || {
        let learned = snapshot.bgp.learned.iter().filter(|it| it.prefix.family() == family);
        learned.filter(|it| it.path.source.key == peer.config.key)
    };
    let accepted = paths().count();
    let valid = paths().filter(|it| it.lost_at != Some(DecisionStep::NextHop)).count();
    let best = paths().filter(|it| it.lost_at.is_none()).count();
    let rows = [
        ("Adj-in", accepted),
        ("Damped", 0),
        ("Removed", 0),
        ("History", 0),
        ("Stale", 0),
        ("Valid", valid),
        ("All RIB", accepted),
        ("PfxCt counted", accepted),
        ("PfxCt Best Selected", best),
        ("Useable", valid),
    ];
    Ok(Counts { peer: peer.config.key.to_string(), accepted, rows })
}

/// One line per counter.
pub(super) fn text(
    snapshot: &Snapshot<'_>,
    wanted: &str,
    family: AddressFamily,
) -> Result<String, ShowError> {
    let Counts { peer, accepted, rows } = counts(snapshot, wanted, family)?;
    let mut text = format!(
        "Prefix counts for {peer}, {family}\nPfxCt: {accepted}\n\nCounts from RIB table walk:\n\n"
    );
    for (name, count) in rows {
        let _ = writeln!(text, "{name:>20}: {count:<10}");
    }
    Ok(text)
}

/// The same as an object.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str, family: AddressFamily) -> Object {
    match counts(snapshot, wanted, family) {
        Err(error) => warning(&error),
        Ok(Counts { peer, accepted, rows }) => {
            let rows = rows.into_iter().map(|(name, count)| (name.to_owned(), count.into()));
            Object::new()
                .field("prefixCountsFor", peer)
                .field("multiProtocol", family_key(family))
                .field("pfxCounter", accepted)
                .field("ribTableWalkCounters", rows.collect::<Object>())
        }
    }
}
