//! What changes between two plans.

use super::*;

#[test]
fn equal_plans_have_no_difference() {
    let mut cluster = Cluster::small();
    cluster.service(service("web"));
    assert!(diff(&cluster.plan(), &cluster.plan()).is_empty());
}

#[test]
fn routes_are_compared_for_each_peer() {
    let mut cluster = Cluster::small();
    cluster.peer(peer("second", "192.0.2.2"));
    cluster.service(service("gone")).service(service("kept"));
    let old = cluster.plan();
    cluster.slice(slice("gone-1", "gone", ""));
    cluster.advertisement(BgpAdvertisement {
        peers: names(&["second"]),
        local_pref: Some(50),
        ..advertisement("all")
    });
    cluster.advertisement(BgpAdvertisement {
        peers: names(&["tor"]),
        pools: names(&["a"]),
        prefixes: vec![prefix("203.0.113.0/24")],
        ..advertisement("own")
    });
    let PlanDiff { routes, sessions } = diff(&old, &cluster.plan());
    let pair = |prefix: Prefix, peer: PeerKey| format!("{prefix} {peer}");
    let announced: Vec<_> = routes.announced.iter().map(|it| pair(it.prefix, it.peer)).collect();
    let withdrawn: Vec<_> = routes.withdrawn.iter().map(|it| pair(it.prefix, it.peer)).collect();
    let changed: Vec<_> = routes.changed.iter().map(|it| pair(it.prefix, it.peer)).collect();
    assert_eq!(announced, ["203.0.113.0/24 192.0.2.1"]);
    assert_eq!(withdrawn, ["198.51.100.0/32 192.0.2.1", "198.51.100.0/32 192.0.2.2"]);
    assert_eq!(changed, ["198.51.100.1/32 192.0.2.2"]);
    assert_eq!(routes.changed[0].after.local_pref, Some(50));
    assert_eq!(sessions, SessionDiff::default());
}

#[test]
fn sessions_are_reset_only_for_what_a_session_fixes() {
    let mut cluster = Cluster::empty();
    cluster.peer(peer("gone", "192.0.2.1")).peer(peer("moved", "192.0.2.2"));
    cluster.peer(peer("renamed", "192.0.2.3")).peer(peer("same", "192.0.2.4"));
    let old = cluster.plan();
    cluster.index.peers.remove(&name("gone"));
    cluster.index.peers.remove(&name("renamed"));
    cluster.peer(Peer { port: 1179, ..peer("moved", "192.0.2.2") });
    cluster.peer(peer("new-name", "192.0.2.3")).peer(peer("new", "192.0.2.5"));
    let SessionDiff { added, removed, reset, changed } = diff(&old, &cluster.plan()).sessions;
    let one = |peers: &[fairway_seam::PeerConfig]| {
        peers.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(one(&added), ["new"]);
    assert_eq!(one(&removed), ["gone"]);
    assert_eq!(one(&reset), ["moved"]);
    assert_eq!(one(&changed), ["new-name"]);
}
