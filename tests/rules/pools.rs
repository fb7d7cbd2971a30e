//! Rules for IPAddressPools.

use super::row::{
    KUBERNETES, METALLB, OURS, Row, advertisement, all, labelled, layer2, pool, row, service,
};

fn new(fields: &str) -> String {
    all(&[&pool("new", fields), &advertisement("new", "ipAddressPools: [new]")])
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn rows() -> Vec<Row> {
    let kept = |fields: &str| new(&format!("addresses: [203.0.113.0/24], serviceAllocation: {{{fields}}}"));
    let aggregated = |addresses: &str| {
        all(&[&pool("new", &format!("addresses: [{addresses}]")), &advertisement("new", "ipAddressPools: [new], aggregationLength: 26")])
    };
    let everything = advertisement("every", "aggregationLength: 26, peers: [second]");
    let gold = "addresses: [203.0.113.0/24]";
    let sharing = |labels: &str| {
        all(&[
            &pool("new", gold).replace("name: new", &format!("name: new, labels: {{{labels}}}")),
            &advertisement("one", "ipAddressPools: [new]"),
            &advertisement("two", "ipAddressPoolSelectors: [{matchLabels: {tier: gold}}], localPref: 200"),
            &pool("gold", "addresses: [192.0.2.128/25]").replace("name: gold", "name: gold, labels: {tier: gold}"),
        ])
    };
    vec![
        row("pool-addresses", METALLB, "addresses is given", pool("new", "autoAssign: true")).refused("addresses: is missing"),
        row("pool-addresses-empty", METALLB, "addresses is not empty", pool("new", "addresses: []")).refused("is empty"),
        row("pool-prefix", METALLB, "A prefix is as long as its family allows", pool("new", "addresses: [10.0.0.0/33]")).refused("at most 32"),
        row("pool-range-order", METALLB, "A range begins before it ends", pool("new", "addresses: [10.0.0.9-10.0.0.1]")).refused("ends before"),
        row("pool-range-family", METALLB, "A range is of one family", pool("new", "addresses: ['10.0.0.9-2001:db8::1']")).refused("family"),
        row("pool-range-dash", METALLB, "An entry is a prefix or a range", pool("new", "addresses: [10.0.0.9]")).refused("first-last"),
        row("pool-range-blanks", METALLB, "Blanks around the dash are allowed", new("addresses: ['203.0.113.1 - 203.0.113.9']")),
        row("pool-families", METALLB, "A pool may hold both families", new("addresses: [203.0.113.0/24, '2001:db8::/64']")),
        row("pool-overlap-inside", METALLB, "No address is twice in a pool", pool("new", "addresses: [10.0.0.0/24, 10.0.0.7-10.0.0.8]")).refused("entry [0]"),
        row("pool-overlap-between", METALLB, "No address is in two pools", pool("new", "addresses: [10.0.0.0/24, 198.51.100.7-198.51.100.8]")).refused("overlaps 198.51.100.0-198.51.100.255 of IPAddressPool/public"),
        row("pool-overlap-edit", METALLB, "No edit takes addresses of another pool", new("addresses: [198.51.100.0/25]")).after(new("addresses: [203.0.113.0/24]")).refused("of IPAddressPool/public"),
        row("pool-neighbours", METALLB, "Pools may touch", new("addresses: [198.51.101.0/24]")),
        row("pool-name", OURS, "Names of IPAddressPools are unique, whatever their namespaces are", pool("public", "addresses: [203.0.113.0/24]")).refused("expected another name"),
        row("pool-host-bits", METALLB, "A prefix with host bits is the network around it", new("addresses: [203.0.113.7/24]")).warned("it is read as 203.0.113.0/24"),
        row("pool-hosts", OURS, "It holds only addresses that hosts can use", pool("new", "addresses: [0.0.0.0/8]")).refused("holds 0.0.0.0-0.0.0.0"),
        row("pool-hosts-multicast", OURS, "No multicast", pool("new", "addresses: [223.255.255.0-224.0.0.9]")).refused("holds 224.0.0.0-224.0.0.9, which no host can use"),
        row("pool-hosts-mapped", OURS, "No IPv4-mapped IPv6 addresses", pool("new", "addresses: ['::ffff:203.0.113.0/120']")).refused("which no host can use"),
        row("pool-reserved-outside", OURS, "What is reserved is in the pool", new("addresses: [203.0.113.0/24], reserved: [192.0.2.1-192.0.2.2]")).warned("is not part of the pool"),
        row("pool-reserved-bits", OURS, "What is reserved has no host bits", pool("new", "addresses: [10.0.0.0/24], reserved: [10.0.0.1/25]")).refused("10.0.0.0/25"),
        row("pool-unannounced", OURS, "An advertisement covers it", pool("new", "addresses: [203.0.113.0/24]")).warned("its addresses are not announced"),
        row("pool-layer2-only", METALLB, "An L2Advertisement is one, too", all(&[&pool("new", "addresses: [203.0.113.0/24]"), &layer2("new", "ipAddressPools: [new]")])),
        row("pool-namespace", OURS, "The namespaces that it is restricted to exist, where some are given", all(&[&kept("namespaces: [shop]"), &labelled("Namespace", "web", "team: a")])).warned("no Namespace shop is given"),
        row("pool-namespace-unknown", OURS, "Without Namespace objects any namespace may exist", kept("namespaces: [shop]")),
        row("pool-namespace-selector", OURS, "Its namespaceSelectors select a namespace", all(&[&kept("namespaceSelectors: [{matchLabels: {team: z}}]"), &labelled("Namespace", "web", "team: a")])).warned("selects none of the Namespaces given"),
        row("pool-namespace-label", KUBERNETES, "A namespace has its name as a label", all(&[&kept("namespaceSelectors: [{matchLabels: {kubernetes.io/metadata.name: shop}}]"), &labelled("Namespace", "shop", "team: a")])),
        row("pool-namespace-label-unknown", KUBERNETES, "So has one without a Namespace object", all(&[&kept("namespaceSelectors: [{matchLabels: {kubernetes.io/metadata.name: default}}]"), &service("web", "").replace("name: web", "name: web, annotations: {metallb.io/address-pool: new}")])).by_check(),
        row("pool-namespace-twice", METALLB, "It names each namespace once", kept("namespaces: [shop, shop]")).refused("given twice"),
        row("pool-selector-twice", METALLB, "It has each serviceSelector once", kept("serviceSelectors: [{matchLabels: {a: b}}, {matchLabels: {a: b}}]")).refused("entry [0]"),
        row("pool-priority", METALLB, "A priority is a number", kept("priority: high")).refused("priority"),
        row("pool-shrinks", OURS, "An edit leaves it large enough for its advertisements", aggregated("203.0.113.0/28")).after(aggregated("203.0.113.0/24")).refused("IPAddressPool/new: spec.addresses: is too small for BGPAdvertisement/new"),
        row("pool-too-small-new", OURS, "A new one is large enough for advertisements of all pools", all(&[&everything, &pool("new", "addresses: [203.0.113.0/28]")])).after(everything.clone()).refused("is too small for BGPAdvertisement/every"),
        row("pool-joins-contradiction", OURS, "No edit brings it under advertisements that contradict each other", sharing("tier: gold")).after(sharing("tier: iron")).refused("IPAddressPool/new: metadata.labels"),
    ]
}
