//! Rules for every object, and for kinds that have few.

use super::row::{
    KUBERNETES, METALLB, OURS, PEER, Row, advertisement, all, community, labelled, layer2,
    manifest, peer, pool, profile, row, service,
};

fn with_selector(selector: &str) -> String {
    peer("new", &format!("{PEER}, nodeSelectors: [{selector}]"))
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn every() -> Vec<Row> {
    let good_pool = pool("new", "addresses: [203.0.113.0/24]");
    vec![
        row("object-yaml", OURS, "A file is YAML, or JSON", "a: [1, 2").refused("YAML"),
        row("object-kind", OURS, "A kind of metallb.io exists", manifest("metallb.io/v1beta1", "Router", "x", "")).refused("is not a kind of metallb.io"),
        row("object-version", METALLB, "A kind has this version", manifest("metallb.io/v7", "BGPPeer", "x", "spec: {}")).refused("is not supported for BGPPeer"),
        row("object-group", OURS, "Its group is metallb.io", good_pool.replace("metallb.io", "metalb.io")).refused("metalb.io/v1beta1 is not supported for IPAddressPool; use metallb.io/v1beta1"),
        row("object-group-missing", OURS, "It has a group", good_pool.replace("metallb.io/", "")).refused("v1beta1 is not supported for IPAddressPool"),
        row("object-other-group", OURS, "Kinds of other groups are ignored", manifest("apps/v1", "Deployment", "x", "spec: {}")),
        row("object-name", KUBERNETES, "A name is lower case", good_pool.replace("new", "New")).refused("lower-case"),
        row("object-name-missing", KUBERNETES, "An object has a name", good_pool.replace("{name: new}", "{}")).refused("metadata.name: is missing"),
        row("object-namespace", KUBERNETES, "A namespace is a DNS label", good_pool.replace("name: new", "name: new, namespace: a.b")).refused("is not a namespace"),
        row("object-field", OURS, "A field of our kinds is known", pool("new", "addresses: [203.0.113.0/24], autoAsign: true")).refused("did you mean autoAssign?"),
        row("object-field-top", OURS, "Beside spec there are only the usual fields", format!("{good_pool}sepc: {{}}\n")).refused("did you mean spec?"),
        row("object-field-type", KUBERNETES, "A value has the type of its field", pool("new", "addresses: [203.0.113.0/24], autoAssign: 'yes'")).refused("true or false"),
        row("object-field-twice", OURS, "A field is given once", pool("new", "addresses: [203.0.113.0/24], autoAssign: true, autoAssign: true")).refused("lines"),
        row("object-twice", OURS, "An object is in one document", all(&[&good_pool, &good_pool])).refused("is defined already"),
        row("object-items", OURS, "A list has its objects in items", format!("apiVersion: v1\nkind: List\nitem:\n- {}", good_pool.trim_end().replace('\n', "\n  "))).refused("List: items: is missing"),
        row("object-items-twice", OURS, "It has items once", "apiVersion: v1\nkind: List\nitems: []\nitems: []\n").refused("lines 3 and 4"),
        row("object-items-list", OURS, "Its items are a list", "apiVersion: metallb.io/v1beta1\nkind: IPAddressPoolList\nitems: {metadata: {name: new}}\n").refused("is not a list"),
        row("object-number", OURS, "A number is not octal to some parsers and decimal to others", advertisement("new", "ipAddressPools: [public], med: 010")).refused("010 begins with 0"),
        row("object-breaks", OURS, "An object that breaks keeps its last good version", advertisement("new", "ipAddressPools: [public], localPref: x")).after(advertisement("new", "ipAddressPools: [public]")).refused("spec.localPref"),
        row("selector-twice", METALLB, "A list has each selector once", with_selector("{matchLabels: {a: b}}, {matchLabels: {a: b}}")).refused("entry [0]"),
        row("selector-operator", METALLB, "An operator is one of four", with_selector("{matchExpressions: [{key: a, operator: Is, values: [b]}]}")).refused("NotIn"),
        row("selector-values", KUBERNETES, "In and NotIn have values", with_selector("{matchExpressions: [{key: a, operator: In}]}")).refused("values: is missing"),
        row("selector-no-values", KUBERNETES, "Exists and DoesNotExist have none", with_selector("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}")).refused("left out"),
        row("selector-value-twice", METALLB, "An expression has each value once", with_selector("{matchExpressions: [{key: a, operator: In, values: [b, b]}]}")).refused("given twice"),
        row("selector-values-sorted", METALLB, "The order of values makes no other selector", with_selector("{matchExpressions: [{key: a, operator: In, values: [b, c]}]}, {matchExpressions: [{key: a, operator: In, values: [c, b]}]}")).refused("entry [0]"),
        row("selector-forms", METALLB, "The same in another form is another selector", with_selector("{matchLabels: {a: b}}, {matchExpressions: [{key: a, operator: In, values: [b]}]}")),
        row("object-label", KUBERNETES, "A label of an object has a name and a value that Kubernetes allows", good_pool.replace("{name: new}", "{name: new, labels: {row: 7 b}}")).refused("metadata.labels.row: \"7 b\" is not a label value"),
        row("selector-label", METALLB, "A label has a name that Kubernetes allows", with_selector("{matchExpressions: [{key: 'a b', operator: Exists}]}")).refused("is not a label name"),
        row("selector-label-prefix", METALLB, "The prefix of a label name is a DNS name", with_selector("{matchLabels: {A/b: c}}")).refused("matchLabels[A/b]: \"A/b\" is not a label name"),
        row("selector-label-value", METALLB, "A label has a value that Kubernetes allows", with_selector("{matchLabels: {example.com/row_1.x: '-1'}}")).refused("is not a label value"),
    ]
}

fn secret(rest: &str) -> String {
    manifest("v1", "Secret", "key", rest)
}

fn signed() -> String {
    profile("new", "authentication: {type: sha1, keyID: 1, secret: {name: key, key: short}}")
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn profiles() -> Vec<Row> {
    vec![
        row("profile-interval", METALLB, "Intervals are 10 to 60000 ms", profile("new", "receiveInterval: 9")).refused("10 to 60000"),
        row("profile-multiplier", METALLB, "detectMultiplier is 2 to 255", profile("new", "detectMultiplier: 1")).refused("2 to 255"),
        row("profile-ttl", METALLB, "minimumTtl is 1 to 254", profile("new", "minimumTtl: 255")).refused("1 to 254"),
        row("profile-empty", METALLB, "Everything has a default", profile("new", "")),
        row("profile-authentication-type", "RFC 5880", "Keys are SHA1", profile("new", "authentication: {type: md5, keyID: 1, secret: {name: a, key: b}}")).refused("sha1 or meticulous-sha1"),
        row("profile-authentication", "RFC 5880", "Keys have 1 to 20 bytes", all(&[&signed(), &secret("stringData: {short: twenty-bytes-at-most}")])),
        row("profile-authentication-missing", "RFC 5880", "The key exists", signed()).refused("no Secret default/key with a usable key short"),
        row("profile-authentication-long", "RFC 5880", "A key of 21 bytes is not usable", all(&[&signed(), &secret("stringData: {short: twenty-bytes-and-more.}")])).refused("expected 1 to 20 bytes"),
        row("profile-authentication-vanishes", OURS, "A profile outlives its Secret", signed()).after(all(&[&signed(), &secret("stringData: {short: key}")])).refused("no Secret default/key"),
        row("profile-name", OURS, "Names of BFDProfiles are unique, whatever their namespaces are", all(&[&profile("new", ""), &profile("new", "").replace("name: new", "name: new, namespace: lb")])).refused("expected another name"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn layer2_advertisements() -> Vec<Row> {
    let l2 = |fields: &str| layer2("new", &format!("ipAddressPools: [public], {fields}"));
    vec![
        row("layer2-pool-unknown", OURS, "The pools that it names exist", layer2("new", "ipAddressPools: [nobody]")).warned("no IPAddressPool nobody is in force"),
        row("layer2-pool-selector", OURS, "Its selectors select a pool", layer2("new", "ipAddressPoolSelectors: [{matchLabels: {tier: gold}}]")).warned("selects none of the IPAddressPools in force"),
        row("layer2-nodes", OURS, "It selects a node, where nodes are given", all(&[&l2("nodeSelectors: [{matchLabels: {rack: z}}]"), &labelled("Node", "one", "rack: a")])).warned("selects none of the nodes given"),
        row("layer2-pool-twice", METALLB, "It names each pool once", layer2("new", "ipAddressPools: [public, public]")).refused("given twice"),
        row("layer2-weight", METALLB, "A preference weighs 1 to 100", l2("preferredNodeSelectors: [{weight: 0, preference: {matchLabels: {a: b}}}]")).refused("1 to 100"),
        row("layer2-preference", METALLB, "A preference selects nodes", l2("preferredNodeSelectors: [{weight: 1}]")).refused("which nodes are better"),
        row("layer2-bind", OURS, "bind is true or false", l2("bind: always")).refused("spec.bind"),
        row("layer2-preference-twice", OURS, "A preference is given once", l2("preferredNodeSelectors: [{weight: 1, preference: {matchLabels: {a: b}}}, {weight: 1, preference: {matchLabels: {a: b}}}]")).refused("given twice"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn communities() -> Vec<Row> {
    let new = |alias: &str, value: &str| community("new", alias, value);
    let two = new("one", "1:1");
    let two = two.replace("value: '1:1'}", "value: '1:1'}, {name: one, value: '1:2'}");
    vec![
        row("community-twice", METALLB, "An alias is defined once in all objects", new("customers", "1:1")).refused("Community/names already"),
        row("community-twice-inside", METALLB, "An alias is defined once in an object", two).refused("one"),
        row("community-number", METALLB, "A community is two numbers of 16 bits", new("one", "65536:1")).refused("65001:100"),
        row("community-large", METALLB, "A large community is three numbers of 32 bits", new("one", "large:1:2")).refused("large:65001:1:2"),
        row("community-well-known", METALLB, "An alias may be the name of a well-known community", new("no-export", "1:1")).warned("no-export now means the value given here"),
        row("community-known-value", OURS, "An alias is not another community", new("'1:2'", "1:1")).refused("another name"),
        row("community-alias-clashes", OURS, "An edit defines no alias that another object has", new("customers", "1:1")).after(new("one", "1:1")).refused("Community/names already"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn configurations() -> Vec<Row> {
    let servers = |servers: &str| {
        manifest("fairway.dev/v1beta1", "BGPConfiguration", "new", &format!("spec: {{rpki: {{servers: [{servers}]}}}}"))
    };
    let stations = |stations: &str| {
        manifest("fairway.dev/v1beta1", "BGPConfiguration", "new", &format!("spec: {{bmp: {{stations: [{stations}]}}}}"))
    };
    let many: Vec<String> = (1..=17).map(|number| format!("{{address: 192.0.2.{number}}}")).collect();
    vec![
        row("configuration-server", OURS, "A server of RPKI is an address or a DNS name", servers("{address: 192.0.2.999}")).refused("an IP address or a DNS name"),
        row("configuration-server-address", OURS, "A server of RPKI has an address", servers("{port: 323}")).refused("is missing"),
        row("configuration-server-port", OURS, "The port of a server is 1 to 65535", servers("{address: '2001:db8::1', port: 65536}")).refused("from 1 to 65535"),
        row("configuration-server-twice", OURS, "A server is given once", servers("{address: rpki.example}, {address: rpki.example, port: 323}")).refused("given twice"),
        row("configuration-servers", OURS, "There are 16 servers at most", servers(&many.join(", "))).refused("at most 16"),
        row("configuration-station", OURS, "A BMP station is an address or a DNS name", stations("{address: 192.0.2.999}")).refused("an IP address or a DNS name"),
        row("configuration-station-address", OURS, "A BMP station has an address", stations("{port: 1790}")).refused("is missing"),
        row("configuration-station-port", OURS, "The port of a BMP station is 1 to 65535", stations("{address: bmp.example, port: 0}")).refused("from 1 to 65535"),
        row("configuration-station-monitor", OURS, "A BMP station is told of known tables", stations("{address: bmp.example, monitor: [ribIn]}")).refused("adjRIBOutPostPolicy or locRIB"),
        row("configuration-station-interval", OURS, "Statistics are reported every 5 seconds at most", stations("{address: bmp.example, statsIntervalSeconds: 4}")).refused("expected 0 or at least 5"),
        row("configuration-station-twice", OURS, "A BMP station is given once", stations("{address: bmp.example}, {address: bmp.example, port: 11019, monitor: [locRIB]}")).refused("given twice"),
        row("configuration-stations", OURS, "There are 8 BMP stations at most", stations(&many.join(", "))).refused("at most 8"),
        row("configuration-group", OURS, "BGPConfiguration is of the group fairway.dev", servers("").replace("fairway.dev", "metallb.io")).refused("use fairway.dev/v1beta1"),
        row("configuration-kind", OURS, "A kind of the group fairway.dev exists", servers("").replace("BGPConfiguration", "BGPConfig")).refused("BGPConfig is not a kind of fairway.dev"),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn services() -> Vec<Row> {
    let annotated = |annotation: &str, fields: &str| {
        let annotations = format!("name: web, annotations: {{{annotation}}}");
        service("web", fields).replace("name: web", &annotations)
    };
    let wants = |addresses: &str, fields: &str| {
        annotated(&format!("metallb.io/loadBalancerIPs: '{addresses}'"), fields)
    };
    vec![
        row("service-two-of-a-family", METALLB, "It asks for one address of each family at most", wants("192.0.2.1,192.0.2.2", "")).refused("at most one of each"),
        row("service-address", METALLB, "What it asks for are addresses", wants("soon", "")).refused("is not an IP address"),
        row("service-two-places", METALLB, "It asks in one place", wants("192.0.2.1", ", loadBalancerIP: 192.0.2.1")).refused("cannot both"),
        row("service-family", METALLB, "It asks for addresses of its families", wants("192.0.2.1", ", ipFamilies: [IPv6]")).refused("IPv6"),
        row("service-families", KUBERNETES, "SingleStack is one family", service("web", ", ipFamilies: [IPv4, IPv6], ipFamilyPolicy: SingleStack")).refused("SingleStack"),
        row("service-policy", KUBERNETES, "externalTrafficPolicy is Cluster or Local", service("web", ", externalTrafficPolicy: local")).refused("Cluster or Local"),
        row("service-type", KUBERNETES, "A type exists", service("web", "").replace("LoadBalancer", "Loadbalancer")).refused("is not allowed"),
        row("service-port", KUBERNETES, "A port is 1 to 65535", service("web", "").replace("80", "0")).refused("1 to 65535"),
        row("service-annotation-unknown", OURS, "An annotation of metallb.io is known", annotated("metallb.io/adress-pool: public", "")).warned("did you mean metallb.io/address-pool?"),
        row("service-annotation-old", METALLB, "Annotations begin with metallb.io", annotated("metallb.universe.tf/address-pool: public", "")).warned("metallb.io/address-pool"),
        row("service-pool-unknown", METALLB, "The pool that it asks for exists", annotated("metallb.io/address-pool: nobody", "")).warned("nobody").by_check(),
        row("service-pools", OURS, "Two pools are named by two names", annotated("fairway.dev/address-pools: 'public,public'", "")).refused("the names of two pools"),
        row("service-pool-or-pools", OURS, "It names one pool, or two", annotated("metallb.io/address-pool: public, fairway.dev/address-pools: 'public,other'", "")).refused("cannot both be set"),
        row("service-health-check", OURS, "A health check is a URL with options", annotated("fairway.dev/health-check: 'http://web.example/'", "")).refused("an IP address or localhost"),
        row("service-health-check-option", OURS, "The options of a health check are in bounds", annotated("fairway.dev/health-check: 'tcp://127.0.0.1:80 interval=1ms'", "")).refused("from 100ms to 1h"),
        row("service-cluster-addresses", METALLB, "RequireDualStack needs cluster IPs of both families", service("web", ", ipFamilyPolicy: RequireDualStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]")).refused("expected one of each family"),
        row("service-address-outside", METALLB, "A pool holds the address that it asks for", wants("203.0.113.1", "")).warned("203.0.113.1").by_check(),
        row("service-status", METALLB, "Addresses that no host can use are ignored in a status", format!("{}status: {{loadBalancer: {{ingress: [{{ip: '::ffff:10.0.0.1'}}]}}}}\n", service("web", ""))).warned("is ignored"),
        row("service-announced", METALLB, "A pool and an advertisement are enough", service("web", "")),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn secrets() -> Vec<Row> {
    let secret = |data: &str| {
        manifest("v1", "Secret", "new", &format!("type: kubernetes.io/basic-auth\n{data}"))
    };
    vec![
        row("secret-base64", KUBERNETES, "data is base64", secret("data: {password: '!!'}")).refused("base64"),
        row("secret-password", METALLB, "kubernetes.io/basic-auth has a password", secret("data: {username: YQ==}")).refused("data.password: is missing"),
        row("secret-password-empty", "RFC 2385", "A password is not empty", secret("stringData: {password: ''}")).refused("is empty"),
        row("secret-password-long", "RFC 2385", "The kernel takes 80 bytes", secret(&format!("stringData: {{password: {}}}", "x".repeat(81)))).refused("81 bytes"),
        row("secret-other", OURS, "Secrets of other types are ignored", secret("data: {a: '!'}").replace("basic-auth", "tls")),
    ]
}

#[rustfmt::skip] // One line for each rule.
pub(crate) fn config_maps() -> Vec<Row> {
    let extras = |data: &str| manifest("v1", "ConfigMap", "bgpextras", data);
    let lines = extras("data: {extras: log syslog}");
    let elsewhere = lines.replace("name: bgpextras", "name: bgpextras, namespace: z");
    let two = all(&[&lines, &elsewhere]);
    vec![
        row("extras", METALLB, "bgpextras has lines for FRR", lines.as_str()).frr(None),
        row("extras-native", METALLB, "The native backend ignores them", lines.as_str()).warned("needs --bgp frr"),
        row("extras-other", METALLB, "Other ConfigMaps are ignored", lines.replace("bgpextras", "others")),
        row("extras-missing", OURS, "It has the key extras", extras("data: {extra: log syslog}")).frr(None).warned("data.extras: is missing"),
        row("extras-text", KUBERNETES, "The lines are text", extras("data: {extras: [log syslog]}")).frr(None).refused("data.extras"),
        row("extras-control", OURS, "They have no control characters", extras(r#"data: {extras: "log syslog\u0000"}"#)).frr(None).refused("control character U+0000"),
        row("extras-two", OURS, "FRR has one configuration", two.as_str()).frr(None).refused("there is another ConfigMap/bgpextras in namespace default"),
        row("extras-two-edit", OURS, "A second one never replaces the first", two.as_str()).after(elsewhere.as_str()).frr(None).refused("there is another ConfigMap/bgpextras in namespace z"),
    ]
}
