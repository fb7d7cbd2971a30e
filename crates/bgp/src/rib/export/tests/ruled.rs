//! What do an operator's rules make of routes that are passed on?

use super::*;
use fairway_ground::{
    OriginValidation, PrefixRange, RoaPayload, RouteMatch, RouteRule, RouteSettings, RuleAction,
};
use fairway_seam::{RuleName, Withheld};

const PREFIX: &str = "203.0.113.0/24";

/// What a neighbour in another AS (or in ours) is sent of a path by these rules, or that nothing is.
fn told(
    kind: PeerKind,
    path: &Path,
    rules: Vec<RouteRule>,
) -> Result<Option<Arc<PathAttributes>>, Ineligible> {
    exporter(kind, rules).pass_on(PREFIX.parse().unwrap(), path)
}

fn exporter(kind: PeerKind, rules: Vec<RouteRule>) -> Plain {
    let mut config = PeerConfig {
        pass_on: PrefixFilter::Everything,
        pass_on_rules: rules.into(),
        ..PeerConfig::example(1)
    };
    if kind == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService)
}

fn setting(settings: RouteSettings) -> Vec<RouteRule> {
    vec![RouteRule { settings, ..RouteRule::default() }]
}

#[test]
fn what_a_rule_sets_is_sent_where_it_may_be() {
    let settings =
        RouteSettings { local_pref: Some(7), med: Some(8), prepend: 2, ..RouteSettings::default() };
    let path = heard(PeerKind::External);
    let outside = told(PeerKind::External, &path, setting(settings.clone())).unwrap().unwrap();
    // MED of another AS is not passed on, LOCAL_PREF stays in ours.
    assert_eq!((outside.med, outside.local_pref), (Some(8), None));
    assert_eq!(outside.as_path.to_string(), "65001 65001 65001 65009 7");
    let inside = told(PeerKind::Internal, &path, setting(settings)).unwrap().unwrap();
    assert_eq!((inside.med, inside.local_pref), (Some(8), Some(7)));
    assert_eq!(inside.as_path.to_string(), "65001 65001 65009 7");
    let without = told(PeerKind::External, &path, Vec::new()).unwrap().unwrap();
    assert_eq!(without.med, None);
}

#[test]
fn a_next_hop_of_a_rule_goes_before_ours_though_it_is_the_received_one() {
    let received = ChosenNextHops { ipv4: Some([192, 0, 2, 9].into()), ipv6: None };
    let settings = RouteSettings { next_hops: received, ..RouteSettings::default() };
    let path = heard(PeerKind::External);
    let told = told(PeerKind::External, &path, setting(settings.clone())).unwrap().unwrap();
    assert_eq!(told.next_hop, NextHop::Ipv4([192, 0, 2, 9].into()));
    // Our own addresses may change: this next hop does not.
    let mut ruled = exporter(PeerKind::External, setting(settings.clone())).0;
    let outgoing = ruled.pass_on(PREFIX.parse().unwrap(), &path).unwrap().unwrap();
    assert!(!outgoing.has_own_next_hop);
    // A peer is not sent itself.
    let peer = ChosenNextHops { ipv4: Some([192, 0, 2, 2].into()), ipv6: None };
    let to_itself = setting(RouteSettings { next_hops: peer, ..RouteSettings::default() });
    let refused = self::told(PeerKind::External, &path, to_itself);
    assert_eq!(refused, Err(Ineligible::PeerAsNextHop([192, 0, 2, 2].into())));
    // What is encoded for a group gets the next hop of each of its peers.
    assert!(!exporter(PeerKind::External, setting(settings)).0.may_be_grouped());
    assert!(exporter(PeerKind::External, Vec::new()).0.may_be_grouped());
}

#[test]
fn a_rule_rejects_some_prefixes_with_the_same_attributes() {
    let narrow = PrefixRange::new("203.0.113.0/24".parse().unwrap(), None, None).unwrap();
    let matches = RouteMatch { prefixes: vec![narrow], ..RouteMatch::default() };
    let rule = RouteRule { matches, action: RuleAction::Reject, ..RouteRule::default() };
    let mut exporter = exporter(PeerKind::External, vec![rule]);
    let path = heard(PeerKind::External);
    for (prefix, is_told) in [(PREFIX, false), ("203.0.112.0/24", true), (PREFIX, false)] {
        let prefix = prefix.parse().unwrap();
        assert_eq!(exporter.pass_on(prefix, &path).unwrap().is_some(), is_told, "{prefix}");
        assert_eq!(exporter.0.policy.passes_on(prefix, &path), is_told, "{prefix}");
    }
}

