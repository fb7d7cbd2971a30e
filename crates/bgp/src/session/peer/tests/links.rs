//! What a link that comes and goes does to an unnumbered neighbour.

use super::*;

#[test]
fn a_session_whose_link_is_gone_ends_without_a_word() {
    let (mut peer, id) = established();
    while peer.poll_action().is_some() {}
    peer.link_lost(Instant::ZERO, "there is no interface eth0");
    assert!(matches!(peer.poll_action(), Some(Action::Close(closed, None)) if closed == id));
    let Some(Action::Down(reason)) = peer.poll_action() else { panic!("it is down") };
    assert!(reason.to_string().contains("there is no interface eth0"), "{reason}");
    assert_eq!(peer.state(), SessionState::Idle);
    peer.link_lost(Instant::ZERO, "still none");
    assert!(peer.poll_action().is_none());
}

#[test]
fn a_neighbour_that_appears_is_dialled_before_the_next_try_is_due() {
    let mut peer = Peer::new(Instant::ZERO, config(65001, 65002, 1), 7, 0);
    peer.handle(Instant::ZERO, Event::Tick);
    let Some(Action::Connect(id)) = peer.poll_action() else { panic!("it dials") };
    peer.handle(Instant::ZERO, Event::ConnectFailed(id, "no router was heard".to_owned()));
    assert!(peer.next_deadline() > Some(Instant::ZERO));
    peer.dial_soon(Instant::ZERO);
    assert_eq!(peer.next_deadline(), Some(Instant::ZERO));
}

#[test]
fn a_neighbour_that_appears_is_still_left_alone_after_a_session_that_broke() {
    let (mut peer, id) = established();
    peer.handle(Instant::ZERO, Event::Closed(id, None));
    let waits_until = peer.next_deadline();
    assert!(waits_until > Some(Instant::ZERO));
    peer.dial_soon(Instant::ZERO);
    assert_eq!(peer.next_deadline(), waits_until);
}
