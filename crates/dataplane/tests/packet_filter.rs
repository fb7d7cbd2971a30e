//! Our table in the packet filter of this kernel, with nft as the witness. Needs root.

#![allow(clippy::disallowed_methods)] // Waits for the kernel.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // What fails here fails the test.

mod scene;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use fairway_dataplane::Nftables;
use fairway_dataplane::nftables::elements::{Element, change, of_rule, rules_of};
use fairway_dataplane::nftables::{
    Family, OUTGOING_TABLE, OUTGOING_TAG, PodDetection, layout, outgoing, remove, remove_table,
};
use fairway_model::TransportProtocol;
use fairway_proxy::{FilterRule, Hairpin, Masquerade, NoEndpoints, VirtualAddress};

use scene::{alone, at, real};

/// What nft shows of a table, without its braces and indents.
fn shown(family: &str) -> Vec<String> {
    shown_of(family, "fairway-proxy")
}

fn shown_of(family: &str, table: &str) -> Vec<String> {
    let output = Command::new("nft").args(["list", "table", family, table]).output();
    let output = output.expect("nft is not installed");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|it| it.trim().to_owned()).collect()
}

const MARK: u32 = 1 << 14;

#[test]
fn our_table_has_its_rules_and_is_gone_without_a_trace() {
    alone(|| {
        let mut filter = Nftables::open().unwrap();
        for family in Family::ALL {
            assert_eq!(filter.elements(family).unwrap(), None);
            assert_eq!(filter.tag(family).unwrap(), None);
            filter.commit(layout(family, &PodDetection::Networks, MARK, "a tag")).unwrap();
            assert_eq!(filter.elements(family).unwrap(), Some(BTreeSet::new()));
            assert_eq!(filter.tag(family).unwrap().as_deref(), Some("a tag"));
        }
        let lines = shown("ip");
        for line in [
            "ip daddr . meta l4proto . th dport @restricted ip daddr . meta l4proto . th dport . ip saddr != @allowed drop",
            "ct state new ip daddr . meta l4proto . th dport vmap @no-endpoints",
            "ip daddr @vips icmp type echo-request accept",
            "ct state new ip daddr @vips ip daddr . meta l4proto . th dport != @vip-ports jump reject",
            "ct state new ip daddr . meta l4proto . th dport @masq-always meta mark set meta mark | 0x00004000",
            "ct state new ip daddr . meta l4proto . th dport @masq-off-cluster ip saddr != @pods meta mark set meta mark | 0x00004000",
            "ct state new ip saddr @vips ip daddr . meta l4proto . th dport @vip-ports meta mark set meta mark | 0x00004000",
            "ip daddr . meta l4proto . th dport . ip saddr @hairpin masquerade fully-random",
            "type filter hook output priority -110; policy accept;",
            "comment \"a tag\"",
            "type nat hook postrouting priority srcnat; policy accept;",
        ] {
            assert!(lines.iter().any(|it| it == line), "{line}\n{}", lines.join("\n"));
        }
        let lines = shown("ip6");
        let ping = "ip6 daddr @vips icmpv6 type echo-request accept";
        assert!(lines.iter().any(|it| it == ping), "{}", lines.join("\n"));
        for family in Family::ALL {
            filter.commit(remove(family)).unwrap();
            assert_eq!(filter.elements(family).unwrap(), None);
        }
    });
}

/// A rule of each kind.
fn rules() -> [(VirtualAddress, FilterRule); 3] {
    let sources = |texts: &[&str]| Some(texts.iter().map(|it| it.parse().unwrap()).collect());
    let web = at("192.0.2.1", 80, TransportProtocol::Tcp);
    let dns = at("2001:db8::1", 53, TransportProtocol::Udp);
    [
        (
            web,
            FilterRule {
                allowed_sources: sources(&["10.0.0.0/8", "192.0.2.7/32", "203.0.113.0/24"]),
                allows_node: true,
                no_endpoints: None,
                serves_pods: false,
                masquerade: Masquerade::Always,
            },
        ),
        (
            dns,
            FilterRule {
                allowed_sources: sources(&["2001:db8:7::/48"]),
                allows_node: false,
                no_endpoints: Some(NoEndpoints::Drop),
                serves_pods: true,
                masquerade: Masquerade::OffCluster,
            },
        ),
        (
            at("192.0.2.1", 81, TransportProtocol::Sctp),
            FilterRule {
                allowed_sources: None,
                allows_node: false,
                no_endpoints: Some(NoEndpoints::Reject),
                serves_pods: false,
                masquerade: Masquerade::Never,
            },
        ),
    ]
}