#[test]
fn an_operator_is_told_what_becomes_of_a_route() {
    let config = |kind, rules: Vec<RouteRule>, allowed: &str| {
        let mut exporter = exporter(kind, rules).0;
        if !allowed.is_empty() {
            let range = PrefixRange::new(allowed.parse().unwrap(), None, None).unwrap();
            exporter.policy.pass_on = PrefixFilter::Listed(vec![range]);
        }
        exporter
    };
    let passage = |exporter: &Exporter, path: &Path| {
        let routes = Routes::learned(path.clone());
        exporter.passage(PREFIX.parse().unwrap(), &routes).unwrap()
    };
    let path = heard(PeerKind::External);
    let marked = |community| {
        let attributes = (*path.attributes).clone().with_community(community);
        Path { attributes: Arc::new(attributes), ..path.clone() }
    };
    let external = PeerKind::External;
    assert_eq!(passage(&config(external, Vec::new(), ""), &path), Passage::Passed(None));
    let next = RouteRule { action: RuleAction::Continue, ..RouteRule::default() };
    let named = |action| RouteRule { name: Some("mine".into()), action, ..RouteRule::default() };
    let rule = RuleName { place: 1, name: Some("mine".into()) };
    for (action, wanted) in [
        (RuleAction::Accept, Passage::Passed(Some(rule.clone()))),
        (RuleAction::Reject, Passage::Withheld(Withheld::Rule(rule))),
        (RuleAction::Continue, Passage::Passed(None)),
    ] {
        let exporter = config(external, vec![next.clone(), named(action)], "");
        assert_eq!(passage(&exporter, &path), wanted);
    }
    for (exporter, path, wanted) in [
        (config(external, Vec::new(), "10.0.0.0/8"), path.clone(), Withheld::Prefix),
        (config(external, Vec::new(), ""), marked(Community::NO_EXPORT), Withheld::Communities),
        (config(PeerKind::Internal, Vec::new(), ""), heard(PeerKind::Internal), Withheld::Internal),
    ] {
        assert_eq!(passage(&exporter, &path), Passage::Withheld(wanted));
    }
    // One that the operator sends no received routes has no answer.
    let mut silent = config(external, Vec::new(), "");
    silent.policy.pass_on = PrefixFilter::Nothing;
    assert_eq!(silent.passage(PREFIX.parse().unwrap(), &Routes::learned(path)), None);
}

#[test]
fn a_rule_about_the_origin_follows_what_rpki_says() {
    let invalid =
        RouteMatch { origin_validation: Some(OriginValidation::Invalid), ..RouteMatch::default() };
    let rules =
        vec![RouteRule { matches: invalid, action: RuleAction::Reject, ..RouteRule::default() }];
    let prefix = PREFIX.parse().unwrap();
    let path = heard(PeerKind::External);
    // The path is 65009 7: 7 originates it.
    for (asn, is_told) in [(7, true), (8, false)] {
        let said = Arc::new(OriginTable::from_iter([RoaPayload { prefix, length_max: 24, asn }]));
        let plain = exporter(PeerKind::External, rules.clone()).0;
        let mut validating = plain.validate(&said);
        assert!(validating.validates_origins());
        assert_eq!(validating.pass_on(prefix, &path).unwrap().is_some(), is_told, "{asn}");
    }
    let other = Arc::new(OriginTable::default());
    assert!(!exporter(PeerKind::External, Vec::new()).0.validate(&other).validates_origins());
}

/// Peers that RPKI says different things to would be sent one UPDATE.
#[test]
fn a_group_of_peers_has_one_table_of_origins() {
    let rules = vec![RouteRule {
        matches: RouteMatch {
            origin_validation: Some(OriginValidation::Valid),
            ..RouteMatch::default()
        },
        ..RouteRule::default()
    }];
    let tables = [(); 2].map(|()| Arc::new(OriginTable::default()));
    let [one, other] =
        tables.each_ref().map(|it| exporter(PeerKind::External, rules.clone()).0.validate(it));
    let same = exporter(PeerKind::External, rules).0.validate(&tables[0]);
    assert!(same.is_of_group(&one) && !other.is_of_group(&one));
}
