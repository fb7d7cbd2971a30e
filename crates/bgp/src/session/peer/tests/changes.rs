//! Every setting is changed while the session is up, and what happens is what the table says.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;

use super::*;
use fairway_ground::{
    AddPath, AoAlgorithm, AoKey, AoKeys, AsPath, BfdSettings, ChosenNextHops, ClientKind,
    GracefulRestart, ImportPolicy, ListenRange, NextHop, Password, PeerKey, PeerKind, PrefixFilter,
    PrefixRange, Role, RouteRule, RouteSettings, ShutdownMessage,
};
use fairway_seam::{ChangeEffect, PathAttributes, PeerBfd, PeerSetting};

/// A neighbour that came from a range, so that this setting can change like the others.
fn dynamic(local: u32, remote: u32, number: u8) -> PeerConfig {
    let prefix = "192.0.2.0/24".parse().unwrap();
    let listen_range = Some(ListenRange { prefix, limit: 100 });
    PeerConfig { listen_range, ..config(local, remote, number) }
}

/// `config` with another value of `field`.
fn changed(field: &str, mut config: PeerConfig) -> PeerConfig {
    let prefix: Prefix = "192.0.2.0/24".parse().unwrap();
    match field {
        "key" => config.key = PeerKey::from(IpAddr::from([192, 0, 2, 99])),
        "name" => config.name.push('x'),
        "listen_range" => config.listen_range = Some(ListenRange { prefix, limit: 7 }),
        "local_asn" => config.local_asn = Asn::new(65_009).unwrap(),
        "router_asn" => config.router_asn = Asn::new(65_009).unwrap(),
        "remote_as" => config.remote_as = RemoteAs::External,
        "router_id" => config.router_id = RouterId::new(9).unwrap(),
        "passive" => config.passive = true,
        "shutdown" => config.shutdown = ShutdownMessage::new("for a while").ok(),
        "port" => config.port = 1179,
        "source_address" => config.source_address = Some([192, 0, 2, 1].into()),
        "hold_time" => config.hold_time = HoldTime::from_seconds(30).unwrap(),
        "keepalive_interval" => config.keepalive_interval = Some(seconds(2)),
        "connect_retry_interval" => config.connect_retry_interval = seconds(77),
        "delay_open_time" => config.delay_open_time = Some(seconds(1)),
        "password" => config.password = Password::new("key").ok(),
        "tcp_ao" => {
            let key = AoKey::new(1, 1, AoAlgorithm::HmacSha1, *b"key").unwrap();
            config.tcp_ao = AoKeys::new(vec![key]).unwrap();
        }
        "multihop" => config.multihop = true,
        "ttl_security_hops" => config.ttl_security_hops = NonZeroU8::new(1),
        "families" => config.families = FamilySet::only(AddressFamily::Ipv4Unicast),
        "extended_next_hop" => config.extended_next_hop = true,
        "add_path" => config.add_path = AddPath { send: None, receive: true },
        "enhanced_refresh" => config.enhanced_refresh = !config.enhanced_refresh,
        "graceful_restart" => config.graceful_restart = Some(GracefulRestart::default()),
        "client" => config.client = Some(ClientKind::Reflector),
        "cluster_id" => config.cluster_id = "192.0.2.8".parse().ok(),
        "role" => config.role = Some(Role::Customer),
        "role_strict" => config.role_strict = true,
        "import" => {
            let ranges = vec![PrefixRange::new(prefix, None, None).unwrap()];
            config.import =
                ImportPolicy { allowed: PrefixFilter::Listed(ranges), ..ImportPolicy::default() };
        }
        "bfd" => {
            config.bfd = Some(PeerBfd {
                profile: "fast".to_owned(),
                settings: BfdSettings::default(),
                strict: true,
            })
        }
        "pass_on" => config.pass_on = PrefixFilter::Everything,
        "install_routes" => config.install_routes = !config.install_routes,
        "pass_on_rules" => {
            let settings = RouteSettings { med: Some(7), ..RouteSettings::default() };
            config.pass_on_rules = [RouteRule { settings, ..RouteRule::default() }].into();
        }
        "next_hops" => {
            let ipv4 = Some(Ipv4Addr::new(192, 0, 2, 77));
            config.next_hops = ChosenNextHops { ipv4, ipv6: None };
        }
        other => panic!("{other} is new: change it here"),
    }
    config
}

/// A route to pass on, which another neighbour announced.
fn learn_elsewhere(rib: &mut LocRib) {
    let source = PathSource {
        key: PeerKey::from(IpAddr::from([192, 0, 2, 9])),
        address: [192, 0, 2, 9].into(),
        kind: PeerKind::External,
        remote_asn: Asn::new(65_003).unwrap(),
        router_id: RouterId::new(3).unwrap(),
        is_client: false,
    };
    let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
    let attributes = PathAttributes::originated(AsPath::sequence(vec![65_003]), next_hop);
    let nlri = "198.51.100.0/24".parse().unwrap();
    rib.learn(
        &Arc::new(source),
        vec![RouteChange { nlri, attributes: Some(Arc::new(attributes)) }],
    );
}

