//! RPKI: the caches, their payloads, and the state of routes.

use std::time::Duration;

use fairway_ground::{OriginValidation, RoaPayload, RpkiServer};
use fairway_seam::RpkiServerView;
use serde_json::json;

use super::super::ShowCommand;
use super::lab::{self, Lab};
use super::texts::HEAD;
use super::{json as shown, text};

fn payload(prefix: &str, length_max: u8, asn: u32) -> RoaPayload {
    RoaPayload { prefix: lab::prefix(prefix), length_max, asn }
}

/// A cache that works and one that never did.
fn asked() -> Lab {
    let mut lab = super::learned::lab();
    let server = |host: &str| RpkiServer { host: host.into(), port: 323 };
    let works = RpkiServerView {
        server: server("2001:db8::1"),
        is_connected: true,
        version: 1,
        payloads: 3,
        serial: Some(7),
        synchronized_ago: Some(Duration::from_secs(61)),
        expires_in: Some(Duration::from_secs(7139)),
        failure: None,
    };
    let down = RpkiServerView {
        server: server("rpki.example"),
        is_connected: false,
        payloads: 0,
        serial: None,
        synchronized_ago: None,
        expires_in: None,
        failure: Some("no answer\u{1b}[31m".to_owned()),
        ..works.clone()
    };
    lab.bgp.rpki_servers = vec![works, down];
    lab.bgp.roa_payloads = vec![
        payload("10.0.0.0/8", 24, 65_500),
        payload("10.40.0.0/16", 16, 65_020),
        payload("2001:db8::/32", 48, 65_010),
    ];
    let states = [
        OriginValidation::Valid,
        OriginValidation::Invalid,
        OriginValidation::Valid,
        OriginValidation::Invalid,
        OriginValidation::NotFound,
    ];
    for (route, state) in lab.bgp.learned.iter_mut().zip(states) {
        route.origin_validation = Some(state);
    }
    lab
}

#[test]
fn each_cache_has_its_state_and_its_problem() {
    let lines = "\
SERVER              STATE       VERSION   PAYLOADS   SERIAL   UPDATED    EXPIRES    PROBLEM
[2001:db8::1]:323   connected   1         3          7        00:01:01   01:58:59   <none>
rpki.example:323    down        1         0          <none>   <none>     <none>     no answer\\u{1b}[31m
";
    assert_eq!(text(&asked(), &ShowCommand::RpkiServers).unwrap(), lines);
    let wanted = json!({"items": [
        {
            "address": "2001:db8::1", "port": 323, "state": "connected", "version": 1, "payloads": 3,
            "serial": 7, "updatedMsec": 61_000, "expiresInMsec": 7_139_000,
        },
        {
            "address": "rpki.example", "port": 323, "state": "down", "version": 1, "payloads": 0,
            "problem": "no answer\u{1b}[31m",
        },
    ]});
    assert_eq!(shown(&asked(), &ShowCommand::RpkiServers), wanted);
    let none = text(&super::learned::lab(), &ShowCommand::RpkiServers).unwrap();
    assert!(none.contains("spec.rpki.servers"), "{none}");
}

#[test]
fn connections_and_payloads_have_the_lines_and_keys_of_frr() {
    let lines = "\
Connected to group 1
rpki tcp cache 2001:db8::1 323 pref 1 (connected)
rpki tcp cache rpki.example 323 pref 1
";
    assert_eq!(text(&asked(), &ShowCommand::RpkiConnections).unwrap(), lines);
    let all = ShowCommand::RpkiPayloads { covers: None };
    let lines = "\
RPKI/RTR prefix table
Prefix                                   Prefix Length  Origin-AS
10.0.0.0                                     8 -  24        65500
10.40.0.0                                   16 -  16        65020
2001:db8::                                  32 -  48        65010
Number of IPv4 Prefixes: 2
Number of IPv6 Prefixes: 1
";
    assert_eq!(text(&asked(), &all).unwrap(), lines);
    let one = ShowCommand::RpkiPayloads { covers: Some("10.40.0.0/15".to_owned()) };
    let wanted = json!({
        "prefixes": [{"prefix": "10.0.0.0", "prefixLenMin": 8, "prefixLenMax": 24, "asn": 65_500}],
        "ipv4PrefixCount": 1, "ipv6PrefixCount": 0,
    });
    assert_eq!(shown(&asked(), &one), wanted);
}

#[test]
fn a_route_is_marked_with_its_state_as_in_frr() {
    let rows = "\
I*> 10.20.0.0/16     10.1.2.2                 5             0 65020 i
V*                   10.1.1.2                               0 65010 65010 65500 65500 i
V*> 10.40.0.0/16     10.1.2.2                               0 65020 ?
I*>i10.50.0.0/16     10.1.3.2                      100      0 i
N*> 198.51.100.128/25
                    10.1.1.2                               0 65010 i

Displayed  4 routes and 5 total paths
";
    assert_eq!(text(&asked(), &lab::table_ipv4(None)).unwrap(), format!("{HEAD}{rows}"));
    let entry = text(&asked(), &lab::table_ipv4(Some("10.40.0.0/16"))).unwrap();
    assert!(
        entry.contains("best (First path received), rpki validation-state: valid\n"),
        "{entry}"
    );
    let entry = shown(&asked(), &lab::table_ipv4(Some("198.51.100.128/25")));
    assert_eq!(entry["paths"][0]["rpkiValidationState"], "not found");
}
