//! RPKI says something else about routes of a session, and of one that is over.

use super::helper::{Helper, Offer, helping};
use super::*;
use crate::rib::PrefixSet;
use crate::wire::announce::{AttributeBlock, announcement};
use fairway_ground::{
    AsPath, ImportPolicy, NextHop, Nlri, OriginValidation, RoaPayload, RouteMatch, RouteRule,
    RouteSettings, RuleAction,
};
use fairway_rpki::{Concerned, OriginTable};
use fairway_seam::PathAttributes;

const PREFIXES: [&str; 8] = [
    "10.0.0.0/16",
    "10.1.0.0/16",
    "10.2.0.0/16",
    "10.3.0.0/16",
    "10.4.0.0/16",
    "10.5.0.0/16",
    "10.6.0.0/16",
    "10.7.0.0/16",
];

/// Routes that are looked at in one turn.
const PART: usize = 5;

/// Rejects what is invalid, and prefers what is valid.
fn validating() -> PeerConfig {
    let matching = |state| RouteMatch { origin_validation: Some(state), ..RouteMatch::default() };
    let preferred = RouteSettings { local_pref: Some(200), ..RouteSettings::default() };
    let rules = [
        RouteRule {
            matches: matching(OriginValidation::Invalid),
            action: RuleAction::Reject,
            ..RouteRule::default()
        },
        RouteRule {
            matches: matching(OriginValidation::Valid),
            settings: preferred,
            ..RouteRule::default()
        },
    ];
    let config = helping();
    let import = ImportPolicy { rules: rules.into(), ..config.import.clone() };
    PeerConfig { import, ..config }
}

/// What says that this AS may originate the prefix, and those in it.
fn table(prefix: &str, asn: u32) -> Arc<OriginTable> {
    let prefix: Prefix = prefix.parse().unwrap();
    let length_max = prefix.family().address_bits();
    Arc::new([RoaPayload { prefix, length_max, asn }].into_iter().collect())
}

fn validate(helper: &mut Helper, origins: Arc<OriginTable>) {
    helper.peer.validate_again(origins, &Concerned::everything(), &PrefixSet::default());
    while helper.peer.has_to_look_again() {
        helper.peer.look_again(helper.now, &helper.rib, PART);
    }
    helper.settle();
}

#[test]
fn routes_that_share_their_attributes_share_what_another_state_makes_of_them() {
    let mut helper = Helper::new(validating());
    helper.connect(&Offer::new());
    let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
    let path = AsPath::sequence(vec![65_002]);
    let block = AttributeBlock::encode(&PathAttributes::originated(path, next_hop), true).unwrap();
    let mut bytes = BytesMut::new();
    let mut nlris: BTreeSet<Nlri> = PREFIXES.iter().map(|it| it.parse().unwrap()).collect();
    announcement(AddressFamily::Ipv4Unicast, false, &block, &mut nlris, &mut bytes);
    helper.hear(&bytes);
    validate(&mut helper, table("10.0.0.0/8", 65_002));
    let attributes: Vec<_> = helper.rib.learned().map(|it| it.path.attributes).collect();
    assert_eq!(attributes.len(), PREFIXES.len());
    assert!(attributes.iter().all(|it| it.local_pref == Some(200)));
    let places: BTreeSet<_> = attributes.iter().map(Arc::as_ptr).collect();
    assert_eq!(places.len(), 2, "one for each part");
    validate(&mut helper, table("10.0.0.0/8", 1));
    assert_eq!(helper.table(), "");
    validate(&mut helper, Arc::default());
    assert_eq!(helper.rib.learned().count(), PREFIXES.len());
    assert!(helper.rib.learned().all(|it| it.path.attributes.local_pref.is_none()));
}

#[test]
fn what_was_refused_stays_refused_when_its_session_is_over() {
    let mut helper = Helper::new(validating());
    helper.peer.set_origins(table("2001:db8::/32", 1));
    // It keeps forwarding IPv4 alone.
    helper.connect(&Offer::new().with(|it| it.families.truncate(1)));
    helper.say(&["10.0.0.0/8", "2001:db8::/32"]);
    assert_eq!(helper.table(), "10.0.0.0/8");
    helper.lose();
    validate(&mut helper, Arc::default());
    assert_eq!(helper.table(), "10.0.0.0/8");
    // What is stale may still become invalid.
    validate(&mut helper, table("10.0.0.0/8", 1));
    assert_eq!(helper.table(), "");
}
