//! What peers are told where what they were told before is not what it seems: another range, a panic in between, a table
//! that is gone.

use fairway_seam::AdvertisedScope;

use super::*;
use crate::wire::announce::withdrawal;

/// A route for the members of a range.
fn route_for(prefix: &str, range: &PeerConfig) -> DesiredRoute {
    DesiredRoute { peers: Arc::new(BTreeSet::from([range.key])), ..route(prefix, &[]) }
}

/// The UPDATE that withdraws a prefix.
fn withdrawn(prefix: &str) -> BytesMut {
    let nlri: Nlri = prefix.parse().unwrap();
    let mut bytes = BytesMut::new();
    let mut prefixes = BTreeSet::from([nlri]);
    withdrawal(AddressFamily::Ipv4Unicast, false, &mut prefixes, &mut bytes);
    bytes
}

#[test]
fn a_neighbour_that_moves_to_another_range_is_told_the_routes_of_that_one() {
    let mut scene = Scene::new(None);
    let (wide, narrow) = (range("192.0.0.0/16", 9), range("192.0.2.0/24", 9));
    let routes = [route_for("10.0.0.1/32", &wide), route_for("10.0.0.2/32", &narrow)];
    scene.desire(|it| {
        it.peers = vec![wide.clone()];
        it.routes = routes.to_vec().into();
    });
    assert!(scene.speaker.join(scene.now, wide.key, [192, 0, 2, 2].into()).is_ok());
    scene.establish(key(2));
    let chunks = scene.write_all();
    let is_told = |prefix| chunks.iter().any(|it| it.announces(prefix));
    assert!(is_told("10.0.0.1/32") && !is_told("10.0.0.2/32"));
    scene.desire(|it| it.peers = vec![wide.clone(), narrow.clone()]);
    let chunks = scene.write_all();
    assert!(chunks.iter().any(|it| it.withdraws("10.0.0.1/32")));
    assert!(chunks.iter().any(|it| it.announces("10.0.0.2/32")));
}

/// Wherever in the turn the panic is.
#[test]
fn a_panic_while_a_route_is_passed_on_withdraws_nothing_that_was_never_told() {
    for work in 1..8 {
        let mut scene = Scene::with(&[config(2), config(3)]);
        let id = scene.session(2);
        // The peer has heard of it before, and that it is gone.
        scene.hear(2, id, &announced(2, "10.0.0.0/8"));
        scene.write_all();
        scene.hear(2, id, &withdrawn("10.0.0.0/8"));
        scene.write_all();
        scene.hear(2, id, &announced(2, "10.0.0.0/8"));
        scene.speaker.guard().0.set(work);
        let mut has = false;
        for chunk in scene.write_all().into_iter().filter(|it| it.key == key(3)) {
            assert!(has || !chunk.withdraws("10.0.0.0/8"), "work {work}: withdrawn for nothing");
            has = chunk.announces("10.0.0.0/8") || has && !chunk.withdraws("10.0.0.0/8");
        }
        let other = scene.speaker.peer(key(3)).unwrap();
        let view = other.view(scene.now, ViewScope::SESSIONS);
        if view.panics == 0 {
            assert_eq!(view.prefixes_advertised.ipv4, u32::from(has), "work {work}");
            assert_eq!(
                other.advertised(scene.speaker.rib(), AdvertisedScope::All).len(),
                usize::from(has)
            );
        }
    }
}

#[test]
fn a_peer_that_is_behind_has_what_was_sent_to_it_and_no_more() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    let advertised = |scene: &Scene| {
        scene
            .speaker
            .peer(key(3))
            .unwrap()
            .advertised(scene.speaker.rib(), AdvertisedScope::All)
            .len()
    };
    for number in 0..20 {
        scene.hear(2, id, &announced(2, &format!("10.0.{number}.0/24")));
        // What the first turn gave to the socket is never written.
        scene.turn();
    }
    // The first is in the socket, and three go next with those of its group.
    assert_eq!(advertised(&scene), 4);
    let written: Vec<Chunk> =
        Vec::from([Chunk { key: key(3), id: scene.session(3), updates: Vec::new() }]);
    scene.written(&written);
    scene.write_all();
    assert_eq!(advertised(&scene), 20);
}

