//! Bytes from a neighbour that just connected.

use fairway_bgp::session::Event;
use fairway_bgp::wire::MessageType;
use fairway_seam::SessionState;

use super::speaker::{Identity, PRINTED_WHOLE_BYTES_MAX, Speaker};
use crate::Outcome;

/// Bytes from a neighbour that just connected: a session is established, or it is sent the reason why not.
pub fn handshake(input: &[u8]) -> Outcome {
    let mut speaker = Speaker::connected(Identity::US, Identity::NEIGHBOUR);
    let opening = speaker.transmit();
    assert_eq!(opening.get(18), Some(&MessageType::Open.code()));
    let _routes = speaker.receive(input);
    let outcome = speaker.outcome();
    let is_over = speaker.closed.is_some();
    let state = speaker.peer.state();
    assert_eq!(is_over, state < SessionState::OpenSent, "{state:?}");
    // Every wait has a timeout.
    assert!(speaker.peer.next_deadline().is_some() || state == SessionState::Established);
    let _answer = speaker.transmit();
    speaker.print(input.len() <= PRINTED_WHOLE_BYTES_MAX);
    // Bytes of a closed connection are ignored.
    speaker.peer.handle(speaker.now, Event::Received(speaker.id, input));
    if is_over {
        assert!(speaker.peer.poll_action().is_none());
    }
    outcome
}