#[test]
fn elements_are_changed_together_or_not_at_all_and_read_as_they_are() {
    alone(|| {
        let mut filter = Nftables::open().unwrap();
        for family in Family::ALL {
            filter.commit(layout(family, &PodDetection::Unknown, MARK, "a tag")).unwrap();
        }
        let rules = rules();
        let (web, dns) = (rules[0].0, rules[1].0);
        let pod = Hairpin { real_server: real("10.1.0.1", 8080), protocol: TransportProtocol::Tcp };
        let mut elements: BTreeSet<Element> =
            rules.iter().flat_map(|(at, rule)| of_rule(*at, rule)).collect();
        elements.extend([
            Element::Vip(web.address),
            Element::Vip(dns.address),
            Element::Hairpin(pod),
        ]);
        filter.commit(change([], &elements)).unwrap();
        let read = |filter: &mut Nftables| -> BTreeSet<Element> {
            let families = Family::ALL.into_iter();
            families.flat_map(|family| filter.elements(family).unwrap().unwrap()).collect()
        };
        assert_eq!(read(&mut filter), elements);
        assert_eq!(rules_of(&elements), rules.clone().into());
        let text = shown("ip").join("\n");
        for words in
            ["192.0.2.1 . tcp . 80 . 203.0.113.0/24", "192.0.2.1 . sctp . 81 : goto reject"]
        {
            assert!(text.contains(words), "{words}\n{text}");
        }
        // A verdict is replaced in one transaction.
        let (sctp, rule) = rules[2].clone();
        let other = FilterRule { no_endpoints: Some(NoEndpoints::Drop), ..rule.clone() };
        let (before, after) = (of_rule(sctp, &rule), of_rule(sctp, &other));
        filter.commit(change(before.difference(&after), after.difference(&before))).unwrap();
        assert!(shown("ip").join("\n").contains("192.0.2.1 . sctp . 81 : goto drop"));
        // One that is refused changes nothing.
        let present = read(&mut filter);
        let new = Element::Vip("192.0.2.9".parse().unwrap());
        let missing = Element::Vip("192.0.2.8".parse().unwrap());
        let refused = filter.commit(change([&missing], [&new]));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(2));
        assert_eq!(read(&mut filter), present);
        filter.commit(change(&present, [])).unwrap();
        assert_eq!(read(&mut filter), BTreeSet::new());
    });
}

#[test]
fn thousands_of_elements_are_one_transaction() {
    alone(|| {
        let mut filter = Nftables::open().unwrap();
        filter.commit(layout(Family::Ipv4, &PodDetection::Unknown, MARK, "a tag")).unwrap();
        let elements: BTreeSet<Element> = (0..20_000_u16)
            .map(|it| {
                at(&format!("198.18.{}.{}", it / 250, it % 250 + 1), 80, TransportProtocol::Tcp)
            })
            .flat_map(|at| [Element::VipPort(at), Element::MasqueradeAlways(at)])
            .collect();
        filter.commit(change([], &elements)).unwrap();
        // The kernel makes its table larger in the background, and its lists lack some meanwhile.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let read = filter.elements(Family::Ipv4).unwrap().unwrap();
            assert!(read.is_subset(&elements));
            if read.len() == elements.len() {
                break;
            }
            assert!(Instant::now() < deadline, "{} of {}", read.len(), elements.len());
        }
        // What is there may be added once more.
        filter.commit(change([], &elements)).unwrap();
    });
}

#[test]
fn pods_of_some_pools_leave_with_an_address_of_the_node() {
    alone(|| {
        let mut filter = Nftables::open().unwrap();
        let ipv4 = ["10.244.0.0/14", "10.9.0.64/26"].map(|it| it.parse().unwrap());
        let ipv6 = ["fd00:244::/49".parse().unwrap()];
        // Made twice: the second one replaces the first.
        for translated in [&ipv4[..], &ipv4[..1]] {
            filter.commit(outgoing(Family::Ipv4, translated, &ipv4)).unwrap();
        }
        filter.commit(outgoing(Family::Ipv6, &ipv6, &ipv6)).unwrap();
        let tag = filter.tag_of_table(Family::Ipv4, OUTGOING_TABLE).unwrap();
        assert_eq!(tag.as_deref(), Some(OUTGOING_TAG));
        let lines = shown_of("ip", OUTGOING_TABLE);
        let rules: Vec<&String> = lines.iter().filter(|it| it.starts_with("ip ")).collect();
        assert_eq!(
            rules,
            [
                "ip daddr 10.244.0.0/14 return",
                "ip daddr 10.9.0.64/26 return",
                "ip saddr 10.244.0.0/14 masquerade fully-random",
            ]
        );
        assert!(
            lines
                .iter()
                .any(|it| it == "type nat hook postrouting priority srcnat; policy accept;"),
            "{lines:?}"
        );
        let lines = shown_of("ip6", OUTGOING_TABLE);
        assert!(
            lines.iter().any(|it| it == "ip6 saddr fd00:244::/49 masquerade fully-random"),
            "{lines:?}"
        );
        for family in Family::ALL {
            filter.commit(remove_table(family, OUTGOING_TABLE)).unwrap();
            assert_eq!(filter.tag_of_table(family, OUTGOING_TABLE).unwrap(), None);
        }
    });
}
