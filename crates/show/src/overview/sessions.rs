//! A line for each neighbor: its session, what it announces and is told, and how much is said.

use fairway_seam::PeerView;
use serde::{Deserialize, Serialize};

use super::FamilyCount;
use crate::neighbor::{is_established, remote_asn};

/// One neighbor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// What names it in commands: its address or its interface, with its VRF if it is in one.
    pub neighbor: String,
    /// The name of its BGPPeer; empty without one.
    pub name: String,
    /// Its AS number; 0 if it is not known before its OPEN.
    pub remote_as: u32,
    /// RFC 4271 §8.2.2.
    pub state: String,
    /// The session is up.
    pub is_established: bool,
    /// Seconds for which it has been up, or down after it was up.
    pub since_seconds: Option<u64>,
    /// Routes that it announces and that were accepted.
    pub accepted: FamilyCount,
    /// Routes that it announces and that were refused, since the start of the session.
    pub refused: FamilyCount,
    /// Routes that it was sent.
    pub advertised: FamilyCount,
    /// Messages that it sent since the daemon started.
    pub messages_received: u64,
    /// Messages that it was sent.
    pub messages_sent: u64,
    /// UPDATEs among the former.
    pub updates_received: u64,
    /// UPDATEs among the latter.
    pub updates_sent: u64,
    /// How often its session came up since the daemon started.
    pub connections_established: u64,
    /// The state of BFD, in FRR's words; `None` without it.
    pub bfd: Option<String>,
    /// Routes are kept while it restarts.
    pub is_restarting: bool,
    /// Why there is no session, or why the last one ended.
    pub reason: String,
}

impl SessionRow {
    pub(super) fn of(peer: &PeerView) -> Self {
        let reset = || peer.last_reset.as_ref().map(|it| it.text.as_str());
        let reason = if is_established(peer) {
            None
        } else if peer.config.shutdown.is_some() {
            Some("shut down by its BGPPeer")
        } else {
            peer.set_aside.as_deref().or_else(reset)
        };
        Self {
            neighbor: peer.config.key.to_string(),
            name: peer.config.name.clone(),
            remote_as: remote_asn(peer),
            state: peer.state.name().to_owned(),
            is_established: is_established(peer),
            since_seconds: peer.since.map(|it| it.as_secs()),
            accepted: FamilyCount::of(&peer.prefixes_accepted),
            refused: FamilyCount::of(&peer.prefixes_refused),
            advertised: FamilyCount::of(&peer.prefixes_advertised),
            messages_received: peer.messages.received.total(),
            messages_sent: peer.messages.sent.total(),
            updates_received: peer.messages.received.updates,
            updates_sent: peer.messages.sent.updates,
            connections_established: peer.connections_established,
            bfd: peer.config.bfd.is_some().then(|| peer.bfd_status().to_owned()),
            is_restarting: peer.stale.is_some(),
            reason: reason.unwrap_or_default().to_owned(),
        }
    }

    /// What [`super::EventRow::about`] says in its events.
    pub fn about(&self) -> String {
        about(&self.neighbor, &self.name)
    }

    /// The name of its BGPPeer, else its address.
    pub fn called(&self) -> &str {
        if self.name.is_empty() { &self.neighbor } else { &self.name }
    }
}

/// A neighbor in events: the name of its BGPPeer, with its address.
pub(super) fn about(neighbor: &str, name: &str) -> String {
    match name {
        "" => format!("neighbor {neighbor}"),
        name => format!("neighbor {name} ({neighbor})"),
    }
}
