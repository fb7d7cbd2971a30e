//! Whatever happened to a peer before: as soon as its neighbour and its settings are healthy, the
//! session is up within a bound.

use super::*;

/// The longest idle hold, the longest connect retry, and a little.
const BOUND: Duration = Duration::from_secs(30 + 5 + 2);

/// Up to sixty random events: dials that succeed and fail, connections that come and go, messages
/// that fit and that do not, time.
fn torment(seed: u64) -> (Peer, Instant) {
    let mut rng = Rng::seeded(seed);
    let mut draw = |below: u64| rng.next_u64() % below;
    let delays = [None, Some(Duration::from_millis(300)), Some(seconds(4))];
    let delay_open_time = delays[usize::try_from(draw(3)).unwrap()];
    let healthy = PeerConfig { delay_open_time, ..config(65001, 65002, 1) };
    let mut peer = Peer::new(Instant::ZERO, healthy.clone(), seed, 0);
    let mut now = Instant::ZERO;
    let (mut ids, mut dials) = (Vec::new(), Vec::new());
    let messages = [
        open_of(65002),
        open_of(65099),
        keepalive(),
        framed(MessageType::Update, &[0; 4]).unwrap(),
        framed(MessageType::Update, &[0, 9, 0, 0]).unwrap(),
        Notification::cease(cease::COLLISION).encode(),
        Bytes::from_static(&[0; 19]),
        keepalive().slice(..7),
    ];
    for _ in 0..draw(60) {
        let id: Option<ConnectionId> =
            (!ids.is_empty()).then(|| ids[usize::try_from(draw(1 << 32)).unwrap() % ids.len()]);
        match (draw(10), id) {
            (0, _) => ids.push(peer.accept(now, ends(1))),
            (1, Some(id)) => peer.handle(now, Event::Closed(id, None)),
            (2..=5, Some(id)) => {
                // The first ones most often, or hardly any session would come up.
                let which = draw(8).min(draw(8));
                peer.handle(now, Event::Received(id, &messages[usize::try_from(which).unwrap()]));
            }
            (6, _) => now = now + Duration::from_millis(draw(12_000)),
            (7, _) => now = peer.next_deadline().unwrap_or(now).max(now),
            (8, _) => {
                let broken = draw(2) == 0;
                let asn = Asn::new(if broken { 65077 } else { 65002 }).unwrap();
                peer.reconfigure(
                    now,
                    PeerConfig { remote_as: RemoteAs::Asn(asn), ..healthy.clone() },
                );
            }
            _ if !dials.is_empty() => {
                let dialled = dials.remove(0);
                if draw(2) == 0 {
                    peer.handle(now, Event::ConnectFailed(dialled, "refused".to_owned()));
                } else {
                    peer.handle(now, Event::Connected(dialled, ends(1)));
                    ids.push(dialled);
                }
            }
            _ => {}
        }
        peer.handle(now, Event::Tick);
        while let Some(action) = peer.poll_action() {
            if let Action::Connect(id) = action {
                dials.push(id);
            }
        }
    }
    // Health: the settings are right, and what is left of earlier connections is seen to end.
    peer.reconfigure(now, healthy);
    dials.into_iter().for_each(|id| {
        peer.handle(now, Event::ConnectFailed(id, "the neighbor has just started".to_owned()));
    });
    ids.into_iter().for_each(|id| peer.handle(now, Event::Closed(id, None)));
    (peer, now)
}

#[test]
fn from_any_state_the_session_is_up_within_the_bound() {
    let mut left = BTreeMap::new();
    for seed in 0..3_000 {
        let (tormented, now) = torment(seed);
        *left.entry(tormented.state()).or_insert(0) += 1;
        let mut pair = Pair::ebgp();
        pair.now = now;
        pair.sides[0].peer = tormented;
        pair.sides[1].peer = Peer::new(now, config(65002, 65001, 2), seed, 1);
        pair.run_for(BOUND);
        assert_eq!(pair.states(), [SessionState::Established; 2], "seed {seed}");
        pair.assert_up();
    }
    println!("states before the neighbor was healthy: {left:?}");
}
