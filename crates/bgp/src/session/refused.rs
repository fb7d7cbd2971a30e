//! Which routes of a neighbour were refused, and by which rule? For operators: decides nothing, and is not complete.
//!
//! Keeps the first ones up to a bound; all where the operator asks for that; all that a rule refused where another rule may
//! decide without another announcement. They count as memory of the peer. A route leaves when the neighbour withdraws it or
//! it is accepted, with the session, and when the neighbour begins to send all its routes again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rib::Importer;
use fairway_ground::{AddressFamily, Nlri, Prefix};
use fairway_seam::{PathAttributes, PeerRoute, Refusal, RefusedRoute, RefusedRoutes};

/// The most routes that are kept of one neighbour: more than anybody reads, and nothing beside a table.
const ROUTES_MAX: usize = 1000;
/// The most memory that their path attributes take, in bytes, each route counted with a set of its own: ordinary ones of
/// a thousand routes fit, and a hundred hostile neighbours take 25 MiB.
const ATTRIBUTE_BYTES_MAX: u64 = 256 << 10;

/// The refused routes of a session.
#[derive(Debug, Default)]
pub(super) struct Refused {
    routes: BTreeMap<Nlri, (Refusal, Arc<PathAttributes>)>,
    attribute_bytes: u64,
    /// There was no room for others.
    has_more: bool,
    /// Among those were some that a rule refused, and may accept later.
    lacks_ruled: bool,
    kept: Kept,
}

/// Which routes are kept, whatever they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kept {
    /// None.
    #[default]
    None,
    /// Those that a rule refused, up to so many: what it depends on may change (RFC 9324).
    Ruled(usize),
    /// All.
    All,
}

impl Kept {
    /// What this import policy asks for.
    pub(super) fn by(importer: &Importer) -> Self {
        let maximum = importer.policy().maximum;
        match (importer.policy().keeps_filtered, importer.validates_origins()) {
            (true, _) => Self::All,
            (false, true) => Self::Ruled(maximum.map_or(usize::MAX, |it| {
                usize::try_from(it.limit).unwrap_or(usize::MAX).max(ROUTES_MAX)
            })),
            (false, false) => Self::None,
        }
    }

    /// Whether it is kept beside so many others.
    fn has(self, refusal: &Refusal, others: usize) -> bool {
        match self {
            Self::None => false,
            Self::Ruled(most) => matches!(refusal, Refusal::Rule { .. }) && others < most,
            Self::All => true,
        }
    }
}

impl Refused {
    /// None yet.
    pub(super) fn new(kept: Kept) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Which are kept from now on; of the others, those above the bounds leave.
    pub(super) fn set_kept(&mut self, kept: Kept) {
        self.kept = kept;
        let others = self.routes.iter().rev().zip((0..self.routes.len()).rev());
        let others = others.filter(|((_, (refusal, _)), before)| !kept.has(refusal, *before));
        for nlri in others.map(|((nlri, _), _)| *nlri).collect::<Vec<_>>() {
            if !self.is_above_bounds() {
                break;
            }
            self.remove(nlri);
            self.has_more = true;
        }
    }

    /// Whether there was no room for some that a rule refused and may accept later: they can only be had by asking for all
    /// routes.
    pub(super) fn lacks_ruled(&self) -> bool {
        self.lacks_ruled
    }

    /// The attributes of this one, if a rule refused it.
    pub(super) fn ruled_route(&self, nlri: Nlri) -> Option<&Arc<PathAttributes>> {
        let (refusal, attributes) = self.routes.get(&nlri)?;
        matches!(refusal, Refusal::Rule { .. }).then_some(attributes)
    }

    /// Those that a rule refused and `concerns` names, as the neighbour announced them.
    pub(super) fn ruled(
        &self,
        concerns: impl Fn(Prefix) -> bool,
    ) -> impl Iterator<Item = (Nlri, &Arc<PathAttributes>)> {
        self.routes
            .iter()
            .filter(move |(nlri, (refusal, _))| {
                matches!(refusal, Refusal::Rule { .. }) && concerns(nlri.prefix)
            })
            .map(|(nlri, (_, attributes))| (*nlri, attributes))
    }

    fn is_above_bounds(&self) -> bool {
        self.routes.len() > ROUTES_MAX || self.attribute_bytes > ATTRIBUTE_BYTES_MAX
    }

    /// `nlri` was announced with `attributes` and refused.
    pub(super) fn insert(
        &mut self,
        nlri: Nlri,
        refusal: Refusal,
        attributes: &Arc<PathAttributes>,
    ) {
        self.remove(nlri);
        let bytes = self.attribute_bytes.saturating_add(attributes.size_bytes());
        let is_full = self.routes.len() >= ROUTES_MAX || bytes > ATTRIBUTE_BYTES_MAX;
        if is_full && !self.kept.has(&refusal, self.routes.len()) {
            self.has_more = true;
            self.lacks_ruled |= matches!(self.kept, Kept::Ruled(_));
            return;
        }
        self.attribute_bytes = bytes;
        self.routes.insert(nlri, (refusal, Arc::clone(attributes)));
    }

    /// It was withdrawn or accepted.
    pub(super) fn remove(&mut self, nlri: Nlri) {
        if let Some((_, attributes)) = self.routes.remove(&nlri) {
            self.attribute_bytes = self.attribute_bytes.saturating_sub(attributes.size_bytes());
        }
    }

    /// All of `family` are announced again.
    pub(super) fn clear(&mut self, family: AddressFamily) {
        self.routes.retain(|nlri, _| nlri.prefix.family() != family);
        let bytes = self.routes.values().map(|(_, attributes)| attributes.size_bytes());
        self.attribute_bytes = bytes.fold(0, u64::saturating_add);
        self.has_more &= !self.routes.is_empty();
        self.lacks_ruled &= !self.routes.is_empty();
    }

