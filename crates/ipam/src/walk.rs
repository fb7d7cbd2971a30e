//! Which block of a pool is free, from where a node begins to look.
//!
//! Nodes begin at different places, so that they rarely want the same block at once. A walk goes from one range of occupied
//! addresses to the next, never block by block: a pool may have 2^74 of them. Knows no store.

use std::net::IpAddr;

use fairway_ground::Prefix;

/// Ranges of addresses of one family: in order, and none touches the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ranges(Vec<(u128, u128)>);

impl Ranges {
    /// All addresses of these prefixes, which are of one family.
    pub(crate) fn new(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        Self::merged(prefixes.into_iter().map(range).collect())
    }

    fn merged(mut ranges: Vec<(u128, u128)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, before)) if first <= before.saturating_add(1) => {
                    *before = last.max(*before);
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// These, too.
    pub(crate) fn add(&mut self, prefix: Prefix) {
        let mut ranges = std::mem::take(&mut self.0);
        ranges.push(range(prefix));
        *self = Self::merged(ranges);
    }

    /// The last address of a range that has one of these.
    fn overlapping(&self, first: u128, last: u128) -> Option<u128> {
        let next = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(next).filter(|(begin, _)| *begin <= last).map(|(_, end)| *end)
    }

    /// The last address of the range that has all of these.
    fn covering(&self, first: u128, last: u128) -> Option<u128> {
        let next = self.0.partition_point(|(_, end)| *end < first);
        let found = self.0.get(next).filter(|(begin, end)| *begin <= first && last <= *end);
        found.map(|(_, end)| *end)
    }

    /// Whether they have all addresses of this prefix.
    pub(crate) fn cover(&self, prefix: Prefix) -> bool {
        let (first, last) = range(prefix);
        self.covering(first, last).is_some()
    }

    /// How many addresses they have.
    pub(crate) fn address_count(&self) -> u128 {
        let count = |(first, last): &(u128, u128)| last.saturating_sub(*first).saturating_add(1);
        self.0.iter().map(count).fold(0, u128::saturating_add)
    }

    /// Whether they have this address.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        let number = number(address);
        self.covering(number, number).is_some()
    }
}

/// The first block that shares no address with `blocks`, and has one that is not in `reserved`.
pub(crate) fn first_free(
    pool: Prefix,
    block_length: u8,
    host: &str,
    blocks: &Ranges,
    reserved: &Ranges,
) -> Option<Prefix> {
    let (base, _) = range(pool);
    let size = power(pool.family().address_bits().checked_sub(block_length)?);
    let count = power(block_length.checked_sub(pool.length())?);
    let mut index = u128::from(fnv1(host)) % count;
    let mut walked: u128 = 0;
    while walked < count {
        let first = base.saturating_add(index.saturating_mul(size));
        let last = first.saturating_add(size.saturating_sub(1));
        let in_pool = |address: u128| address.saturating_sub(base) / size;
        let next = if let Some(end) = blocks.overlapping(first, last) {
            in_pool(end.max(last)).saturating_add(1)
        } else if let Some(end) = reserved.covering(first, last) {
            in_pool(end.saturating_add(1)).max(index.saturating_add(1))
        } else {
            return Prefix::new(address(first, pool), block_length).ok();
        };
        walked = walked.saturating_add(next.min(count).saturating_sub(index));
        index = if next >= count { 0 } else { next };
    }
    None
}

/// The blocks of this length in a prefix, at most `count_max`; `None` if there are more, or the prefix is longer.
pub(crate) fn blocks_in(prefix: Prefix, block_length: u8, count_max: u32) -> Option<Vec<Prefix>> {
    let (base, _) = range(prefix);
    let size = power(prefix.family().address_bits().checked_sub(block_length)?);
    let count = power(block_length.checked_sub(prefix.length())?);
    let count = u32::try_from(count).ok().filter(|it| *it <= count_max)?;
    let block = |index: u32| {
        let first = base.saturating_add(u128::from(index).saturating_mul(size));
        Prefix::new(address(first, prefix), block_length).ok()
    };
    Some((0..count).filter_map(block).collect())
}

/// How many addresses a prefix has; [`u128::MAX`] for all of IPv6.
pub(crate) fn address_count(prefix: Prefix) -> u128 {
    power(prefix.family().address_bits().saturating_sub(prefix.length()))
}

fn range(prefix: Prefix) -> (u128, u128) {
    (number(prefix.address()), number(prefix.last_address()))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => u128::from(it.to_bits()),
        IpAddr::V6(it) => it.to_bits(),
    }
}

/// The address of the same family as the prefix.
fn address(number: u128, like: Prefix) -> IpAddr {
    match like.address() {
        // Numbers of blocks in an IPv4 pool fit.
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

fn power(exponent: u8) -> u128 {
    1_u128.checked_shl(exponent.into()).unwrap_or(u128::MAX)
}

/// The 64-bit FNV-1 hash of a name.
fn fnv1(name: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    name.bytes().fold(BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(byte))
}
