//! Which pools a request gets, and why none.

use std::collections::BTreeSet;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::Labels;

use crate::{ChoiceError, Pool, Request, Selector, SelectorError, Use, choose};

const V4: AddressFamily = AddressFamily::Ipv4Unicast;
const V6: AddressFamily = AddressFamily::Ipv6Unicast;

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn labels(key: &str, value: &str) -> Labels {
    [(key.to_owned(), value.to_owned())].into()
}

pub(super) fn pool(name: &str, text: &str) -> Pool {
    let prefix = prefix(text);
    Pool {
        name: name.to_owned(),
        prefix,
        block_length: if prefix.family() == V4 { 26 } else { 122 },
        is_disabled: false,
        is_manual: false,
        is_hidden_from_bgp: false,
        is_translated: false,
        nodes: Ok(Selector::all()),
        namespaces: None,
        uses: BTreeSet::from([Use::Workload, Use::Tunnel]),
    }
}

fn selector(text: &str) -> Result<Selector, SelectorError> {
    Selector::parse(text)
}

/// What a Pod on a node of rack a, in the namespace of team x, may have.
fn names(
    pools: &[Pool],
    adjust: impl FnOnce(&mut Request<'_>),
) -> Result<Vec<String>, ChoiceError> {
    let (node, namespace) = (labels("rack", "a"), labels("team", "x"));
    let mut request = Request {
        family: V4,
        named: &[],
        purpose: Some(Use::Workload),
        node: &node,
        namespace: Some(&namespace),
        host_reserved: 0,
    };
    adjust(&mut request);
    let chosen = choose(pools, request)?;
    Ok(chosen.into_iter().map(|it| it.name.clone()).collect())
}

fn any(_: &mut Request<'_>) {}

#[test]
fn enabled_pools_of_the_family_serve_in_the_order_of_their_names() {
    let disabled = Pool { is_disabled: true, ..pool("a", "10.3.0.0/16") };
    let pools =
        [pool("c", "10.1.0.0/16"), pool("b", "10.2.0.0/16"), disabled, pool("six", "fd00::/64")];
    assert_eq!(names(&pools, any), Ok(vec!["b".to_owned(), "c".to_owned()]));
    assert_eq!(names(&pools, |it| it.family = V6), Ok(vec!["six".to_owned()]));
    assert_eq!(names(&[], any), Err(ChoiceError::NoQualifiedPool));
}

#[test]
fn selectors_narrow_them() {
    let pools = [
        Pool { nodes: selector("rack == 'a'"), ..pool("near", "10.1.0.0/16") },
        Pool { nodes: selector("rack != 'a'"), ..pool("far", "10.2.0.0/16") },
        Pool { namespaces: Some(selector("team == 'x'")), ..pool("team", "10.3.0.0/16") },
        Pool { namespaces: Some(selector("team == 'y'")), ..pool("others", "10.4.0.0/16") },
    ];
    assert_eq!(names(&pools, any), Ok(vec!["near".to_owned(), "team".to_owned()]));
    let outside = names(&pools, |it| it.namespace = None);
    assert_eq!(outside, Ok(vec!["near".to_owned()]), "of no namespace");
    assert_eq!(names(&pools[1..2], any), Err(ChoiceError::NoPoolForNode));
}

#[test]
fn pools_that_are_named_beat_selectors_and_have_to_be_there() {
    let pools = [
        Pool { nodes: selector("rack == 'b'"), ..pool("far", "10.1.0.0/16") },
        Pool { is_manual: true, ..pool("manual", "10.2.0.0/16") },
        Pool { is_disabled: true, ..pool("off", "10.3.0.0/16") },
        pool("six", "fd00::/64"),
    ];
    assert_eq!(names(&pools[..2], any), Err(ChoiceError::NoPoolForNode));
    let named = |texts: &[&str]| {
        let named: Vec<Prefix> = texts.iter().map(|it| prefix(it)).collect();
        let (node, namespace) = (Labels::new(), None);
        let purpose = Some(Use::Workload);
        let request = Request {
            family: V4,
            named: &named,
            purpose,
            node: &node,
            namespace,
            host_reserved: 0,
        };
        choose(&pools, request).map(|it| it.len())
    };
    assert_eq!(named(&["10.1.0.0/16", "10.2.0.0/16"]), Ok(2));
    for unknown in ["10.3.0.0/16", "10.9.0.0/16"] {
        let expected = Err(ChoiceError::UnknownPool(prefix(unknown)));
        assert_eq!(named(&["10.1.0.0/16", unknown]), expected);
    }
    assert_eq!(named(&["fd00::/64"]), Err(ChoiceError::WrongFamily(prefix("fd00::/64"))));
}

#[test]
fn a_pool_serves_the_uses_that_it_allows() {
    let pools = [Pool { uses: BTreeSet::from([Use::LoadBalancer]), ..pool("vips", "10.1.0.0/16") }];
    assert_eq!(names(&pools, any), Err(ChoiceError::NoQualifiedPool));
    let balancer = names(&pools, |it| it.purpose = Some(Use::LoadBalancer));
    assert_eq!(balancer, Ok(vec!["vips".to_owned()]));
    assert_eq!(names(&pools, |it| it.purpose = None), Err(ChoiceError::UseRequired));
}

#[test]
fn blocks_have_room_for_more_than_what_the_host_reserves() {
    let pools = [
        Pool { block_length: 32, ..pool("single", "10.1.0.0/16") },
        Pool { block_length: 30, ..pool("four", "10.2.0.0/16") },
        Pool { block_length: 29, ..pool("eight", "10.3.0.0/16") },
    ];
    let with = |count| names(&pools, |it| it.host_reserved = count).unwrap();
    assert_eq!(with(0), ["eight", "four", "single"]);
    assert_eq!(with(3), ["eight", "four"]);
    assert_eq!(with(4), ["eight"]);
    assert_eq!(names(&pools, |it| it.host_reserved = 8), Err(ChoiceError::NoQualifiedPool));
}
