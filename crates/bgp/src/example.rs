//! Settings of a neighbour that the tests of this crate start from.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{
    Asn, Communities, Community, FamilySet, HoldTime, ImportPolicy, OriginValidation, PeerKey,
    PrefixFilter, PrefixRange, RemoteAs, RouteMatch, RouteRule, RouteSettings, RouterId,
    RuleAction,
};
use fairway_seam::PeerConfig;

/// What tests start from.
pub(crate) trait Example {
    /// The settings of speaker `number` (1 or 2) towards the other of a pair: AS 65001 and 65002,
    /// hold time 9 s, both families.
    fn example(number: u8) -> Self;
}

impl Example for PeerConfig {
    fn example(number: u8) -> Self {
        let asn = |number: u8| Asn::new(65_000 + u32::from(number)).unwrap();
        let key = PeerKey::from(IpAddr::from([192, 0, 2, 3 - number]));
        let router_id = RouterId::new(u32::from(number)).unwrap();
        Self {
            name: format!("peer-{number}"),
            hold_time: HoldTime::from_seconds(9).unwrap(),
            families: FamilySet::BOTH,
            import: ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() },
            ..Self::new(key, asn(number), RemoteAs::Asn(asn(3 - number)), router_id)
        }
    }
}

/// Rules that are about some prefixes and some communities.
pub(crate) fn rules(seed: u64) -> Arc<[RouteRule]> {
    let half = PrefixRange::new("0.0.0.0/1".parse().unwrap(), Some(1), Some(32)).unwrap();
    let action = if seed.is_multiple_of(2) { RuleAction::Reject } else { RuleAction::Continue };
    let added = Communities { standard: vec![Community(9)], ..Communities::default() };
    let with = |matches, settings, action| RouteRule { name: None, matches, settings, action };
    let settings = RouteSettings { med: Some(7), added, prepend: 1, ..RouteSettings::default() };
    let of_half = RouteMatch { prefixes: vec![half], ..RouteMatch::default() };
    let with_one = Communities { standard: vec![Community::NO_EXPORT], ..Communities::default() };
    let of_one = RouteMatch { communities: with_one, ..RouteMatch::default() };
    let preferred = RouteSettings { local_pref: Some(50), ..RouteSettings::default() };
    let of_origin = |state| RouteMatch { origin_validation: state, ..RouteMatch::default() };
    let [valid, invalid, _] = OriginValidation::ALL.map(|it| Some(it).filter(|_| seed & 2 == 0));
    let bad = if invalid.is_some() { RuleAction::Reject } else { RuleAction::Continue };
    let good = Communities { standard: vec![Community(10)], ..Communities::default() };
    let marked = RouteSettings { added: good, ..RouteSettings::default() };
    [
        with(of_origin(invalid), RouteSettings::default(), bad),
        with(of_origin(valid), marked, RuleAction::Continue),
        with(of_half, settings, RuleAction::Continue),
        with(of_one, RouteSettings::default(), action),
        with(RouteMatch::default(), preferred, RuleAction::Accept),
    ]
    .into()
}
