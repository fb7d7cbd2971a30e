//! Rules for BGPAdvertisements.

use super::row::{
    METALLB, OURS, Row, advertisement, all, community, labelled, peer, pool, row, service,
};

fn new(fields: &str) -> String {
    advertisement("new", &format!("ipAddressPools: [public], {fields}"))
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("advertisement-length", METALLB, "aggregationLength is 1 to 32", new("aggregationLength: 33")).refused("1 to 32"),
        row("advertisement-length-v6", METALLB, "aggregationLengthV6 is 0 to 128", new("aggregationLengthV6: 129")).refused("0 to 128"),
        row("advertisement-length-zero", METALLB, "aggregationLength is not 0", new("aggregationLength: 0")).refused("1 to 32"),
        row("advertisement-community", METALLB, "A community is written as in 65001:100", new("communities: ['65536:1']")).refused("65001:100"),
        row("advertisement-community-large", METALLB, "A large one is written as in large:65001:1:2", new("communities: ['large:1:2']")).refused("large:65001:1:2"),
        row("advertisement-community-three", METALLB, "One of three numbers begins with large:", new("communities: ['1:2:3']")).refused("large:65001:1:2"),
        row("advertisement-community-twice", METALLB, "It has each community once", new("communities: ['1:1', '1:1']")).refused("given twice"),
        row("advertisement-pool-twice", METALLB, "It names each pool once", advertisement("new", "ipAddressPools: [public, public]")).refused("given twice"),
        row("advertisement-peer-twice", OURS, "It names each peer once", new("peers: [tor, tor]")).refused("given twice"),
        row("advertisement-selector-twice", METALLB, "It has each ipAddressPoolSelector once", new("ipAddressPoolSelectors: [{matchLabels: {a: b}}, {matchLabels: {a: b}}]")).refused("entry [0]"),
        row("advertisement-service-selectors", METALLB, "serviceSelectors need whole addresses", new("aggregationLength: 24, serviceSelectors: [{matchLabels: {a: b}}]")).refused("is allowed only with"),
        row("advertisement-local-pref", METALLB, "localPref has 32 bits", new("localPref: -1")).refused("0 to 4294967295"),
        row("advertisement-prefixes", OURS, "prefixes have no host bits", new("prefixes: [10.0.0.1/8]")).refused("10.0.0.0/8"),
        row("advertisement-prefixes-multicast", "RFC 4271", "prefixes are unicast", new("prefixes: [0.0.0.0/0, 232.0.0.0/8]")).refused("spec.prefixes[1]: 232.0.0.0/8 has no unicast addresses"),
        row("advertisement-pod-cidrs", OURS, "podCIDRs is true or false", new("podCIDRs: [10.0.0.0/24]")).refused("spec.podCIDRs"),
        row("advertisement-pod-blocks", OURS, "podBlocks is true or false", new("podBlocks: [10.0.0.0/24]")).refused("spec.podBlocks"),
        row("advertisement-pod-block-pools", OURS, "podBlockPools needs podBlocks", new("podBlockPools: [v4]")).refused("spec.podBlockPools: is allowed only with podBlocks: true"),
        row("advertisement-pod-block-pool-twice", OURS, "It names each IPPool once", new("podBlocks: true, podBlockPools: [v4, v4]")).refused("given twice"),
        row("advertisement-blackhole", OURS, "blackhole is true or false", new("blackhole: [10.0.0.0/24]")).refused("spec.blackhole"),
        row("advertisement-pod-cidrs-alone", OURS, "With podCIDRs and without selectors of pools and Services it is about these networks alone", advertisement("new", "podCIDRs: true, communities: [blackhole], localPref: 200")),
        row("advertisement-med", OURS, "med has 32 bits", new("med: 4294967296")).refused("0 to 4294967295"),
        row("advertisement-prepend-metallb", METALLB, "asPathPrepend is up to 10 in MetalLB", advertisement("new", "ipAddressPools: [public], aggregationLength: 24, asPathPrepend: 10")),
        row("advertisement-prepend", OURS, "asPathPrepend is 0 to 16", new("asPathPrepend: 17")).refused("0 to 16"),
        row("advertisement-bandwidth", OURS, "linkBandwidth is auto, or bits per second", new("linkBandwidth: much")).refused("expected auto"),
        row("advertisement-pool-unknown", OURS, "The pools that it names exist", advertisement("new", "ipAddressPools: [nobody]")).warned("no IPAddressPool nobody is in force"),
        row("advertisement-peer-unknown", OURS, "The peers that it names exist", new("peers: [tor, nobody]")).warned("no BGPPeer nobody is in force"),
        row("advertisement-pool-selector", OURS, "Its ipAddressPoolSelectors select a pool", new("ipAddressPoolSelectors: [{matchLabels: {tier: gold}}]")).warned("spec.ipAddressPoolSelectors[0]: selects none"),
        row("advertisement-nodes", OURS, "Its nodeSelectors select a node, where nodes are given", all(&[&new("nodeSelectors: [{matchLabels: {rack: z}}]"), &labelled("Node", "one", "rack: a")])).warned("selects none of the nodes given"),
        row("advertisement-empty", METALLB, "Without a spec it announces every pool to every peer", advertisement("new", "")),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn together() -> Vec<Row> {
    let in_rack = |rack: &str| format!("nodeSelectors: [{{matchLabels: {{rack: {rack}}}}}]");
    let racks = all(&[&labelled("Node", "one", "rack: a"), &labelled("Node", "two", "rack: b")]);
    let both_families = pool("both", "addresses: [203.0.113.0/24, '2001:db8::/64']");
    let pair = |first: &str, second: &str| {
        all(&[&both_families, &advertisement("first", &format!("ipAddressPools: [both], {first}")), &advertisement("second", &format!("ipAddressPools: [both], {second}"))])
    };
    let alias = |defined: &str| {
        all(&[&new("communities: [vip]"), &community("more", defined, "64500:7")])
    };
    let chosen = |first: &str, second: &str| {
        let selectors = |label: &str, more: &str| format!("ipAddressPools: [public], serviceSelectors: [{{matchLabels: {{{label}}}}}], {more}");
        let web = service("web", "").replace("name: web", "name: web, labels: {a: b, c: d}");
        let public = pool("public", "addresses: [198.51.100.0/24]");
        let tor = peer("tor", "myASN: 64500, peerASN: 64501, peerAddress: 192.0.2.1");
        all(&[&tor, &public, &web, &advertisement("first", &selectors("a: b", first)), &advertisement("second", &selectors("c: d", second))])
    };
    vec![
        row("advertisement-exceeds", METALLB, "It announces no more than a pool holds", new("aggregationLength: 16")).refused("16 would announce more than IPAddressPool/public holds; expected 24 to 32"),
        row("advertisement-exceeds-v6", METALLB, "Nor of IPv6", all(&[&both_families, &advertisement("new", "ipAddressPools: [both], aggregationLengthV6: 48")])).refused("expected 64 to 128"),
        row("advertisement-fills", METALLB, "It may announce a pool as a whole", all(&[&pool("new", "addresses: [203.0.113.0/24]"), &advertisement("new", "ipAddressPools: [new], aggregationLength: 24")])),
        row("advertisement-in-part", METALLB, "A range may be coarser in part", all(&[&pool("new", "addresses: [203.0.113.0-203.0.113.66]"), &advertisement("new", "ipAddressPools: [new], aggregationLength: 26")])),
        row("advertisement-exceeds-edit", METALLB, "An edit of its length is checked against its pools", new("aggregationLength: 16, peers: [second]")).after(new("aggregationLength: 32")).refused("expected 24 to 32"),
        row("advertisement-exceeds-both", OURS, "Where length and pool change at once and do not fit, both stay", all(&[&pool("new", "addresses: [203.0.113.0/28]"), &advertisement("new", "ipAddressPools: [new], aggregationLength: 26")])).after(all(&[&pool("new", "addresses: [203.0.113.0/24]"), &advertisement("new", "ipAddressPools: [new], aggregationLength: 25")])).refused("IPAddressPool/new: spec.addresses: is too small"),
        row("advertisement-alias", METALLB, "The aliases that it uses are defined", new("communities: [nobody]")).refused("nobody is not defined"),
        row("advertisement-alias-known", OURS, "Well-known communities need no Community object", new("communities: [no-export]")),
        row("advertisement-alias-known-vanishes", OURS, "An alias does not become a well-known community because its Community object is deleted", new("communities: [blackhole]")).after(all(&[&new("communities: [blackhole]"), &community("more", "blackhole", "64500:666")])).refused("blackhole is not defined"),
        row("advertisement-alias-vanishes", OURS, "Its routes outlive the Community object of an alias", new("communities: [vip]")).after(alias("vip")).refused("vip is not defined"),
        row("advertisement-alias-renamed", OURS, "Its routes outlive the renaming of an alias", alias("gold")).after(alias("vip")).refused("vip is not defined"),
        row("advertisement-preference", METALLB, "Two give one route one localPref", new("localPref: 200")).refused("is 200, but unset in BGPAdvertisement/all"),
        row("advertisement-preference-edit", METALLB, "An edit contradicts no other", new("localPref: 200")).after(new("communities: ['1:1']")).refused("is 200, but unset in BGPAdvertisement/all"),
        row("advertisement-preference-zero", METALLB, "0 means unset", new("localPref: 0")),
        row("advertisement-preference-length", METALLB, "Prefixes of other lengths are other routes", new("localPref: 200, aggregationLength: 24")),
        row("advertisement-preference-lengths", METALLB, "Of a pool of both families both lengths must differ", pair("", "localPref: 200, aggregationLength: 24")).refused("is 200, but unset in BGPAdvertisement/first"),
        row("advertisement-preference-lengths-both", METALLB, "Where both differ they do not meet", pair("", "localPref: 200, aggregationLength: 24, aggregationLengthV6: 64")),
        row("advertisement-preference-peers", METALLB, "Lists of other peers do not meet", all(&[&peer("second", "myASN: 64500, peerASN: 64502, peerAddress: 192.0.2.9"), &new("localPref: 200, peers: [second]")])),
        row("advertisement-preference-all-peers", METALLB, "No list is a list of all", pair("peers: [tor]", "localPref: 200")).refused("is 200, but unset"),
        row("advertisement-preference-nodes", METALLB, "Other nodes do not meet", all(&[&pair(&in_rack("a"), &format!("localPref: 200, {}", in_rack("b"))), &racks])),
        row("advertisement-preference-nodes-unknown", METALLB, "Without Node objects they may meet", pair(&in_rack("a"), &format!("localPref: 200, {}", in_rack("b")))).refused("is 200, but unset"),
        row("advertisement-preference-services", METALLB, "With serviceSelectors the plan decides", new("localPref: 200, serviceSelectors: [{matchLabels: {a: b}}]")),
        row("advertisement-metric", OURS, "Two give one route one med", new("med: 0")).refused("is 0, but unset in BGPAdvertisement/all"),
        row("advertisement-prepends", OURS, "Two give one route one asPathPrepend", new("asPathPrepend: 3")).refused("is 3, but unset in BGPAdvertisement/all"),
        row("advertisement-bandwidths", OURS, "Two give one route one linkBandwidth", new("linkBandwidth: auto")).refused("is auto, but unset in BGPAdvertisement/all"),
        row("advertisement-prefixes-alone", OURS, "With prefixes and without selectors of pools and Services it is about its prefixes alone", advertisement("new", "prefixes: [203.0.113.66/32], communities: [blackhole], localPref: 200")),
        row("advertisement-prefixes-and-pools", OURS, "With such a selector it announces Services too", new("prefixes: [203.0.113.66/32], localPref: 200")).refused("is 200, but unset in BGPAdvertisement/all"),
        row("advertisement-union", METALLB, "Communities add up", new("communities: ['1:1', 'large:1:2:3']")),
        row("advertisement-nodes-meet", OURS, "Advertisements that meet because a node changed both stay", all(&[&pair(&in_rack("a"), "localPref: 200, nodeSelectors: [{matchLabels: {row: b}}]"), &labelled("Node", "one", "rack: a, row: b")])).after(all(&[&pair(&in_rack("a"), "localPref: 200, nodeSelectors: [{matchLabels: {row: b}}]"), &labelled("Node", "one", "rack: a, row: c")])).refused("is 200, but unset"),
        row("advertisement-conflict", METALLB, "A Service that two announce differently is not announced", chosen("localPref: 100", "localPref: 200")).alone().silent("conflictingAdvertisements"),
        row("advertisement-no-conflict", METALLB, "A Service that two announce alike is announced", chosen("localPref: 100", "localPref: 100")).alone(),
        row("advertisement-no-match", METALLB, "A Service that no advertisement selects is not announced", chosen("", "").replace("labels: {a: b, c: d}", "labels: {}")).alone().silent("noMatchingAdvertisement"),
    ]
}
