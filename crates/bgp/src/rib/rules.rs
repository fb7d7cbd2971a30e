//! What do an operator's rules make of a route? Applies [`RouteRule`]s to attributes; knows no session.
//!
//! A route depends on its prefix only through the rules whose prefixes contain it, and that are about the state of its
//! origin: thousands of routes with the same attributes have the same result for each such set. [`rules_in_reach`] is the
//! set, one bit for each rule.

use std::sync::Arc;

use crate::wire::attribute::code;
use fairway_ground::{
    AddressFamily, AsPath, Communities, NextHop, OriginValidation, Prefix, RouteMatch, RouteRule,
    RouteSettings, RuleAction,
};
use fairway_seam::PathAttributes;
use thin_vec::ThinVec;

/// The place of the rule that rejects a route.
pub type RejectedBy = u8;

/// What rules make of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// Its attributes.
    pub attributes: Arc<PathAttributes>,
    /// MULTI_EXIT_DISC, if a rule has set it.
    pub med: Option<u32>,
    /// The next hop, if a rule has set it.
    pub next_hop: Option<NextHop>,
    /// The place of the rule that accepts it, if one does.
    pub accepted_by: Option<u8>,
}

/// Whether what they make of a route depends on the state of its origin.
pub(super) fn are_about_origins(rules: &[RouteRule]) -> bool {
    rules.iter().any(|rule| rule.matches.origin_validation.is_some())
}

/// The rules that a route to `prefix` with an origin in this state is in reach of.
pub fn rules_in_reach(
    rules: &[RouteRule],
    prefix: Prefix,
    origin: Option<OriginValidation>,
) -> u64 {
    rules.iter().zip(0_u32..u64::BITS).fold(0, |reach, (RouteRule { matches, .. }, place)| {
        let is_in = matches.has_prefix(prefix) && matches.has_origin_validation(origin);
        reach | u64::from(is_in).wrapping_shl(place)
    })
}

/// What the rules that are in `reach` make of `attributes` of a route of `family`; `asn` is what they prepend.
pub fn apply_rules(
    rules: &[RouteRule],
    reach: u64,
    family: AddressFamily,
    asn: Option<u32>,
    attributes: &Arc<PathAttributes>,
) -> Result<Ruled, RejectedBy> {
    let mut route = Arc::clone(attributes);
    let (mut med, mut next_hop, mut accepted_by) = (None, None, None);
    for (rule, place) in rules.iter().zip(0_u8..) {
        let is_in_reach = reach.wrapping_shr(place.into()) & 1 == 1;
        if !is_in_reach || !matches(&rule.matches, &route) {
            continue;
        }
        if rule.action == RuleAction::Reject {
            return Err(place);
        }
        if rule.settings != RouteSettings::default() {
            set(&rule.settings, family, asn, Arc::make_mut(&mut route));
            med = rule.settings.med.or(med);
            next_hop = rule.settings.next_hops.of(family).or(next_hop);
        }
        if rule.action == RuleAction::Accept {
            accepted_by = Some(place);
            break;
        }
    }
    Ok(Ruled { attributes: route, med, next_hop, accepted_by })
}

/// Whether the conditions hold that are about neither the prefix nor its origin.
fn matches(wanted: &RouteMatch, route: &PathAttributes) -> bool {
    wanted.has_next_hop(route.next_hop)
        && has_one(&wanted.communities, route)
        && wanted.as_path.as_ref().is_none_or(|it| it.matches(&route.as_path))
}

fn has_one(wanted: &Communities, route: &PathAttributes) -> bool {
    wanted.is_empty()
        || wanted.standard.iter().any(|it| route.communities.contains(it))
        || wanted.extended.iter().any(|it| route.extended_communities.contains(it))
        || wanted.large.iter().any(|it| route.large_communities.contains(it))
}

fn set(
    settings: &RouteSettings,
    family: AddressFamily,
    asn: Option<u32>,
    route: &mut PathAttributes,
) {
    let RouteSettings { local_pref, med, removes_communities, removed, added, prepend, next_hops } =
        settings;
    route.local_pref = local_pref.or(route.local_pref);
    route.med = med.or(route.med);
    let all = *removes_communities;
    edit(&mut route.communities, all, &removed.standard, &added.standard);
    edit(&mut route.extended_communities, all, &removed.extended, &added.extended);
    edit(&mut route.large_communities, all, &removed.large, &added.large);
    let left = [
        (code::COMMUNITIES, route.communities.is_empty()),
        (code::EXTENDED_COMMUNITIES, route.extended_communities.is_empty()),
        (code::LARGE_COMMUNITIES, route.large_communities.is_empty()),
    ];
    // An attribute that is left out has no Partial bit.
    route.partial.retain(|code| !left.contains(&(*code, true)));
    for asn in asn.into_iter().cycle().take(asn.map_or(0, |_| usize::from(*prepend))) {
        route.as_path = AsPath::prepended(&route.as_path, asn);
    }
    route.next_hop = next_hops.of(family).unwrap_or(route.next_hop);
}

