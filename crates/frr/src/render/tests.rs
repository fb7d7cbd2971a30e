//! Injection by users is impossible, and unrelated changes leave the text as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_ground::{Asn, BfdSettings, Password, Remote, RemoteAs, RouterId, ShutdownMessage};
use fairway_seam::{DesiredRoute, Extras, PeerBfd, PeerConfig, RouteAttributes};

use super::*;

fn peer(last: u8) -> PeerConfig {
    let asn = |number| Asn::new(number).unwrap();
    let key = PeerKey::from(std::net::IpAddr::from([192, 0, 2, last]));
    let router_id = RouterId::new(0xC000_0201).unwrap();
    let config = PeerConfig::new(key, asn(65_001), RemoteAs::Asn(asn(65_010)), router_id);
    PeerConfig { name: format!("tor-{last}"), ..config }
}

fn route(prefix: &str, peers: &[&PeerConfig], attributes: RouteAttributes) -> DesiredRoute {
    let peers: BTreeSet<PeerKey> = peers.iter().map(|peer| peer.key).collect();
    let (peers, attributes) = (Arc::new(peers), Arc::new(attributes));
    DesiredRoute { prefix: prefix.parse().unwrap(), peers, attributes }
}

fn rendered(peers: Vec<PeerConfig>, routes: Vec<DesiredRoute>) -> Rendered {
    let desired = Desired { peers, routes: routes.into(), ..Desired::default() };
    render(&desired, &Settings::default()).unwrap()
}

fn lines_with<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(word)).collect()
}

/// Hostile input for every field with text.
const HOSTILE: &[&str] = &[
    "x\nno router bgp",
    "x\r\nrouter bgp 1",
    "x\u{2028}log file /etc/passwd",
    "x\0y",
    "x\ty",
    " x",
    "x ",
    "x  y",
    "x | include y",
    "x|",
    "",
];

#[test]
fn no_name_makes_a_line() {
    for name in HOSTILE {
        let bad = PeerConfig { name: (*name).to_owned(), ..peer(2) };
        let Rendered { text, faults } = rendered(vec![bad, peer(3)], Vec::new());
        assert_eq!(faults.len(), 1, "{name:?}");
        assert!(!faults[0].to_string().contains('\n'), "{name:?}");
        assert_eq!(text, rendered(vec![peer(3)], Vec::new()).text, "{name:?}");
    }
}

#[test]
fn no_password_makes_a_line_or_shows_itself() {
    let with = |password: &[u8]| {
        let password = Password::new(password).ok();
        rendered(vec![PeerConfig { password, ..peer(2) }, peer(3)], Vec::new())
    };
    for password in HOSTILE.iter().filter(|it| !it.is_empty()).chain(&["p w"]) {
        let Rendered { text, faults } = with(password.as_bytes());
        assert_eq!(faults.len(), 1, "{password:?}");
        assert!(!faults[0].reason.contains(password), "{}", faults[0]);
        assert_eq!(text, rendered(vec![peer(3)], Vec::new()).text, "{password:?}");
    }
    assert_eq!(
        with(b"\xff\xfe").faults[0].reason,
        "the password is not UTF-8; FRR's configuration is text"
    );
    for password in ["!x", "#x", "a\"b'c\\d?e{{1+1}}<&>", &"ü".repeat(40)] {
        let Rendered { text, faults } = with(password.as_bytes());
        assert_eq!(faults, []);
        let line = format!(" neighbor 192.0.2.2 password {password}");
        assert_eq!(lines_with(&text, "password"), [line.as_str()]);
    }
}

#[test]
fn a_password_is_masked_where_it_is_only_shown() {
    let password = Password::new("s3cret").ok();
    let desired = Desired { peers: vec![PeerConfig { password, ..peer(2) }], ..Desired::default() };
    let hidden = Settings { hide_secrets: true, ..Settings::default() };
    let text = render(&desired, &hidden).unwrap().text;
    assert_eq!(lines_with(&text, "password"), [" neighbor 192.0.2.2 password <hidden>"]);
}

#[test]
fn no_message_makes_a_line() {
    for message in HOSTILE.iter().filter(|it| !it.is_empty()) {
        let shutdown = ShutdownMessage::new(*message).ok();
        let bad = PeerConfig { shutdown, ..peer(2) };
        let Rendered { text, faults } = rendered(vec![bad, peer(3)], Vec::new());
        assert_eq!(faults.len(), 1, "{message:?}");
        assert_eq!(text, rendered(vec![peer(3)], Vec::new()).text, "{message:?}");
    }
}