    /// What it takes in memory, in bytes, roughly, with so many for each route.
    pub(super) fn held_bytes(&self, of_route: u64) -> u64 {
        let routes = u64::try_from(self.routes.len()).unwrap_or(u64::MAX);
        routes.saturating_mul(of_route).saturating_add(self.attribute_bytes)
    }

    /// What an operator sees.
    pub(super) fn view(&self) -> RefusedRoutes {
        let route = |(nlri, (refusal, attributes)): (&Nlri, &(Refusal, Arc<PathAttributes>))| {
            let Nlri { prefix, path_id } = *nlri;
            let attributes = Arc::clone(attributes);
            RefusedRoute {
                route: PeerRoute { prefix, path_id, attributes, stale: false },
                refusal: refusal.clone(),
            }
        };
        RefusedRoutes { routes: self.routes.iter().map(route).collect(), has_more: self.has_more }
    }
}

#[cfg(test)]
mod tests {
    use fairway_ground::{AsPath, NextHop};

    use super::*;

    fn attributes(asns: usize) -> Arc<PathAttributes> {
        let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
        let as_path = AsPath::sequence(vec![65010; asns]);
        Arc::new(PathAttributes::originated(as_path, next_hop))
    }

    fn nlri(number: usize) -> Nlri {
        format!("10.{}.{}.0/24", number / 256, number % 256).parse().unwrap()
    }

    #[test]
    fn a_route_is_there_with_the_rule_until_it_is_withdrawn_or_accepted() {
        let mut refused = Refused::default();
        refused.insert(nlri(1), Refusal::Policy, &attributes(1));
        refused.insert(nlri(2), Refusal::AsLoop, &attributes(2));
        refused.insert(nlri(1), Refusal::Leak, &attributes(3));
        let rules = |refused: &Refused| -> Vec<Refusal> {
            refused.view().routes.iter().map(|it| it.refusal.clone()).collect()
        };
        assert_eq!(rules(&refused), [Refusal::Leak, Refusal::AsLoop]);
        refused.remove(nlri(1));
        refused.remove(nlri(3));
        assert_eq!(rules(&refused), [Refusal::AsLoop]);
        refused.clear(AddressFamily::Ipv6Unicast);
        assert_eq!(rules(&refused).len(), 1);
        refused.clear(AddressFamily::Ipv4Unicast);
        assert_eq!((rules(&refused).len(), refused.attribute_bytes), (0, 0));
    }

    #[test]
    fn more_than_anybody_reads_is_left_out_and_told() {
        let mut refused = Refused::default();
        let small = attributes(1);
        for number in 0..ROUTES_MAX {
            refused.insert(nlri(number), Refusal::Policy, &small);
        }
        assert!(!refused.view().has_more);
        refused.insert(nlri(ROUTES_MAX), Refusal::Policy, &small);
        let view = refused.view();
        assert_eq!((view.routes.len(), view.has_more), (ROUTES_MAX, true));
        // One that is there is replaced, whatever the bound.
        refused.insert(nlri(7), Refusal::AsLoop, &small);
        assert_eq!(refused.view().routes.len(), ROUTES_MAX);
    }

    #[test]
    fn all_are_kept_for_as_long_as_the_operator_wants_that() {
        let mut refused = Refused::new(Kept::All);
        for number in 0..2 * ROUTES_MAX {
            refused.insert(nlri(number), Refusal::Policy, &attributes(1));
        }
        let view = refused.view();
        assert_eq!((view.routes.len(), view.has_more), (2 * ROUTES_MAX, false));
        refused.set_kept(Kept::None);
        let view = refused.view();
        assert_eq!((view.routes.len(), view.has_more), (ROUTES_MAX, true));
        assert!(refused.attribute_bytes <= ATTRIBUTE_BYTES_MAX);
    }

    #[test]
    fn what_a_rule_refused_is_kept_where_the_rule_may_decide_otherwise() {
        let by_rule = || Refusal::Rule { place: 0, name: None };
        let mut refused = Refused::new(Kept::Ruled(usize::MAX));
        for number in 0..2 * ROUTES_MAX {
            refused.insert(nlri(number), by_rule(), &attributes(1));
        }
        refused.insert(nlri(2 * ROUTES_MAX), Refusal::AsLoop, &attributes(1));
        let count = |refused: &Refused| refused.ruled(|_| true).count();
        assert_eq!((count(&refused), refused.view().has_more), (2 * ROUTES_MAX, true));
        let one = nlri(7);
        assert_eq!(refused.ruled(|prefix| prefix == one.prefix).count(), 1);
        refused.set_kept(Kept::None);
        assert_eq!(count(&refused), ROUTES_MAX);
        let mut bounded = Refused::new(Kept::Ruled(ROUTES_MAX + 5));
        for number in 0..2 * ROUTES_MAX {
            bounded.insert(nlri(number), by_rule(), &attributes(1));
        }
        assert_eq!((count(&bounded), bounded.lacks_ruled()), (ROUTES_MAX + 5, true));
    }

    #[test]
    fn large_attributes_take_the_place_of_many_routes() {
        let mut refused = Refused::default();
        let large = attributes(16_000);
        for number in 0..ROUTES_MAX {
            refused.insert(nlri(number), Refusal::Policy, &large);
        }
        let view = refused.view();
        assert!(view.has_more && view.routes.len() < 5, "{}", view.routes.len());
        for number in 0..ROUTES_MAX {
            refused.remove(nlri(number));
        }
        assert_eq!(refused.held_bytes(128), 0);
    }
}
