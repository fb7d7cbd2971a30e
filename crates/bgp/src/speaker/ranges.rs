//! Neighbours of listen ranges: from which ranges, and how many.
//!
//! Knows no socket and no session. Called by [`super::speaker`], which owns the neighbours themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{Instant, ListenRange, PeerKey, Remote};
use fairway_seam::{ListenRangeView, PeerConfig};

/// The shortest time between two log lines about a full range: connection attempts must not fill the log.
const FULL_LOG_GAP: Duration = Duration::from_secs(10);

/// All ranges by their keys.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<PeerKey, Range>);

#[derive(Debug)]
struct Range {
    config: PeerConfig,
    bounds: ListenRange,
    members: BTreeSet<PeerKey>,
    full: Full,
}

/// How many connections were refused, for the log.
#[derive(Debug, Default)]
struct Full {
    logged_at: Option<Instant>,
    unlogged: u64,
}

/// An address has joined a range, or is a neighbour of it already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// The neighbour.
    pub key: PeerKey,
    /// The range was full, and one that had sent no OPEN was given up for this one.
    pub in_place_of: Option<Refused>,
}

/// Why an address does not join a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It was removed meanwhile.
    Gone,
    /// It has as many members as allowed.
    Full {
        /// The limit.
        limit: u32,
        /// How many were refused, or given up for others, since that was logged last, where a log line is due.
        turned_away: Option<u64>,
    },
}

impl Ranges {
    /// Sets the ranges. Members of those that stay are kept, whatever the new limit is.
    pub(super) fn set<'a>(&mut self, configs: impl Iterator<Item = &'a PeerConfig>) {
        let mut before = std::mem::take(&mut self.0);
        for config in configs {
            let Remote::Range(prefix) = config.key.remote else { continue };
            let limit = config.listen_range.map_or(ListenRange::LIMIT_DEFAULT, |it| it.limit);
            let (members, full) = before
                .remove(&config.key)
                .map(|range| (range.members, range.full))
                .unwrap_or_default();
            let bounds = ListenRange { prefix, limit };
            self.0.insert(config.key, Range { config: config.clone(), bounds, members, full });
        }
    }

    /// The settings of the member of `range` at `address`: those of the range, but never dialled.
    pub(super) fn member(&self, range: PeerKey, address: IpAddr) -> Option<PeerConfig> {
        Some(self.0.get(&range)?.member(address))
    }

    /// An address in `range` that is no member yet connects.
    pub(super) fn join(
        &mut self,
        now: Instant,
        range: PeerKey,
        address: IpAddr,
    ) -> Result<PeerConfig, Refused> {
        let range = self.0.get_mut(&range).ok_or(Refused::Gone)?;
        let limit = range.bounds.limit;
        if range.members.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Refused::Full { limit, turned_away: range.full.note(now) });
        }
        let config = range.member(address);
        range.members.insert(config.key);
        Ok(config)
    }

    /// The members of a range.
    pub(super) fn members(&self, range: PeerKey) -> impl Iterator<Item = PeerKey> {
        self.0.get(&range).into_iter().flat_map(|it| it.members.iter().copied())
    }

    /// Whether a range has more members than its limit allows now.
    pub(super) fn is_over(&self, range: PeerKey) -> bool {
        self.0.get(&range).is_some_and(|it| {
            it.members.len() > usize::try_from(it.bounds.limit).unwrap_or(usize::MAX)
        })
    }

    /// A member of another range, or of none, becomes one of `range`.
    pub(super) fn move_to(&mut self, range: PeerKey, member: PeerKey) {
        self.leave(member);
        if let Some(range) = self.0.get_mut(&range) {
            range.members.insert(member);
        }
    }

    /// A member was removed.
    pub(super) fn leave(&mut self, member: PeerKey) {
        for range in self.0.values_mut() {
            range.members.remove(&member);
        }
    }

    /// For `show`.
    pub(super) fn view(&self) -> Vec<ListenRangeView> {
        let view = |range: &Range| ListenRangeView {
            config: range.config.clone(),
            limit: range.bounds.limit,
            members: u32::try_from(range.members.len()).unwrap_or(u32::MAX),
            not_accepted: None,
        };
        self.0.values().map(view).collect()
    }
}

impl Range {
    fn member(&self, address: IpAddr) -> PeerConfig {
        let vrf = self.config.key.vrf;
        PeerConfig {
            key: PeerKey { remote: Remote::Address(address), vrf },
            listen_range: Some(self.bounds),
            passive: true,
            ..self.config.clone()
        }
    }
}

impl Full {
    fn note(&mut self, now: Instant) -> Option<u64> {
        self.unlogged = self.unlogged.saturating_add(1);
        if self.logged_at.is_some_and(|at| now.since(at) < FULL_LOG_GAP) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example as _;
    use fairway_ground::Prefix;

    fn range(limit: u32) -> PeerConfig {
        let prefix: Prefix = "10.78.0.0/24".parse().unwrap();
        PeerConfig {
            key: PeerKey { remote: Remote::Range(prefix), vrf: None },
            listen_range: Some(ListenRange { prefix, limit }),
            name: "rack".to_owned(),
            ..PeerConfig::example(1)
        }
    }

    fn address(number: u8) -> IpAddr {
        [10, 78, 0, number].into()
    }

    #[test]
    fn a_member_is_a_passive_neighbour_with_the_settings_of_its_range() {
        let mut ranges = Ranges::default();
        let range = range(1);
        ranges.set([&range].into_iter());
        let member = ranges.join(Instant::ZERO, range.key, address(3)).unwrap();
        assert_eq!((member.key, member.route_key()), (PeerKey::from(address(3)), range.key));
        assert!(member.passive && member.name == "rack");
        assert!(member.is_dynamic() && !range.is_dynamic());
    }

    #[test]
    fn a_full_range_turns_others_away_and_says_so_now_and_then() {
        let mut ranges = Ranges::default();
        let range = range(2);
        ranges.set([&range].into_iter());
        let mut join = |micros: u64, number: u8| {
            let now = Instant::from_micros(micros);
            ranges.join(now, range.key, address(number)).map(|member| member.key)
        };
        assert!(join(0, 1).is_ok() && join(0, 2).is_ok());
        let full = |turned_away| Err(Refused::Full { limit: 2, turned_away });
        assert_eq!(join(0, 3), full(Some(1)));
        assert_eq!(join(1, 3), full(None));
        assert_eq!(join(2, 4), full(None));
        assert_eq!(join(10_000_000, 5), full(Some(3)));
        ranges.leave(PeerKey::from(address(1)));
        assert!(ranges.join(Instant::ZERO, range.key, address(5)).is_ok());
    }

    #[test]
    fn members_stay_with_a_range_that_stays() {
        let mut ranges = Ranges::default();
        ranges.set([&range(2)].into_iter());
        let key = range(2).key;
        ranges.join(Instant::ZERO, key, address(1)).unwrap();
        ranges.set([&range(1)].into_iter());
        let refused = ranges.join(Instant::ZERO, key, address(2));
        assert!(matches!(refused, Err(Refused::Full { limit: 1, .. })));
        assert_eq!(ranges.view()[0].members, 1);
        ranges.set(std::iter::empty());
        assert_eq!(ranges.join(Instant::ZERO, key, address(1)), Err(Refused::Gone));
    }
}