/// Two peers, of which one knows what the other one has announced in this session.
fn large_table() -> (Scene, ConnectionId) {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    for number in 0..3_000 {
        let prefix = format!("10.{}.{}.0/24", number / 250, number % 250);
        scene.hear(2, id, &announced(2, &prefix));
    }
    scene.write_all();
    (scene, id)
}

#[test]
fn what_a_large_table_took_is_given_back_when_all_know_that_it_is_gone() {
    let (mut scene, id) = large_table();
    assert_eq!(scene.speaker.rib().known().count(), 3_000);
    let event = session::Event::Closed(id, None);
    scene.speaker.handle(scene.now, Event::Peer(key(2), event));
    scene.write_all();
    scene.turn();
    // What a few took is kept.
    assert!(scene.speaker.rib().known().count() <= 1024);
}

#[test]
fn what_a_large_table_took_is_given_back_when_the_last_peer_that_awaits_it_leaves() {
    let (mut scene, id) = large_table();
    let event = session::Event::Closed(id, None);
    scene.speaker.handle(scene.now, Event::Peer(key(2), event));
    let receiver = scene.session(3);
    // The socket of the other peer takes nothing more.
    while scene.speaker.rib().counts().ipv4 > 0 {
        scene.turn();
    }
    assert!(scene.speaker.rib().known().count() > 1024, "the peer awaits them");
    let event = session::Event::Closed(receiver, None);
    scene.speaker.handle(scene.now, Event::Peer(key(3), event));
    scene.turn();
    assert!(scene.speaker.rib().known().count() <= 1024);
}

#[test]
fn routes_of_a_session_that_ended_go_in_parts_and_those_of_the_next_one_stay() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    for number in 0..200 {
        scene.hear(2, id, &announced(2, &format!("10.0.{number}.0/24")));
    }
    scene.write_all();
    scene.speaker.handle(scene.now, Event::Peer(key(2), session::Event::Closed(id, None)));
    let id = scene.establish(key(2));
    scene.hear(2, id, &announced(2, "10.0.199.0/24"));
    let written = scene.turn();
    let left = scene.speaker.rib().counts().ipv4;
    assert!((150..200).contains(&left), "{left} are left after one turn");
    assert!(scene.speaker.next_deadline().is_some_and(|it| it <= scene.now), "more is to be done");
    scene.written(&written);
    scene.write_all();
    assert_eq!(scene.speaker.rib().counts().ipv4, 1);
    assert_eq!(
        scene
            .speaker
            .peer(key(3))
            .unwrap()
            .advertised(scene.speaker.rib(), AdvertisedScope::All)
            .len(),
        1
    );
}

#[test]
fn what_waits_to_enter_the_rib_goes_with_the_neighbour_that_is_removed_or_panics() {
    for is_removed in [true, false] {
        let mut scene = Scene::with(&[config(2), config(3)]);
        let id = scene.session(2);
        for number in 0..200 {
            scene.hear(2, id, &announced(2, &format!("10.0.{number}.0/24")));
        }
        scene.write_all();
        scene.speaker.handle(scene.now, Event::Peer(key(2), session::Event::Closed(id, None)));
        let id = scene.establish(key(2));
        scene.hear(2, id, &announced(2, "10.0.199.0/24"));
        if is_removed {
            scene.desire(|desired| desired.peers = vec![config(3)]);
        } else {
            scene.speaker.start_over(scene.now, key(2));
        }
        // More turns than there were parts.
        (0..20).for_each(|_| drop(scene.write_all()));
        assert_eq!(scene.speaker.rib().counts().ipv4, 0, "removed: {is_removed}");
    }
}