#[test]
fn no_profile_or_interface_makes_a_line() {
    let bfd = |name: &str| {
        let settings = BfdSettings::default();
        Some(PeerBfd { profile: name.to_owned(), settings, strict: false })
    };
    let interface =
        |name: &str| PeerKey { remote: Remote::Interface(name.parse().unwrap()), vrf: None };
    let vrf = |name: &str| PeerKey { vrf: name.parse().ok(), ..peer(2).key };
    let bad = [
        PeerConfig { bfd: bfd("x\nrouter bgp 1"), ..peer(2) },
        PeerConfig { key: interface("eth0|"), extended_next_hop: true, ..peer(2) },
        PeerConfig { key: vrf("red|"), ..peer(2) },
    ];
    for bad in bad {
        let Rendered { text, faults } = rendered(vec![bad, peer(3)], Vec::new());
        assert_eq!(faults.len(), 1);
        assert_eq!(text, rendered(vec![peer(3)], Vec::new()).text);
    }
}

/// Template syntax is plain text like any other.
#[test]
fn a_template_in_a_name_is_a_name() {
    let named = PeerConfig { name: "{{ 7 * 7 }}{% raw %}".to_owned(), ..peer(2) };
    let text = rendered(vec![named], Vec::new()).text;
    assert_eq!(
        lines_with(&text, "description"),
        [" neighbor 192.0.2.2 description {{ 7 * 7 }}{% raw %}"]
    );
}

#[test]
fn a_comment_of_raw_lines_does_not_hide_where_they_are_from() {
    let extras = Extras {
        origin: "ConfigMap metallb-system/bgpextras".to_owned(),
        text: "! mine\r\nrouter bgp 65001\r\n # mine\r\n neighbor 192.0.2.2 weight 5\r\n\r\nexit"
            .to_owned(),
    };
    let desired = Desired { extras: Some(Arc::new(extras)), ..Desired::default() };
    assert_eq!(
        render(&desired, &Settings::default()).unwrap().text,
        "! ConfigMap metallb-system/bgpextras\nrouter bgp 65001\n neighbor 192.0.2.2 weight 5\nexit\n!\n"
    );
}

#[test]
fn a_new_prefix_adds_its_line_and_nothing_else() {
    let (a, b) = (peer(2), peer(3));
    let both = |prefix| route(prefix, &[&a, &b], RouteAttributes::default());
    let before = rendered(vec![a.clone(), b.clone()], vec![both("203.0.113.1/32")]).text;
    let routes = vec![both("203.0.113.1/32"), both("203.0.113.2/32")];
    let after = rendered(vec![a.clone(), b.clone()], routes).text;
    let new = after.lines().find(|line| line.contains("203.0.113.2/32")).unwrap().to_owned() + "\n";
    assert_eq!(after.replacen(&new, "", 1), before);
}

#[test]
fn another_attribute_is_another_tag_and_other_routes_keep_theirs() {
    let a = peer(2);
    let with = |med| {
        let changed = RouteAttributes { med, ..RouteAttributes::default() };
        let kept =
            RouteAttributes { local_pref: Some(7), med: Some(1), ..RouteAttributes::default() };
        let routes =
            vec![route("203.0.113.1/32", &[&a], changed), route("203.0.113.2/32", &[&a], kept)];
        rendered(vec![a.clone()], routes).text
    };
    let (before, after) = (with(None), with(Some(5)));
    let line = |text: &str, prefix| lines_with(text, prefix)[0].to_owned();
    assert_ne!(line(&before, "203.0.113.1/32"), line(&after, "203.0.113.1/32"));
    assert_eq!(line(&before, "203.0.113.2/32"), line(&after, "203.0.113.2/32"));
}

#[test]
fn the_order_of_what_is_desired_means_nothing() {
    let (a, b) = (peer(2), peer(3));
    let one = route("203.0.113.1/32", &[&a], RouteAttributes::default());
    let other =
        route("203.0.113.1/32", &[&b], RouteAttributes { med: Some(1), ..Default::default() });
    let third = route("203.0.113.0/32", &[&a, &b], RouteAttributes::default());
    let forward = vec![one.clone(), other.clone(), third.clone()];
    assert_eq!(
        rendered(vec![a.clone(), b.clone()], forward),
        rendered(vec![b, a], vec![third, other, one])
    );
}

/// A neighbour that FRR does not support is in no class, and so changes none.
#[test]
fn who_is_left_out_is_told_nothing() {
    let (a, bad) = (peer(2), PeerConfig { name: "x\n".to_owned(), ..peer(3) });
    let both = route("203.0.113.1/32", &[&a, &bad], RouteAttributes::default());
    let alone = route("203.0.113.1/32", &[&a], RouteAttributes::default());
    assert_eq!(
        rendered(vec![a.clone(), bad], vec![both]).text,
        rendered(vec![a], vec![alone]).text
    );
}
