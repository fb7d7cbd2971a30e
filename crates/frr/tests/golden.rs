//! Rendered configurations, one for each setting.
//!
//! `FAIRWAY_WRITE=1` regenerates them; `make test-frr` loads them into FRR. A name that ends in a version is
//! for FRR from that version on.

#![allow(clippy::unwrap_used, clippy::expect_used)] // What fails here fails the test.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_frr::render::{Rendered, Settings, Site, render};
use fairway_ground::{
    AddPath, AsPathPattern, Asn, BfdSettings, ChosenNextHops, ClientKind, Communities, FamilySet,
    GracefulRestart, HoldTime, ImportPolicy, LinkBandwidth, ListenRange, MaximumPrefixes,
    OriginValidation, Password, PeerKey, Prefix, PrefixFilter, PrefixRange, Remote, RemoteAs, Role,
    RouteMatch, RouteRule, RouteSettings, RouterId, RuleAction, ShutdownMessage,
};
use fairway_seam::{
    Desired, DesiredRoute, DrainState, Extras, PeerBfd, PeerConfig, RouteAttributes,
};

fn asn(number: u32) -> Asn {
    Asn::new(number).unwrap()
}

fn named(name: &str, remote: Remote) -> PeerConfig {
    let key = PeerKey { remote, vrf: None };
    let router_id = RouterId::new(0xC000_0201).unwrap();
    let basis = PeerConfig::new(key, asn(65_001), RemoteAs::Asn(asn(65_010)), router_id);
    PeerConfig { name: name.to_owned(), ..basis }
}

fn address(name: &str, address: &str) -> PeerConfig {
    named(name, Remote::Address(address.parse().unwrap()))
}

fn tor() -> PeerConfig {
    address("tor", "192.0.2.2")
}

fn tor6() -> PeerConfig {
    address("tor6", "2001:db8::2")
}

fn unnumbered() -> PeerConfig {
    let interface = Remote::Interface("eth1".parse().unwrap());
    let remote_as = RemoteAs::External;
    PeerConfig { extended_next_hop: true, remote_as, ..named("leaf", interface) }
}

fn range(prefix: &str) -> PeerConfig {
    let prefix: Prefix = prefix.parse().unwrap();
    let listen_range = Some(ListenRange { prefix, limit: 50 });
    PeerConfig { listen_range, ..named("rack", Remote::Range(prefix)) }
}

fn in_vrf(vrf: &str, peer: PeerConfig) -> PeerConfig {
    PeerConfig { key: PeerKey { vrf: vrf.parse().ok(), ..peer.key }, ..peer }
}

fn internal(peer: PeerConfig) -> PeerConfig {
    PeerConfig { remote_as: RemoteAs::Asn(asn(65_001)), ..peer }
}

fn listed(ranges: &[(&str, Option<u8>, Option<u8>)]) -> PrefixFilter {
    let range = |(prefix, ge, le): &(&str, _, _)| {
        PrefixRange::new(prefix.parse().unwrap(), *ge, *le).unwrap()
    };
    PrefixFilter::Listed(ranges.iter().map(range).collect())
}

fn bfd(settings: BfdSettings) -> Option<PeerBfd> {
    Some(PeerBfd { profile: "fast".to_owned(), settings, strict: false })
}

fn route(prefix: &str, peers: &[&PeerConfig], attributes: RouteAttributes) -> DesiredRoute {
    let peers: BTreeSet<PeerKey> = peers.iter().map(|peer| peer.key).collect();
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(peers),
        attributes: Arc::new(attributes),
    }
}

/// Two prefixes, one of each family, for all peers.
fn to_all(peers: Vec<PeerConfig>, attributes: &RouteAttributes) -> Desired {
    let all: Vec<&PeerConfig> = peers.iter().collect();
    let routes = ["203.0.113.10/32", "2001:db8:ffff::10/128"];
    let routes = routes.map(|prefix| route(prefix, &all, attributes.clone()));
    Desired { routes: routes.into(), peers, ..Desired::default() }
}

