//! A neighbor that is up, has announced three routes, and a fourth that was refused.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{AsPath, Asn, NextHop, PathId, PeerKey, RemoteAs, RouterId};
use fairway_seam::{
    PathAttributes, PeerConfig, PeerRoute, PeerView, Refusal, RefusedRoute, RefusedRoutes,
    SessionState,
};

pub(super) fn tor() -> PeerView {
    let key = PeerKey::from("192.0.2.1".parse::<IpAddr>().unwrap());
    let asn = |number| Asn::new(number).unwrap();
    let config =
        PeerConfig::new(key, asn(65001), RemoteAs::Asn(asn(64512)), RouterId::new(1).unwrap());
    let mut peer = PeerView::idle(PeerConfig { name: "tor-1".to_owned(), ..config });
    peer.state = SessionState::Established;
    peer.since = Some(Duration::from_secs(20));
    peer.prefixes_accepted.ipv4 = 3;
    peer.prefixes_refused.ipv4 = 1;
    let next_hop = NextHop::Ipv4("192.0.2.1".parse().unwrap());
    let path = AsPath::sequence(vec![64512, 65001]);
    let route = PeerRoute {
        prefix: "203.0.113.0/24".parse().unwrap(),
        path_id: PathId::NONE,
        attributes: Arc::new(PathAttributes::originated(path, next_hop)),
        stale: false,
    };
    let refused = RefusedRoute { route, refusal: Refusal::AsLoop };
    peer.refused = Some(RefusedRoutes { routes: vec![refused], has_more: false });
    peer
}
