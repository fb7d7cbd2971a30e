//! The two connections that a peer may have: the one that it dials, and the one that the neighbour has dialled.
//!
//! Another part of [`Peer`]. Knows no state and no message.

use super::connection::{Connection, ConnectionId};
use super::peer::Peer;

impl Peer {
    pub(super) fn new_id(&mut self) -> ConnectionId {
        self.connections = self.connections.saturating_add(1);
        ConnectionId { incarnation: self.incarnation, number: self.connections }
    }

    pub(super) fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.outgoing.iter().chain(&self.incoming).find(|it| it.id == id)
    }

    pub(super) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.outgoing.iter_mut().chain(&mut self.incoming).find(|it| it.id == id)
    }

    pub(super) fn take_connection(&mut self, id: ConnectionId) -> Option<Connection> {
        let slots = [&mut self.outgoing, &mut self.incoming];
        slots.into_iter().find_map(|slot| slot.take_if(|connection| connection.id == id))
    }

    pub(super) fn connection_ids(&self) -> Vec<ConnectionId> {
        self.outgoing.iter().chain(&self.incoming).map(|it| it.id).collect()
    }
}