fn plain(peers: impl Into<Vec<PeerConfig>>) -> Desired {
    to_all(peers.into(), &RouteAttributes::default())
}

fn attributes() -> RouteAttributes {
    RouteAttributes {
        local_pref: Some(300),
        communities: ["65001:100", "no-export"].map(|it| it.parse().unwrap()).into(),
        large_communities: ["65001:1:2", "65001:1:3"].map(|it| it.parse().unwrap()).into(),
        med: Some(50),
        as_path_prepend: 2,
        link_bandwidth: Some(LinkBandwidth { bits_per_second: 10_000_000_000 }),
    }
}

fn installing(peer: PeerConfig) -> PeerConfig {
    let allowed = PrefixFilter::Everything;
    let import = ImportPolicy { allowed, ..ImportPolicy::default() };
    PeerConfig { install_routes: true, import, ..peer }
}

fn restarting(peer: PeerConfig, restart: u16, long_lived: u32) -> PeerConfig {
    PeerConfig { graceful_restart: GracefulRestart::new(restart, long_lived), ..peer }
}

/// Kinds of neighbours.
fn neighbours() -> Vec<(&'static str, Desired)> {
    let nothing = Desired { routes: Arc::from([]), ..plain([tor()]) };
    let internal_too = PeerConfig { remote_as: RemoteAs::Internal, ..address("b", "192.0.2.4") };
    let external_too = PeerConfig { remote_as: RemoteAs::External, ..address("c", "192.0.2.5") };
    let elsewhere = RouterId::new(0xC633_6401).unwrap();
    let blue = PeerConfig {
        router_asn: asn(65_002),
        local_asn: asn(65_002),
        router_id: elsewhere,
        ..in_vrf("blue", address("blue-tor", "198.51.100.2"))
    };
    vec![
        ("nobody", Desired::default()),
        ("nothing-announced", nothing),
        ("address-ipv4", plain([tor()])),
        ("address-ipv6", plain([tor6()])),
        ("dual-stack", plain([PeerConfig { families: FamilySet::BOTH, ..tor() }])),
        (
            "extended-nexthop",
            plain([PeerConfig { families: FamilySet::BOTH, extended_next_hop: true, ..tor6() }]),
        ),
        ("interface", plain([unnumbered()])),
        ("remote-as", plain([internal(tor()), internal_too, external_too])),
        ("listen-range", plain([tor(), range("198.51.100.0/24")])),
        ("listen-range-ipv6", plain([range("2001:db8:1::/64")])),
        ("vrf", plain([tor(), blue, in_vrf("red", range("198.51.100.0/24"))])),
        (
            "order",
            plain([
                address("a", "192.0.2.10"),
                address("b", "192.0.2.9"),
                tor6(),
                unnumbered(),
                range("198.51.100.0/24"),
            ]),
        ),
    ]
}

