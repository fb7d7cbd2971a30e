//! The state of a route, by what RPKI caches say (RFC 6811).
//!
//! Payloads in order, each prefix with the nearest one that covers it: one search finds all that cover a route. Never
//! changed: other payloads are another table.

use fairway_ground::{AsPath, AsPathSegment, OriginValidation, Prefix, RoaPayload};

/// A prefix with payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Covering {
    prefix: Prefix,
    /// The place of the longest one that covers it.
    parent: Option<usize>,
    /// The place of the first of its allowances; the last is before the first of the next prefix.
    allowances_from: usize,
}

/// What a payload says of its prefix. Of one AS the last one has the longest prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Allowed {
    asn: u32,
    length_max: u8,
}

/// See the module.
#[derive(Debug, Default)]
pub struct OriginTable {
    prefixes: Vec<Covering>,
    allowed: Vec<Allowed>,
}

impl FromIterator<RoaPayload> for OriginTable {
    /// `payloads` are sorted.
    fn from_iter<I: IntoIterator<Item = RoaPayload>>(payloads: I) -> Self {
        let mut table = Self::default();
        for RoaPayload { prefix, length_max, asn } in payloads {
            let last = table.prefixes.len().checked_sub(1);
            if table.get(last).is_none_or(|it| it.prefix != prefix) {
                table.sort_last();
                let covers = |place: &usize| {
                    table.get(Some(*place)).is_some_and(|it| it.prefix.contains(prefix.address()))
                };
                let mut outwards =
                    std::iter::successors(last, |place| table.get(Some(*place))?.parent);
                let parent = outwards.find(covers);
                let allowances_from = table.allowed.len();
                table.prefixes.push(Covering { prefix, parent, allowances_from });
            }
            table.allowed.push(Allowed { asn, length_max });
        }
        table.sort_last();
        table
    }
}

impl OriginTable {
    /// How many payloads there are.
    pub fn len(&self) -> usize {
        self.allowed.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// All payloads, in the order of their prefixes and ASes.
    pub fn iter(&self) -> impl Iterator<Item = RoaPayload> + '_ {
        self.prefixes.iter().enumerate().flat_map(|(place, Covering { prefix, .. })| {
            let payload = |Allowed { asn, length_max }: &Allowed| {
                let (asn, length_max) = (*asn, *length_max);
                RoaPayload { prefix: *prefix, length_max, asn }
            };
            self.allowed_at(place).iter().map(payload)
        })
    }

    /// The state of a route to `prefix` that `origin` originates; `None` where that cannot be told (see [`origin`]).
    pub fn state(&self, prefix: Prefix, origin: Option<u32>) -> OriginValidation {
        let nearest = self.prefixes.partition_point(|it| it.prefix <= prefix).checked_sub(1);
        let mut outwards = std::iter::successors(nearest, |place| self.get(Some(*place))?.parent)
            .filter(|place| {
                self.get(Some(*place)).is_some_and(|it| it.prefix.contains(prefix.address()))
            })
            .peekable();
        if outwards.peek().is_none() {
            return OriginValidation::NotFound;
        }
        // AS 0 originates nothing.
        let origin = origin.filter(|asn| *asn != 0);
        let is_allowed = |place| {
            let longest = origin.and_then(|asn| self.longest(place, asn));
            longest.is_some_and(|longest| prefix.length() <= longest)
        };
        if outwards.any(is_allowed) { OriginValidation::Valid } else { OriginValidation::Invalid }
    }

    /// The longest prefix that `asn` may originate in the one at `place`.
    fn longest(&self, place: usize, asn: u32) -> Option<u8> {
        let allowed = self.allowed_at(place);
        let after = allowed.partition_point(|it| it.asn <= asn);
        let last = after.checked_sub(1).and_then(|place| allowed.get(place))?;
        (last.asn == asn).then_some(last.length_max)
    }

    /// The last prefix is complete.
    fn sort_last(&mut self) {
        let from = self.prefixes.last().map(|it| it.allowances_from);
        if let Some(allowed) = from.and_then(|from| self.allowed.get_mut(from..)) {
            allowed.sort_unstable();
        }
    }

    fn get(&self, place: Option<usize>) -> Option<&Covering> {
        self.prefixes.get(place?)
    }

    fn allowed_at(&self, place: usize) -> &[Allowed] {
        let next = self.get(place.checked_add(1));
        let end = next.map_or(self.allowed.len(), |it| it.allowances_from);
        let from = self.get(Some(place)).map(|it| it.allowances_from);
        from.and_then(|from| self.allowed.get(from..end)).unwrap_or_default()
    }
}

