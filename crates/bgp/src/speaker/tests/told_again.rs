//! What peers are told where what they were told before is not what it seems: another range, a panic in between, a table
//! that is gone.

use super::*;

/// A route for the members of a range.
fn route_for(prefix: &str, range: &PeerConfig) -> DesiredRoute {
    DesiredRoute { peers: Arc::new(BTreeSet::from([range.key])), ..route(prefix, &[]) }
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

#[test]
fn a_panic_while_a_route_is_passed_on_withdraws_nothing_that_was_never_told() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    scene.hear(2, id, &announced(2, "10.0.0.0/8"));
    // It acts, then it is told of its own route, which panics; the other one is told after that.
    scene.speaker.guard().0.set(2);
    let chunks = scene.write_all();
    assert_eq!(scene.speaker.peer(key(2)).unwrap().view(scene.now, ViewScope::SESSIONS).panics, 1);
    assert!(!chunks.iter().any(|it| it.withdraws("10.0.0.0/8")), "{chunks:?}");
    let advertised = |scene: &Scene| {
        let view = scene.speaker.peer(key(3)).unwrap().view(scene.now, ViewScope::SESSIONS);
        view.prefixes_advertised.ipv4
    };
    let is_told = chunks.iter().any(|it| it.announces("10.0.0.0/8"));
    assert_eq!(advertised(&scene), u32::from(is_told));
}

#[test]
fn what_a_large_table_took_is_given_back_when_all_know_that_it_is_gone() {
    let mut scene = Scene::with(&[config(2), config(3)]);
    let id = scene.session(2);
    for number in 0..3_000 {
        let prefix = format!("10.{}.{}.0/24", number / 250, number % 250);
        scene.hear(2, id, &announced(2, &prefix));
    }
    scene.write_all();
    assert_eq!(scene.speaker.rib().known().count(), 3_000);
    let event = session::Event::Closed(id, None);
    scene.speaker.handle(scene.now, Event::Peer(key(2), event));
    scene.write_all();
    scene.turn();
    assert_eq!(scene.speaker.rib().known().count(), 0);
}