/// Settings of sessions.
fn sessions() -> Vec<(&'static str, Desired)> {
    let seconds = Duration::from_secs;
    let timers = PeerConfig {
        hold_time: HoldTime::from_seconds(30).unwrap(),
        keepalive_interval: Some(seconds(5)),
        connect_retry_interval: seconds(120),
        ..tor()
    };
    let without = PeerConfig { hold_time: HoldTime::OFF, ..address("off", "192.0.2.3") };
    let message = ShutdownMessage::new("Wartung über Nacht! #42").ok();
    let silent = ShutdownMessage::new("").ok();
    let source: Option<IpAddr> = "192.0.2.1".parse().ok();
    let hops = NonZeroU8::new(3);
    let local_as = PeerConfig { local_asn: asn(64_999), ..tor() };
    vec![
        ("timers", plain([timers, without])),
        ("port", plain([PeerConfig { port: 1179, ..tor() }])),
        (
            "password",
            plain([PeerConfig { password: Password::new("a!b#c?d\"e'f\\g").ok(), ..tor() }]),
        ),
        ("source", plain([PeerConfig { source_address: source, ..tor() }])),
        ("passive", plain([PeerConfig { passive: true, ..tor() }])),
        ("multihop", plain([PeerConfig { multihop: true, ..tor() }])),
        ("ttl-security", plain([PeerConfig { ttl_security_hops: hops, ..tor() }])),
        ("local-as", to_all(vec![local_as], &attributes())),
        (
            "shutdown",
            plain([
                PeerConfig { shutdown: message, ..tor() },
                PeerConfig { shutdown: silent, ..tor6() },
            ]),
        ),
        (
            "graceful-restart",
            plain([
                restarting(tor(), 240, 3600),
                restarting(tor6(), 240, 3600),
                address("c", "192.0.2.3"),
            ]),
        ),
    ]
}

/// Optional extensions of sessions.
fn extensions() -> Vec<(&'static str, Desired)> {
    let role = |role, role_strict, peer| PeerConfig { role: Some(role), role_strict, ..peer };
    let profile = BfdSettings {
        transmit_interval: Duration::from_millis(100),
        receive_interval: Duration::from_millis(150),
        detect_multiplier: NonZeroU8::new(5).unwrap(),
        echo_interval: Some(Duration::from_millis(20)),
        passive: true,
        minimum_ttl: NonZeroU8::new(200).unwrap(),
        authentication: None,
    };
    let strict = bfd(BfdSettings::default()).map(|bfd| PeerBfd { strict: true, ..bfd });
    let usual =
        bfd(BfdSettings::default()).map(|bfd| PeerBfd { profile: "usual".to_owned(), ..bfd });
    vec![
        (
            "role",
            plain([role(Role::Customer, false, tor()), role(Role::RouteServer, true, tor6())]),
        ),
        (
            "clients",
            plain([
                PeerConfig {
                    client: Some(ClientKind::RouteServer),
                    import: ImportPolicy {
                        own_as_max: 3,
                        keeps_filtered: true,
                        ..ImportPolicy::default()
                    },
                    ..tor()
                },
                PeerConfig {
                    client: Some(ClientKind::Reflector),
                    cluster_id: "192.0.2.8".parse().ok(),
                    ..internal(address("inside", "192.0.2.3"))
                },
            ]),
        ),
        (
            "bfd",
            plain([
                PeerConfig { bfd: bfd(profile), ..tor() },
                PeerConfig { multihop: true, bfd: usual, ..tor6() },
            ]),
        ),
        ("bfd-defaults", plain([PeerConfig { bfd: bfd(BfdSettings::default()), ..tor() }])),
        ("bfd-strict.10.4", plain([PeerConfig { bfd: strict, ..tor() }])),
        (
            "add-path.9.1",
            plain([PeerConfig {
                add_path: AddPath { send: NonZeroU8::new(4), receive: true },
                ..tor()
            }]),
        ),
        (
            "add-path-receive",
            plain([PeerConfig { add_path: AddPath { send: None, receive: true }, ..tor() }]),
        ),
    ]
}

