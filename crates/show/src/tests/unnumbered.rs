//! A neighbour that is named by its interface, beside what FRR 8.4 prints of one.

use std::sync::Arc;

use fairway_ground::{AsPath, Asn, NextHop, PathId, PeerKey, PeerKind, Remote, RouterId};
use fairway_seam::capability::{Capability, NextHopEncoding};
use fairway_seam::{LearnedRoute, Path, PathAttributes, PathSource};
use serde_json::json;

use super::lab::{self, Lab};
use super::{json as shown, neighbors, summary, text};

/// The first router, on interface `to-tor`: without an address, and with one IPv4 route over IPv6.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let key = PeerKey { remote: Remote::Interface("to-tor".parse().unwrap()), vrf: None };
    let router = lab.router_one();
    router.config.key = key;
    let session = router.session.as_mut().unwrap();
    (session.local, session.remote) =
        ("[fe80::1%7]:179".parse().unwrap(), "[fe80::2%7]:40912".parse().unwrap());
    let offer = Capability::ExtendedNextHop(vec![NextHopEncoding::IPV4_OVER_IPV6]);
    session.capabilities_sent.push(offer.clone());
    session.capabilities_received.push(offer);
    let source = PathSource {
        key,
        address: lab::address("fe80::2"),
        kind: PeerKind::External,
        remote_asn: Asn::new(65010).unwrap(),
        router_id: RouterId::new(0x0A00_0002).unwrap(),
        is_client: false,
    };
    let next_hop = NextHop::ipv6("fe80::2".parse().unwrap(), None);
    let attributes = PathAttributes::originated(AsPath::sequence(vec![65010]), next_hop);
    let path =
        Path { source: Arc::new(source), path_id: PathId::NONE, attributes: Arc::new(attributes) };
    lab.bgp.routes.clear();
    lab.bgp.learned = vec![LearnedRoute {
        prefix: lab::prefix("10.20.0.0/16"),
        path,
        lost_at: None,
        stale: false,
        origin_validation: None,
    }];
    lab
}

#[test]
fn a_neighbor_is_on_its_interface_at_the_address_that_it_has_there() {
    let lab = lab();
    let words = text(&lab, &neighbors("to-tor")).unwrap();
    assert!(words.starts_with("BGP neighbor on to-tor: fe80::2, remote AS 65010"), "{words}");
    let object = shown(&lab, &neighbors("to-tor"))["to-tor"].take();
    assert_eq!(object["bgpNeighborAddr"], "fe80::2");
    assert_eq!(object["hostForeign"], "fe80::2");
    let summary = shown(&lab, &summary());
    assert_eq!(summary["ipv4Unicast"]["peers"]["to-tor"]["idType"], "interface");
}

#[test]
fn a_neighbor_that_is_not_there_yet_has_no_address() {
    let mut lab = lab();
    lab.router_one().session = None;
    let words = text(&lab, &neighbors("to-tor")).unwrap();
    assert!(words.starts_with("BGP neighbor on to-tor: none, remote AS"), "{words}");
    assert_eq!(shown(&lab, &neighbors("to-tor"))["to-tor"]["bgpNeighborAddr"], "none");
}

#[test]
fn next_hops_of_the_other_family_are_offered_by_family() {
    let lab = lab();
    let offered = shown(&lab, &neighbors("to-tor"))["to-tor"]["neighborCapabilities"].take();
    assert_eq!(offered["extendedNexthop"], "advertisedAndReceived");
    assert_eq!(offered["extendedNexthopFamililesByPeer"], json!({"ipv4Unicast": "recieved"}));
    let lines = "    Extended nexthop: advertised and received\n      Address families by peer:\n\
                 \u{20}                  IPv4 Unicast\n";
    assert!(text(&lab, &neighbors("to-tor")).unwrap().contains(lines));
}

#[test]
fn what_it_announced_goes_to_its_interface() {
    let lab = lab();
    let table = text(&lab, &lab::table_ipv4(None)).unwrap();
    let row = "*> 10.20.0.0/16     to-tor                                 0 65010 i\n";
    assert!(table.contains(row), "{table}");
    let path = shown(&lab, &lab::table_ipv4(None))["routes"]["10.20.0.0/16"][0].take();
    assert_eq!(path["peerId"], "fe80::2");
    let hop = json!({"ip": "fe80::2", "afi": "ipv6", "scope": "link-local", "used": true});
    assert_eq!(path["nexthops"], json!([hop]));
    let entry = lab::table_ipv4(Some("10.20.0.0/16"));
    let path = shown(&lab, &entry)["paths"][0].take();
    assert_eq!(
        (&path["peer"]["peerId"], &path["peer"]["interface"]),
        (&json!("fe80::2"), &json!("to-tor"))
    );
    assert!(text(&lab, &entry).unwrap().contains("    fe80::2 from to-tor (10.0.0.2)\n"));
}
