//! Pools as bars: how much of each is in use.

use fairway_show::overview::{FamilyCount, Overview, PoolRow};
use serde::Serialize;

/// A full bar has so many parts.
const PARTS: u64 = 1_000;
/// From here on a pool is nearly empty of free addresses.
const SCARCE_PARTS: u64 = 900;

#[derive(Serialize)]
pub(super) struct Pools<'a> {
    rows: Vec<Pool<'a>>,
}

#[derive(Serialize)]
struct Pool<'a> {
    name: &'a str,
    addresses: &'a [String],
    services: u64,
    auto_assign: bool,
    bars: Vec<Bar>,
}

/// One family of a pool.
#[derive(Serialize)]
struct Bar {
    family: &'static str,
    used: u64,
    total: u64,
    /// Of [`PARTS`].
    width: u64,
    percent: u64,
    is_scarce: bool,
}

impl<'a> Pools<'a> {
    pub(super) fn of(overview: &'a Overview) -> Self {
        Self { rows: overview.pools.iter().map(pool).collect() }
    }
}

fn pool(row: &PoolRow) -> Pool<'_> {
    let FamilyCount { ipv4, ipv6 } = row.used;
    let bars = [("IPv4", ipv4, row.total.ipv4), ("IPv6", ipv6, row.total.ipv6)];
    Pool {
        name: &row.name,
        addresses: &row.addresses,
        services: row.services,
        auto_assign: row.auto_assign,
        bars: bars
            .into_iter()
            .filter_map(|(family, used, total)| bar(family, used, total))
            .collect(),
    }
}

/// `None` of a family without addresses.
fn bar(family: &'static str, used: u64, total: u64) -> Option<Bar> {
    let parts =
        u128::from(used).saturating_mul(u128::from(PARTS)).checked_div(u128::from(total))?;
    // What is in use can be seen, however large the pool is.
    let width =
        u64::try_from(parts).unwrap_or(PARTS).clamp(u64::from(used > 0).saturating_mul(4), PARTS);
    Some(Bar {
        family,
        used,
        total,
        width,
        percent: width.div_ceil(10),
        is_scarce: width >= SCARCE_PARTS,
    })
}