/// Routes of a session.
fn routes() -> Vec<(&'static str, Desired)> {
    let (tor, tor6, inside) = (tor(), tor6(), internal(address("inside", "192.0.2.3")));
    let maximum =
        |warn_percent| Some(MaximumPrefixes { limit: 1000, warn_percent, attribute_bytes: None });
    let import = |allowed, maximum, peer| PeerConfig {
        import: ImportPolicy { allowed, maximum, ..ImportPolicy::default() },
        ..peer
    };
    let filtered = listed(&[
        ("10.0.0.0/8", None, Some(24)),
        ("172.16.0.0/12", Some(16), None),
        ("192.168.0.0/16", None, None),
        ("2001:db8::/32", Some(48), Some(64)),
    ]);
    let both = |peer| PeerConfig { families: FamilySet::BOTH, ..peer };
    let passing = |pass_on, peer| PeerConfig { pass_on, ..peer };
    let next_hops =
        ChosenNextHops { ipv4: "192.0.2.9".parse().ok(), ipv6: "2001:db8::9".parse().ok() };
    let chosen = both(PeerConfig { next_hops, ..tor.clone() });
    let mixed = Desired {
        peers: vec![tor.clone(), inside.clone()],
        routes: [
            route("203.0.113.10/32", &[&tor], attributes()),
            route("203.0.113.10/32", &[&inside], RouteAttributes::default()),
            route("203.0.113.11/32", &[&inside], attributes()),
            route("203.0.113.12/32", &[&tor, &inside], RouteAttributes::default()),
            route("203.0.113.0/24", &[&tor, &inside], RouteAttributes::default()),
        ]
        .into(),
        ..Desired::default()
    };
    let of = |peers: &[PeerConfig]| to_all(peers.to_vec(), &attributes());
    let everything = passing(PrefixFilter::Everything, inside.clone());
    let wide = RouteAttributes {
        link_bandwidth: Some(LinkBandwidth { bits_per_second: 32_000_000_000 }),
        ..RouteAttributes::default()
    };
    let drained = |drain, peers: &[PeerConfig]| Desired { drain, ..of(peers) };
    let transit = import(PrefixFilter::Everything, None, both(tor.clone()));
    let raw = Extras {
        origin: "ConfigMap metallb-system/bgpextras".to_owned(),
        text: "! mine\nrouter bgp 65001\n neighbor 192.0.2.2 advertisement-interval 3\nexit\n"
            .to_owned(),
    };
    vec![
        ("attributes-external", of(std::slice::from_ref(&tor))),
        ("attributes-internal", of(std::slice::from_ref(&inside))),
        ("attributes-by-neighbor", mixed),
        ("bandwidth-narrow", to_all(vec![tor.clone()], &wide)),
        ("bandwidth-wide.10.3", to_all(vec![tor.clone()], &wide)),
        ("next-hop", plain([chosen])),
        ("receive-all", plain([import(PrefixFilter::Everything, maximum(75), tor.clone())])),
        ("receive-filtered", plain([import(filtered.clone(), maximum(80), both(tor.clone()))])),
        (
            "install",
            plain([
                installing(tor.clone()),
                in_vrf("blue", installing(tor6.clone())),
                inside.clone(),
            ]),
        ),
        ("pass-on-all", plain([transit.clone(), everything.clone()])),
        ("pass-on-filtered", plain([transit.clone(), passing(filtered, both(tor6))])),
        ("draining", drained(DrainState::Draining, &[transit.clone(), everything.clone()])),
        ("drained", drained(DrainState::Drained, &[transit, everything])),
        ("extras", Desired { extras: Some(Arc::new(raw.clone())), ..plain([tor.clone()]) }),
        ("beside-extras", Desired { extras: Some(Arc::new(raw)), ..plain([tor]) }),
    ]
}