/// What a change of `field` leads to, from what the two sides send and log. `internal` is for a session
/// inside an AS.
fn observed(field: &str, internal: bool) -> ChangeEffect {
    let remote = if internal { 65001 } else { 65002 };
    let mut ours = dynamic(65001, remote, 1);
    if field == "pass_on_rules" {
        ours.pass_on = PrefixFilter::Everything;
    }
    let mut pair = Pair::new(ours, dynamic(remote, 65001, 2));
    pair.originate(0, &["203.0.113.1/32"]);
    pair.run_for(seconds(1));
    pair.assert_up();
    let Side { peer, rib, .. } = &mut pair.sides[0];
    learn_elsewhere(rib);
    let changes = rib.take_changes();
    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    let before = pair.sides[0].peer.messages.sent;
    let now = pair.now;
    let Side { peer, rib, log, .. } = &mut pair.sides[0];
    log.clear();
    peer.reconfigure(now, changed(field, peer.config().clone()));
    peer.announce_all(rib);
    pair.settle();
    let after = pair.sides[0].peer.messages.sent;
    let came_down = pair.sides[0].log.iter().any(|line| line.starts_with("down: "));
    let said = |subcode: &str| pair.sides[0].log.iter().any(|line| line.contains(subcode));
    let is_waiting = pair.sides[0].peer.next_deadline().is_some();
    match () {
        () if came_down && said("(6/6)") => {
            assert!(is_waiting || pair.states()[0] > SessionState::Active, "{field}: restarts");
            ChangeEffect::NewSession
        }
        () if came_down && said("(6/2)") => {
            assert!(!is_waiting, "{field}: waits for the operator");
            ChangeEffect::Down
        }
        () if came_down => panic!("{field}: {:?}", pair.sides[0].log),
        () if after.route_refreshes > before.route_refreshes => ChangeEffect::AsksAgain,
        () if after.updates > before.updates => ChangeEffect::SaysAgain,
        () => {
            assert_eq!(after, before, "{field}: says nothing");
            ChangeEffect::Nothing
        }
    }
}

#[test]
fn every_setting_changes_a_live_session_as_the_table_says() {
    for PeerSetting { field, effect, .. } in PeerSetting::ALL {
        let [external, internal] = match effect {
            // The core never turns one neighbour into another; if it did, nothing could stay.
            ChangeEffect::OtherPeer => [ChangeEffect::NewSession; 2],
            // There was none; `fairway-sessions` tests what another key does.
            ChangeEffect::ExchangesKeys => [ChangeEffect::NewSession; 2],
            ChangeEffect::NewExternalSession => [ChangeEffect::NewSession, ChangeEffect::Nothing],
            // An external neighbour is in no cluster of ours.
            ChangeEffect::AsksAgain if *field == "cluster_id" => {
                [ChangeEffect::Nothing, ChangeEffect::AsksAgain]
            }
            effect => [*effect; 2],
        };
        assert_eq!(observed(field, false), external, "{field}, external");
        assert_eq!(observed(field, true), internal, "{field}, internal");
    }
}

#[test]
fn another_key_in_place_of_one_leaves_the_session_alone() {
    let keys = |secret: &str| {
        let key = AoKey::new(1, 1, AoAlgorithm::HmacSha1, secret).unwrap();
        let other = AoKey::new(2, 2, AoAlgorithm::HmacSha1, "other").unwrap();
        [AoKeys::new(vec![key.clone()]), AoKeys::new(vec![key, other])].map(Result::unwrap)
    };
    let with = |password: &str, tcp_ao: &AoKeys| PeerConfig {
        password: Password::new(password).ok(),
        tcp_ao: tcp_ao.clone(),
        ..config(65001, 65002, 1)
    };
    let none = AoKeys::default();
    let ([one, both], [another, _]) = (keys("old"), keys("new"));
    assert!(!with("old", &none).needs_reset(&with("new", &none)));
    assert!(with("old", &none).needs_reset(&with("", &none)));
    assert!(!with("", &one).needs_reset(&with("", &both)));
    assert!(with("", &one).needs_reset(&with("", &another)), "one ID, two secrets");
    assert!(with("", &one).needs_reset(&with("old", &none)), "another kind of key");
}

#[test]
fn the_table_finds_each_difference_and_no_other() {
    let before = dynamic(65001, 65002, 1);
    for setting in PeerSetting::ALL {
        let after = changed(setting.field, before.clone());
        assert_eq!(before.differences(&after), [setting], "{}", setting.field);
    }
    assert!(before.differences(&before).is_empty());
}
