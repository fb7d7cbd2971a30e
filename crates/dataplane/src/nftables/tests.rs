//! Rules to elements and back, and transactions as golden bytes.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Prefix;
use fairway_model::TransportProtocol;
use fairway_proxy::{FilterRule, Masquerade, NoEndpoints, VirtualAddress};

use super::elements::{Element, change, listed, of_rule, rules_of};
use super::*;
use crate::message::{Content, answers};

fn at(address: &str, port: u16) -> VirtualAddress {
    VirtualAddress { address: address.parse().unwrap(), port, protocol: TransportProtocol::Tcp }
}

fn every_rule() -> Vec<FilterRule> {
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    let mut rules = Vec::new();
    for masquerade in [Masquerade::Always, Masquerade::OffCluster, Masquerade::Never] {
        for no_endpoints in [None, Some(NoEndpoints::Reject), Some(NoEndpoints::Drop)] {
            for allowed_sources in
                [None, Some(vec![]), Some(vec![prefix("10.0.0.0/8"), prefix("192.0.2.7/32")])]
            {
                for serves_pods in [false, no_endpoints == Some(NoEndpoints::Drop)] {
                    let allowed_sources = allowed_sources.clone();
                    rules.push(FilterRule {
                        allows_node: allowed_sources.as_ref().is_some_and(|it| !it.is_empty()),
                        allowed_sources,
                        no_endpoints,
                        serves_pods,
                        masquerade,
                    });
                }
            }
        }
    }
    rules
}

#[test]
fn a_table_is_ours_by_its_tag_and_another_layout_has_another_tag() {
    let tags = [PodDetection::Unknown, PodDetection::Networks].map(|it| tag(&it, &[], 1 << 14));
    assert!(tags.iter().all(|it| is_ours(it)));
    assert_ne!(tags[0], tags[1]);
    assert!(!is_ours("") && !is_ours("a table of somebody"));
}

#[test]
fn elements_say_exactly_the_rules_that_they_are_of() {
    let all: BTreeMap<_, _> = every_rule()
        .into_iter()
        .zip(1..)
        .map(|(rule, port)| (at("192.0.2.1", port), rule))
        .collect();
    let elements: BTreeSet<_> = all.iter().flat_map(|(at, rule)| of_rule(*at, rule)).collect();
    assert_eq!(rules_of(&elements), all);
}

#[test]
fn a_transaction_is_framed_and_only_its_last_request_is_acknowledged() {
    let element = Element::Vip("192.0.2.1".parse().unwrap());
    let (bytes, last) = change([], &[element]).into_bytes(7);
    assert_eq!(last, 8);
    let hex = |bytes: &[u8]| {
        let words = bytes.chunks(4).map(|it| it.iter().map(|it| format!("{it:02x}")).collect());
        words.collect::<Vec<String>>().join(" ")
    };
    let expected = [
        // The begin of the batch, for subsystem 10.
        "14000000 10000100 07000000 00000000 0000000a",
        // New elements, acknowledged, of IPv4: the table, the set, the list.
        "48000000 0c0a0504 08000000 00000000 02000000",
        "12000100 66616972 7761792d 70726f78 79000000 09000200 76697073 00000000",
        "14000380 10000180 0c000180 08000100 c0000201",
        "14000000 11000100 09000000 00000000 0000000a",
    ];
    assert_eq!(hex(&bytes), expected.join(" "));
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let mut elements: BTreeSet<Element> = every_rule()
        .into_iter()
        .zip(1..)
        .flat_map(|(it, port)| of_rule(at("192.0.2.1", port), &it))
        .collect();
    elements.extend([Element::Vip("192.0.2.1".parse().unwrap())]);
    let (bytes, _) = change([], &elements).into_bytes(1);
    let mut read = BTreeSet::new();
    for answer in answers(&bytes) {
        let Content::Payload(payload) = answer.unwrap().content else { continue };
        // Of each list only the set that it is of makes sense; its name stands in it.
        let Some((_, set)) =
            crate::message::attributes(payload.get(4..).unwrap_or_default()).nth(1)
        else {
            continue;
        };
        let name = String::from_utf8(set.to_vec()).unwrap();
        read.extend(listed(payload, Family::Ipv4, name.trim_end_matches('\0')));
    }
    assert_eq!(read, elements);
}

#[test]
fn whatever_is_cut_off_is_read_without_a_panic() {
    let elements: BTreeSet<_> =
        every_rule().iter().flat_map(|it| of_rule(at("192.0.2.1", 1), it)).collect();
    let (bytes, _) = change([], &elements).into_bytes(1);
    for end in 0..bytes.len() {
        for set in super::elements::READ {
            listed(bytes.get(16..end).unwrap_or_default(), Family::Ipv6, set).clear();
        }
    }
}