/// A rule with every condition and setting.
fn whole_rule() -> RouteRule {
    let large = |text: &str| vec![text.parse().unwrap()];
    RouteRule {
        matches: RouteMatch {
            prefixes: [("10.0.0.0/8", None, Some(24)), ("2001:db8::/32", None, Some(48))]
                .map(|(prefix, ge, le)| PrefixRange::new(prefix.parse().unwrap(), ge, le).unwrap())
                .into(),
            as_path: AsPathPattern::new("^65010_(65020|65021)$").ok(),
            communities: Communities {
                standard: ["65001:100", "no-export"].map(|it| it.parse().unwrap()).into(),
                extended: vec!["rt:65001:1".parse().unwrap()],
                large: large("65001:1:2"),
            },
            next_hops: ["192.0.2.0/24", "2001:db8::2/128"].map(|it| it.parse().unwrap()).into(),
            ..RouteMatch::default()
        },
        settings: RouteSettings {
            local_pref: Some(200),
            med: Some(50),
            removed: Communities {
                standard: vec!["65001:7".parse().unwrap()],
                large: large("65001:9:9"),
                ..Communities::default()
            },
            added: Communities {
                standard: vec!["65001:200".parse().unwrap()],
                extended: ["rt:65001:2", "rt:65001:3", "soo:192.0.2.1:4"]
                    .map(|it| it.parse().unwrap())
                    .into(),
                large: large("65001:1:3"),
            },
            prepend: 2,
            ..RouteSettings::default()
        },
        action: RuleAction::Continue,
        ..RouteRule::default()
    }
}