/// The AS that originates a route with this path, which is received in `own_asn`: the last one of the path, or ours if the
/// path is empty. `None` if the path ends in a set (RFC 6811 §2).
pub fn origin(path: &AsPath, own_asn: u32) -> Option<u32> {
    match path.0.last() {
        None => Some(own_asn),
        Some(AsPathSegment::Sequence(asns)) => asns.last().copied(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use OriginValidation::{Invalid, NotFound, Valid};
    use fairway_ground::Rng;

    fn payload(prefix: &str, length_max: u8, asn: u32) -> RoaPayload {
        RoaPayload { prefix: prefix.parse().unwrap(), length_max, asn }
    }

    //= RFC 6811 §2 SHOULD: the state of a received route is looked up.
    //= RFC 6811 §3 MUST: AS numbers have four octets.
    #[test]
    fn a_route_has_one_of_three_states() {
        let payloads = BTreeSet::from([
            payload("192.0.2.0/24", 24, 65_010),
            payload("198.51.0.0/16", 20, 65_010),
            payload("198.51.100.0/24", 24, 65_020),
            payload("203.0.113.0/24", 32, 0),
            payload("2001:db8::/32", 48, 4_200_000_010),
        ]);
        let table: OriginTable = payloads.into_iter().collect();
        for (prefix, origin, state) in [
            ("192.0.2.0/24", Some(65_010), Valid),
            ("192.0.2.0/24", Some(65_020), Invalid),
            // A set at the end of the path has no origin.
            ("192.0.2.0/24", None, Invalid),
            ("192.0.2.0/25", Some(65_010), Invalid),
            ("192.0.0.0/16", Some(65_010), NotFound),
            ("198.51.16.0/20", Some(65_010), Valid),
            ("198.51.16.0/21", Some(65_010), Invalid),
            // One payload that matches is enough.
            ("198.51.100.0/24", Some(65_020), Valid),
            ("198.51.100.0/24", Some(65_010), Invalid),
            // AS 0 originates nothing.
            ("203.0.113.0/24", Some(0), Invalid),
            ("2001:db8:7::/48", Some(4_200_000_010), Valid),
            ("2001:db8:7::/49", Some(4_200_000_010), Invalid),
            ("2001:db9::/32", Some(65_010), NotFound),
            ("0.0.0.0/0", Some(65_010), NotFound),
        ] {
            assert_eq!(table.state(prefix.parse().unwrap(), origin), state, "{prefix} {origin:?}");
        }
    }

    /// 1,000 tables of prefixes inside each other, and 50 routes each.
    #[test]
    fn every_state_is_that_of_a_search_through_all_payloads() {
        let mut rng = Rng::seeded(1);
        let mut below = |bound: u8| u8::try_from(rng.next_u64() % u64::from(bound)).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..1_000 {
            let mut prefix = || -> Prefix {
                let (length, high, low) = (24 + below(9), below(2), below(16));
                let text = match below(4) {
                    0 => format!("2001:db8::{high}:{low}/{}", 96 + length),
                    _ => format!("10.0.{high}.{low}/{length}"),
                };
                let (address, length) = text.split_once('/').unwrap();
                Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
            };
            let routes: Vec<Prefix> = (0..50).map(|_| prefix()).collect();
            let prefixes: Vec<Prefix> = (0..12).map(|_| prefix()).collect();
            let mut payload = |prefix: Prefix| {
                let length_max = prefix.length() + below(3);
                RoaPayload { prefix, length_max, asn: u32::from(below(3)) }
            };
            let payloads: BTreeSet<RoaPayload> = prefixes.into_iter().map(&mut payload).collect();
            let table: OriginTable = payloads.iter().copied().collect();
            assert_eq!(table.iter().collect::<BTreeSet<_>>(), payloads);
            for route in routes {
                let covers = |it: &&RoaPayload| {
                    it.prefix.contains(route.address()) && it.prefix.length() <= route.length()
                };
                let covering: Vec<&RoaPayload> = payloads.iter().filter(covers).collect();
                let matches = |it: &&RoaPayload| it.asn == 1 && route.length() <= it.length_max;
                let wanted =
                    match (covering.is_empty(), covering.iter().copied().any(|it| matches(&it))) {
                        (true, _) => NotFound,
                        (false, true) => Valid,
                        (false, false) => Invalid,
                    };
                assert_eq!(table.state(route, Some(1)), wanted, "{route} {payloads:?}");
                seen.insert(wanted);
            }
        }
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn the_origin_is_the_last_as_of_the_path() {
        let sequence = |asns: &[u32]| AsPathSegment::Sequence(asns.to_vec());
        let set = AsPathSegment::Set(vec![65_020]);
        assert_eq!(origin(&AsPath::default(), 65_001), Some(65_001));
        assert_eq!(origin(&AsPath(vec![sequence(&[65_010, 65_020])]), 65_001), Some(65_020));
        assert_eq!(origin(&AsPath(vec![sequence(&[65_010]), set]), 65_001), None);
    }
}
