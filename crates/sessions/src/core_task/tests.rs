use super::*;
use crate::Listen;
use crate::example::Example as _;
use fairway_seam::{PeerConfig, SessionState};

/// A neighbour on loopback, at an address that does not answer.
fn config(number: u8) -> PeerConfig {
    let key = PeerKey::from(std::net::IpAddr::from([127, 0, 0, number]));
    PeerConfig { key, port: 1, ..PeerConfig::example(1) }
}

#[tokio::test]
async fn a_panic_ends_one_peer_and_not_the_others() {
    let (events, _network) = mpsc::channel(16);
    let listeners = Listeners::open(Listen::nowhere(), events.clone());
    let mut core =
        CoreTask::new(listeners, events, TaskTracker::new(), 7, None, BfdOptions::default());
    let desired = Desired { peers: vec![config(2), config(3)], ..Desired::default() };
    core.apply(Arc::new(desired), None);
    core.turn();
    let state = |core: &CoreTask, number: u8| {
        core.speaker
            .peer(PeerKey::from(std::net::IpAddr::from([127, 0, 0, number])))
            .unwrap()
            .state()
    };
    assert_eq!(state(&core, 2), SessionState::Connect);
    let now = core.clock.now();
    core.guarded(now, config(2).key, |_, _| panic!("internal error"));
    core.carry_out(now);
    assert_eq!(state(&core, 2), SessionState::Idle);
    assert_eq!(state(&core, 3), SessionState::Connect);
    let panics: Vec<u64> =
        core.view(ViewScope::SESSIONS).peers.iter().map(|it| it.panics).collect();
    assert_eq!(panics, [1, 0]);
    let neighbour = &core.neighbours[&config(2).key];
    let peer = core.speaker.peer(config(2).key).unwrap();
    assert!(neighbour.dials.is_empty() && peer.next_deadline() > Some(now));
}