/// Rules about routes.
fn ruled() -> Vec<(&'static str, Desired)> {
    let first = whole_rule();
    let bare = RouteRule {
        settings: RouteSettings { removes_communities: true, ..RouteSettings::default() },
        ..RouteRule::default()
    };
    let last = RouteRule { action: RuleAction::Reject, ..RouteRule::default() };
    let next_hops =
        ChosenNextHops { ipv4: "192.0.2.9".parse().ok(), ipv6: "2001:db8::9".parse().ok() };
    let leaving = RouteRule {
        settings: RouteSettings { next_hops, ..first.settings.clone() },
        ..first.clone()
    };
    let filtered = listed(&[("10.0.0.0/8", None, Some(24)), ("2001:db8::/32", Some(48), Some(64))]);
    let transit = PeerConfig {
        families: FamilySet::BOTH,
        import: ImportPolicy {
            allowed: filtered.clone(),
            rules: [first, bare.clone(), last.clone()].into(),
            ..ImportPolicy::default()
        },
        pass_on: PrefixFilter::Everything,
        pass_on_rules: [leaving.clone(), last.clone()].into(),
        ..tor()
    };
    let inside = PeerConfig {
        import: ImportPolicy {
            allowed: PrefixFilter::Everything,
            rules: [last.clone()].into(),
            ..ImportPolicy::default()
        },
        pass_on: filtered,
        pass_on_rules: [bare, last].into(),
        ..internal(address("inside", "192.0.2.3"))
    };
    let peers = vec![transit, inside];
    let draining = Desired { drain: DrainState::Draining, ..to_all(peers.clone(), &attributes()) };
    let drained = Desired { drain: DrainState::Drained, ..draining.clone() };
    vec![("rules", plain(peers)), ("rules-draining", draining), ("rules-drained", drained)]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The version at the end of a name.
fn version(name: &str) -> Option<(u8, u8)> {
    let (major, minor) = name.split_once('.')?.1.split_once('.')?;
    Some((major.parse().unwrap(), minor.parse().unwrap()))
}

#[test]
fn what_is_rendered_is_what_was_rendered() {
    let cases = [neighbours(), sessions(), extensions(), routes(), ruled()].concat();
    let names: BTreeSet<&str> = cases.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), cases.len());
    let write = std::env::var_os("FAIRWAY_WRITE").is_some();
    let mut different = Vec::new();
    for (name, desired) in &cases {
        let settings = Settings {
            version: version(name),
            site: if name.starts_with("beside") { Site::Beside } else { Site::Alone },
            ..Settings::default()
        };
        let Rendered { text, faults } = render(desired, &settings).unwrap();
        assert_eq!(faults, [], "{name}");
        let path = folder().join(format!("{name}.conf"));
        if write {
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            different.push(*name);
        }
    }
    assert!(
        different.is_empty(),
        "not as in tests/golden: {different:?}; FAIRWAY_WRITE=1 writes them"
    );
    let files = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let unknown = |path: &PathBuf| {
        let stem = path.file_name().and_then(|it| it.to_str()?.strip_suffix(".conf"));
        !stem.is_some_and(|stem| names.contains(stem))
    };
    assert_eq!(files.filter(unknown).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

/// Neighbours that are a hop away, or in the AS, are looked up in the routing table, where a default route counts
/// only if FRR is told so.
#[test]
fn a_neighbour_that_is_not_on_the_link_is_reached_by_a_default_route() {
    let lines = |peers: Vec<PeerConfig>, settings: Settings| {
        let text = render(&Desired { peers, ..Desired::default() }, &settings).unwrap().text;
        let lines = text.lines().filter(|line| line.contains(" nht "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let old = Settings { needs_nht: true, ..Settings::default() };
    let far = PeerConfig { multihop: true, ..tor6() };
    let both = ["ip nht resolve-via-default", "ipv6 nht resolve-via-default"];
    assert_eq!(lines(vec![internal(tor()), far.clone()], old), both);
    assert_eq!(lines(vec![tor(), far.clone()], old), both[1..]);
    assert_eq!(lines(vec![tor(), tor6()], old), both[..0]);
    assert_eq!(lines(vec![far.clone()], Settings::default()), both[..0]);
    // A view resolves nothing.
    assert_eq!(lines(vec![far], Settings { site: Site::Beside, ..old }), both[..0]);
}

#[test]
fn what_a_view_cannot_do_is_said() {
    let settings = Settings { site: Site::Beside, ..Settings::default() };
    let cases = [
        (range("198.51.100.0/24"), "listenRange is not supported where FRR has a `router bgp`"),
        (PeerConfig { passive: true, ..tor() }, "passive is not supported where FRR has"),
        (unnumbered(), "an interface is not supported where FRR has"),
    ];
    for (peer, reason) in cases {
        let desired = Desired { peers: vec![peer], ..Desired::default() };
        let Rendered { text, faults } = render(&desired, &settings).unwrap();
        assert!(!text.contains("router bgp"), "{text}");
        assert!(matches!(&*faults, [it] if it.reason.contains(reason)), "{faults:?}");
    }
}

/// A neighbour that FRR does not support is left out with the reason; the others are unchanged.
#[test]
fn what_frr_cannot_do_is_said_and_the_rest_is_rendered() {
    let key = fairway_ground::AoKey::new(1, 1, fairway_ground::AoAlgorithm::HmacSha1, "key");
    let tcp_ao = fairway_ground::AoKeys::new(vec![key.unwrap()]).unwrap();
    let paths = |send| AddPath { send: NonZeroU8::new(send), receive: false };
    let strict = bfd(BfdSettings::default()).map(|bfd| PeerBfd { strict: true, ..bfd });
    let authentication = fairway_ground::BfdAuthentication::new(
        fairway_ground::BfdAuthenticationKind::Sha1,
        1,
        b"key",
    );
    let signed = BfdSettings { authentication: authentication.ok(), ..BfdSettings::default() };
    let strict_range =
        PeerConfig { role: Some(Role::Peer), role_strict: true, ..range("198.51.100.0/24") };
    let cases = [
        (PeerConfig { tcp_ao, ..tor() }, "TCP-AO"),
        (PeerConfig { add_path: paths(7), ..tor() }, "expected 1 to 6"),
        (PeerConfig { bfd: bfd(signed), ..tor() }, "which has no BFD authentication"),
        (PeerConfig { bfd: strict, ..tor() }, "bfdStrict needs FRR 10.4 or newer; this is 10.3"),
        (PeerConfig { extended_next_hop: false, ..unnumbered() }, "extendedNexthop"),
        (PeerConfig { source_address: "192.0.2.1".parse().ok(), ..unnumbered() }, "sourceAddress"),
        (strict_range, "roleStrict"),
        (PeerConfig { local_asn: asn(64_999), ..internal(tor()) }, "localASN"),
        (
            PeerConfig { router_asn: asn(65_009), local_asn: asn(65_009), ..tor() },
            "myASN is 65009, but 65001 in BGPPeer first",
        ),
        (PeerConfig { router_id: RouterId::new(9).unwrap(), ..tor() }, "routerID"),
        (restarting(tor(), 30, 0), "gracefulRestart is 30s and 0s, but 120s and 0s"),
    ];
    let settings = Settings { version: Some((10, 3)), site: Site::Beside, ..Settings::default() };
    let first = restarting(address("first", "192.0.2.1"), 120, 0);
    let alone = render(&plain([first.clone()]), &settings).unwrap();
    for (bad, reason) in cases {
        let name = format!("BGPPeer {}", bad.name);
        let Rendered { text, faults } = render(&plain([first.clone(), bad]), &settings).unwrap();
        assert_eq!(text, alone.text, "{reason}");
        let [fault] = faults.as_slice() else { panic!("{faults:?}, expected {reason}") };
        assert_eq!(fault.subject, name);
        assert!(fault.reason.contains(reason), "{}", fault.reason);
    }
    let old = Settings { version: Some((8, 4)), ..Settings::default() };
    let several = PeerConfig { add_path: paths(2), ..tor() };
    let faults = render(&plain([several]), &old).unwrap().faults;
    assert_eq!(faults[0].reason, "addPath.send needs FRR 9.1 or newer; this is 8.4");
}

#[test]
fn a_rule_that_frr_cannot_have_is_named_with_its_field() {
    let asks_rpki = RouteRule {
        matches: RouteMatch {
            origin_validation: Some(OriginValidation::Invalid),
            ..RouteMatch::default()
        },
        ..RouteRule::default()
    };
    let piped = RouteRule {
        matches: RouteMatch {
            as_path: AsPathPattern::new("^1| show").ok(),
            ..RouteMatch::default()
        },
        ..RouteRule::default()
    };
    let long = RouteRule {
        settings: RouteSettings { prepend: 11, ..RouteSettings::default() },
        ..RouteRule::default()
    };
    let receiving = |rule: RouteRule| PeerConfig {
        import: ImportPolicy {
            rules: [RouteRule::default(), rule].into(),
            ..ImportPolicy::default()
        },
        ..tor()
    };
    let sending = |rule: RouteRule| PeerConfig { pass_on_rules: [rule].into(), ..tor() };
    let matching = |matches| RouteRule { matches, ..RouteRule::default() };
    let as_path = AsPathPattern::new(r"^\d+$").ok();
    let foreign = matching(RouteMatch { as_path, ..RouteMatch::default() });
    let near = vec!["192.0.2.0/24".parse().unwrap()];
    let by_next_hop = sending(matching(RouteMatch { next_hops: near, ..RouteMatch::default() }));
    let next_hops = ChosenNextHops { ipv4: "192.0.2.9".parse().ok(), ipv6: None };
    let behind = PeerConfig { next_hops, ..by_next_hop.clone() };
    let over_ipv6 = PeerConfig { extended_next_hop: true, ..by_next_hop };
    let cases = [
        (receiving(asks_rpki), "toReceive.rules[1].match.originValidation is not supported"),
        (sending(foreign), "toAdvertise.rules[0].match.asPath has 'd', which FRR does not take"),
        (behind, "toAdvertise.rules[0].match.nextHops beside toAdvertise.nextHop is not"),
        (over_ipv6, "toAdvertise.rules[0].match.nextHops beside extendedNexthop is not"),
        (receiving(long), "toReceive.rules[1].set.asPathPrepend 11 is more than FRR supports"),
        (sending(piped), "toAdvertise.rules[0].match.asPath has a | at the end of a word"),
    ];
    for (bad, reason) in cases {
        let faults = render(&plain([bad]), &Settings::default()).unwrap().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}, expected {reason}") };
        assert!(fault.reason.contains(reason), "{}", fault.reason);
    }
}