/// Sorted, as attributes have them.
fn edit<T: Ord + Copy>(
    communities: &mut ThinVec<T>,
    removes_all: bool,
    removed: &[T],
    added: &[T],
) {
    communities.retain(|it| !removes_all && !removed.contains(it));
    communities.extend_from_slice(added);
    communities.sort_unstable();
    communities.dedup();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    use super::*;
    use fairway_ground::{
        AsPathPattern, ChosenNextHops, Community, LargeCommunity, PrefixRange, Rng,
    };

    const OWN_ASN: u32 = 65_001;
    const FAMILY: AddressFamily = AddressFamily::Ipv4Unicast;

    /// Values from small sets, so that rules and routes meet.
    struct Dice(Rng);

    impl Dice {
        fn below(&mut self, bound: u64) -> u64 {
            self.0.next_u64() % bound
        }

        fn octet(&mut self, bound: u64) -> u8 {
            u8::try_from(self.below(bound)).unwrap()
        }

        fn number(&mut self, bound: u64) -> u32 {
            u32::from(self.octet(bound))
        }

        fn one_in(&mut self, bound: u64) -> bool {
            self.below(bound) == 0
        }

        fn some<T>(&mut self, make: impl FnMut(&mut Self) -> T) -> Vec<T> {
            let count = self.below(3);
            let mut make = make;
            (0..count).map(|_| make(self)).collect()
        }

        fn asn(&mut self) -> u32 {
            [7, 77, 65_010][usize::from(self.octet(3))]
        }

        fn prefix(&mut self) -> Prefix {
            let length = [8, 16, 24][usize::from(self.octet(3))];
            let address = [10, self.octet(2), self.octet(2), 0];
            let kept = u32::from(Ipv4Addr::from(address)) & (u32::MAX << (32 - u32::from(length)));
            Prefix::new(Ipv4Addr::from(kept).into(), length).unwrap()
        }

        fn communities(&mut self) -> Communities {
            let large =
                |dice: &mut Self| LargeCommunity { global: 1, local1: 2, local2: dice.number(4) };
            Communities {
                standard: self.some(|dice| Community(dice.number(4))),
                extended: self.some(|dice| {
                    fairway_ground::ExtendedCommunity([0, 2, 0, 0, 0, 0, 0, dice.octet(4)])
                }),
                large: self.some(large),
            }
        }

        fn origin_validation(&mut self) -> OriginValidation {
            OriginValidation::ALL[usize::from(self.octet(3))]
        }

        fn rule(&mut self) -> RouteRule {
            let texts = ["^7_", "_77_", "_65010$", "^$", "7"];
            let range = |dice: &mut Self| {
                let prefix = dice.prefix();
                let le = Some(24).filter(|_| dice.one_in(2));
                PrefixRange::new(prefix, None, le).unwrap()
            };
            let matches = RouteMatch {
                prefixes: self.some(range),
                as_path: self
                    .one_in(3)
                    .then(|| AsPathPattern::new(texts[usize::from(self.octet(5))]).unwrap()),
                communities: if self.one_in(2) {
                    self.communities()
                } else {
                    Communities::default()
                },
                next_hops: if self.one_in(3) { self.some(Self::prefix) } else { Vec::new() },
                origin_validation: self.one_in(3).then(|| self.origin_validation()),
            };
            let settings = RouteSettings {
                local_pref: self.one_in(3).then(|| self.number(9)),
                med: self.one_in(3).then(|| self.number(9)),
                removes_communities: self.one_in(4),
                removed: self.communities(),
                added: self.communities(),
                prepend: self.octet(3),
                next_hops: ChosenNextHops {
                    ipv4: self.one_in(4).then(|| [10, self.octet(2), 0, 1].into()),
                    ipv6: None,
                },
            };
            let actions = [RuleAction::Accept, RuleAction::Reject, RuleAction::Continue];
            let action = actions[usize::from(self.octet(3))];
            RouteRule { name: None, matches, settings, action }
        }

        fn route(&mut self) -> PathAttributes {
            let as_path = AsPath::sequence(self.some(Self::asn));
            let next_hop = NextHop::Ipv4([10, self.octet(2), 0, 9].into());
            let Communities { standard, extended, large } = self.communities();
            let mut route = PathAttributes::originated(as_path, next_hop);
            edit(&mut route.communities, true, &[], &standard);
            edit(&mut route.extended_communities, true, &[], &extended);
            edit(&mut route.large_communities, true, &[], &large);
            route
        }
    }

    /// What the rules say, word by word.
    fn plain(
        rules: &[RouteRule],
        prefix: Prefix,
        origin: OriginValidation,
        mut route: PathAttributes,
    ) -> Option<PathAttributes> {
        fn meets<T: Ord + Copy>(one: &[T], other: &[T]) -> bool {
            let one: BTreeSet<T> = one.iter().copied().collect();
            other.iter().any(|it| one.contains(it))
        }
        fn changed<T: Ord + Copy>(has: &[T], all: bool, removed: &[T], added: &[T]) -> Vec<T> {
            let mut set: BTreeSet<T> = has.iter().copied().collect();
            if all {
                set.clear();
            }
            set.retain(|it| !removed.contains(it));
            set.extend(added);
            set.into_iter().collect()
        }
        for RouteRule { matches, settings, action, .. } in rules {
            let wanted = &matches.communities;
            let is_wanted = (matches.prefixes.is_empty()
                || matches.prefixes.iter().any(|it| it.contains(prefix)))
                && matches.origin_validation.is_none_or(|it| it == origin)
                && (matches.next_hops.is_empty()
                    || matches.next_hops.iter().any(|it| it.contains(route.next_hop.address())))
                && (wanted.is_empty()
                    || meets(&wanted.standard, &route.communities)
                    || meets(&wanted.extended, &route.extended_communities)
                    || meets(&wanted.large, &route.large_communities))
                && matches.as_path.as_ref().is_none_or(|it| it.is_in(&route.as_path.to_string()));
            if !is_wanted {
                continue;
            }
            if *action == RuleAction::Reject {
                return None;
            }
            let (all, removed, added) =
                (settings.removes_communities, &settings.removed, &settings.added);
            route = PathAttributes {
                local_pref: settings.local_pref.or(route.local_pref),
                med: settings.med.or(route.med),
                communities: changed(&route.communities, all, &removed.standard, &added.standard)
                    .into(),
                extended_communities: changed(
                    &route.extended_communities,
                    all,
                    &removed.extended,
                    &added.extended,
                )
                .into(),
                large_communities: changed(
                    &route.large_communities,
                    all,
                    &removed.large,
                    &added.large,
                )
                .into(),
                as_path: (0..settings.prepend)
                    .fold(route.as_path, |path, _| path.prepended(OWN_ASN)),
                next_hop: settings.next_hops.ipv4.map_or(route.next_hop, NextHop::Ipv4),
                ..route
            };
            if *action == RuleAction::Accept {
                break;
            }
        }
        Some(route)
    }

    //= RFC 6811 §3 MUST: the policy can match the state of a route.
    /// 10,000 lists of rules and ten routes each.
    #[test]
    fn rules_have_the_result_of_their_plain_reading() {
        let mut dice = Dice(Rng::seeded(7));
        let (mut rejected, mut changed) = (0, 0);
        for _ in 0..10_000 {
            let rules: Vec<RouteRule> = (0..dice.below(6)).map(|_| dice.rule()).collect();
            for _ in 0..10 {
                let (prefix, route) = (dice.prefix(), Arc::new(dice.route()));
                let origin = dice.origin_validation();
                let reach = rules_in_reach(&rules, prefix, Some(origin));
                let made = apply_rules(&rules, reach, FAMILY, Some(OWN_ASN), &route);
                let made = made.map(|it| it.attributes);
                let wanted = plain(&rules, prefix, origin, (*route).clone());
                rejected += u32::from(made.is_err());
                changed += u32::from(made.as_ref().is_ok_and(|it| *it != route));
                assert_eq!(
                    made.ok().as_deref(),
                    wanted.as_ref(),
                    "{rules:#?}\n{prefix} {route:#?}"
                );
            }
        }
        assert!(rejected > 10_000 && changed > 10_000, "{rejected} {changed}");
    }

    #[test]
    fn a_route_that_no_rule_changes_is_the_same_in_memory() {
        let mut dice = Dice(Rng::seeded(8));
        let route = Arc::new(dice.route());
        let made = apply_rules(&[RouteRule::default()], 1, FAMILY, None, &route).unwrap();
        assert!(Arc::ptr_eq(&made.attributes, &route));
    }

    #[test]
    fn what_a_rule_leaves_out_has_no_partial_bit() {
        let mut route = Dice(Rng::seeded(9)).route();
        route.communities = vec![Community(1)].into();
        route.partial = vec![code::AGGREGATOR, code::COMMUNITIES].into();
        let settings = RouteSettings { removes_communities: true, ..RouteSettings::default() };
        let rules = [RouteRule { settings, ..RouteRule::default() }];
        let made = apply_rules(&rules, 1, FAMILY, None, &Arc::new(route)).unwrap();
        assert_eq!(made.attributes.partial, [code::AGGREGATOR]);
    }
}
