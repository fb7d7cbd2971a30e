//! How far a drain has come: which neighbours know of it, and which cannot be told.
//!
//! Pure; `fairway drain` prints it.

use fairway_node::drain::{DrainStatus, DrainStep};
use fairway_seam::{BgpView, DrainState, PeerView, SessionState};
use serde::{Deserialize, Serialize};

use crate::Snapshot;

/// The progress of a drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainReport {
    /// What the request changed.
    pub step: DrainStep,
    /// Whether the order is on disk and survives a restart; true for a request that is not an order.
    pub is_kept: bool,
    /// The state of the node.
    pub status: DrainStatus,
    /// Whether its Node has the mark that takes it out of service regardless of orders.
    pub is_marked: bool,
    /// Unix time, from the same clock.
    pub now_epoch_seconds: u64,
    /// Neighbours with a session that have been sent all of that.
    pub told: usize,
    /// Neighbours with a session that have not: an UPDATE for them is not yet written to their sockets.
    pub untold: Vec<String>,
    /// Neighbours without a session, which may still keep earlier routes and cannot be sent the withdrawal.
    pub away: Vec<String>,
}

impl DrainReport {
    /// What a snapshot says of it, after a request that changed `step`.
    pub fn of(snapshot: &Snapshot<'_>, step: DrainStep, is_kept: bool) -> Self {
        let (told, untold) = heard_of(snapshot.drain, snapshot.bgp);
        Self {
            step,
            is_kept,
            status: snapshot.drain,
            is_marked: snapshot.node.drain.is_some(),
            now_epoch_seconds: snapshot.now_epoch_seconds,
            told,
            untold,
            away: away(snapshot.bgp),
        }
    }
}

/// How many neighbours with a session have been sent what `status` means, and which have not.
fn heard_of(status: DrainStatus, bgp: &BgpView) -> (usize, Vec<String>) {
    let is_acted_on = bgp.drain == status.state();
    let established = bgp.peers.iter().filter(|peer| peer.state == SessionState::Established);
    let (told, untold): (Vec<_>, Vec<_>) = established.partition(|peer| {
        let advertised = peer.prefixes_advertised;
        let has_routes = advertised.ipv4 > 0 || advertised.ipv6 > 0;
        let is_late = bgp.drain == DrainState::Drained && has_routes;
        is_acted_on && !is_late && !peer.is_being_told
    });
    (told.len(), untold.into_iter().map(name).collect())
}

/// Neighbours without a session. A listen range is not a neighbour, and a peer that is shut down is not
/// expected.
fn away(bgp: &BgpView) -> Vec<String> {
    let is_missed =
        |peer: &&PeerView| !peer.config.key.is_range() && peer.config.shutdown.is_none();
    let missed = bgp.peers.iter().filter(is_missed);
    missed.filter(|peer| peer.state != SessionState::Established).map(name).collect()
}

fn name(peer: &PeerView) -> String {
    format!("{} ({})", peer.config.key, peer.config.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::lab::Lab;

    const DRAINED: DrainStatus = DrainStatus::Drained { since_epoch_seconds: 7 };

    /// Two neighbours of the lab have a session.
    #[test]
    fn neighbours_have_been_told_when_nothing_is_left_to_say() {
        let mut bgp = Lab::new().bgp;
        bgp.drain = DrainState::Draining;
        let named = ["10.1.1.2 (router one over IPv4)", "2001:db8:1:1::2 (router one over IPv6)"];
        let who = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(heard_of(DRAINED, &bgp), (0, who(&named)), "the backend has not acted yet");
        bgp.drain = DrainState::Drained;
        assert_eq!(heard_of(DRAINED, &bgp), (0, who(&named)), "they have routes");
        let first = bgp.peers.iter_mut().find(|peer| peer.prefixes_advertised.ipv4 > 0).unwrap();
        first.prefixes_advertised.ipv4 = 0;
        first.is_being_told = true;
        assert_eq!(heard_of(DRAINED, &bgp), (0, who(&named)), "it is not written yet");
        bgp.peers.iter_mut().for_each(|peer| peer.is_being_told = false);
        assert_eq!(heard_of(DRAINED, &bgp), (1, who(&named[1..])));
        for peer in &mut bgp.peers {
            peer.prefixes_advertised = Default::default();
        }
        assert_eq!(heard_of(DRAINED, &bgp), (2, who(&[])), "those without a session do not count");
    }

    #[test]
    fn neighbours_without_a_session_are_named_unless_they_are_shut_down() {
        let mut bgp = Lab::new().bgp;
        bgp.peers.retain(|peer| peer.state == SessionState::Established);
        assert!(away(&bgp).is_empty());
        let first = bgp.peers.first_mut().unwrap();
        first.state = SessionState::Active;
        let expected = name(first);
        assert_eq!(away(&bgp), [expected]);
        bgp.peers.first_mut().unwrap().config.shutdown = Some(Default::default());
        assert!(away(&bgp).is_empty());
    }
}
