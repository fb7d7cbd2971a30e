//! What is sent next on a connection, and which routes are advertised to the neighbour at all.
//!
//! Another part of [`Peer`]: pulled by the edge when a socket has room, pushed by changed routes.

use std::net::SocketAddr;

use bytes::BytesMut;

use super::connection::{Connection, ConnectionId};
use super::peer::Peer;
use crate::rib::{Changes, ExportGroups, LocRib};
use crate::wire::header::whole_messages;
use crate::wire::{MESSAGE_LENGTH_BYTES_MAX, MessageType};
use fairway_ground::{Instant, LocalNextHops};
use fairway_seam::DrainState;

impl Peer {
    /// Whether [`Peer::poll_transmit`] has something for this connection.
    pub fn wants_to_transmit(&self, id: ConnectionId) -> bool {
        self.connection(id).is_some_and(Connection::has_control)
            || self
                .established
                .as_ref()
                .is_some_and(|up| up.connection == id && up.outbound.has_pending())
    }

    /// The connections for which it has something.
    pub fn wanting_to_transmit(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let connections = self.outgoing.iter().chain(&self.incoming).map(|it| it.id);
        connections.filter(|id| self.wants_to_transmit(*id))
    }

    /// Fills `buffer` with whole messages for a connection with room in its socket: OPEN, KEEPALIVE,
    /// ROUTE-REFRESH, then as many UPDATEs as fit behind what the buffer holds, up to `room` bytes
    /// in all. The last one may exceed that if it is an extended message (RFC 8654), which is started
    /// where an ordinary one would fit: otherwise it would wait forever for that much room.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        id: ConnectionId,
        rib: &LocRib,
        groups: &mut ExportGroups,
        room: usize,
        buffer: &mut BytesMut,
    ) {
        let before = buffer.len();
        while let Some((kind, bytes)) = self.connection_mut(id).and_then(Connection::take_control) {
            buffer.extend_from_slice(&bytes);
            match kind {
                MessageType::Open => self.messages.sent.opens += 1,
                MessageType::RouteRefresh => self.messages.sent.route_refreshes += 1,
                _ => self.messages.sent.keepalives += 1,
            }
        }
        let updates = self.messages.sent.updates;
        if let Some(up) = self.established.as_mut().filter(|up| up.connection == id) {
            while buffer.len().saturating_add(MESSAGE_LENGTH_BYTES_MAX) <= room {
                match up.outbound.next_message(rib, groups, buffer) {
                    None => break,
                    Some(MessageType::RouteRefresh) => self.messages.sent.route_refreshes += 1,
                    Some(_) => self.messages.sent.updates += 1,
                }
            }
        }
        if buffer.len() > before {
            self.last_write = Some(now);
            let Self { outgoing, incoming, recorder, monitor, .. } = &mut *self;
            let connection = outgoing.iter().chain(incoming.as_ref()).find(|it| it.id == id);
            for message in buffer.get(before..).into_iter().flat_map(whole_messages) {
                if let Some(connection) = connection {
                    recorder.message(now, connection, false, [message, &[]]);
                }
                if let Some(monitor) = monitor {
                    monitor.sent(message);
                }
            }
            let said_update = self.messages.sent.updates > updates;
            let Self { outgoing, incoming, rng, .. } = self;
            if let Some(connection) = outgoing.iter_mut().chain(incoming).find(|it| it.id == id) {
                connection.restart_send_hold_timer(now);
                if said_update {
                    connection.restart_keepalive_timer(now, rng);
                }
            }
        }
    }

    /// Queues every route that the neighbour should have, and does not: what follows [`Action::Established`], and each
    /// change of what it should have.
    pub fn announce_all(&mut self, rib: &LocRib) {
        if let Some(up) = &mut self.established {
            up.outbound.announce_all(rib);
        }
    }

    /// Queues changes of routes, if they concern the neighbour.
    pub fn pass_on(&mut self, rib: &LocRib, groups: &mut ExportGroups, changes: &Changes) {
        let passes_on = self.passes_on();
        if let Some(up) = self.established.as_mut().filter(|_| passes_on || changes.of_originated) {
            up.outbound.announce(rib, groups, changes);
        }
    }

    /// Whether there may be routes for the neighbour that were not looked at yet.
    pub fn is_behind(&self) -> bool {
        self.established.as_ref().is_some_and(|up| up.outbound.is_behind)
    }

    /// The addresses of this end may have changed. Routes that were held back for want of a next hop are
    /// advertised, those with another next hop are advertised again. Returns whether anything changed.
    pub fn set_next_hops(&mut self, rib: &LocRib, next_hops: LocalNextHops) -> bool {
        let Some(id) = self.established.as_ref().map(|up| up.connection) else { return false };
        let Some(connection) = self.connection_mut(id) else { return false };
        let next_hops = connection.agreed(next_hops);
        if connection.next_hops == next_hops {
            return false;
        }
        connection.next_hops = next_hops;
        self.renew_exporter();
        self.announce_all(rib);
        true
    }

    /// What routes are advertised with may have changed: [`Peer::announce_all`] is due.
    pub(super) fn renew_exporter(&mut self) {
        let connection = self.established.as_ref().map(|up| up.connection);
        let next_hops = connection.and_then(|id| Some(self.connection(id)?.next_hops));
        if let (Some(up), Some(next_hops)) = (&mut self.established, next_hops) {
            up.outbound.renew(&self.config, next_hops, self.drain, &self.origins);
        }
    }

    /// The node is drained, or comes back: that is advertised to the neighbour with every route that it
    /// has or should have, now and in later sessions.
    pub fn set_drain(&mut self, rib: &LocRib, drain: DrainState) {
        if self.drain != drain {
            self.drain = drain;
            self.renew_exporter();
            self.announce_all(rib);
        }
    }

    /// The address of the other end of the session that is up.
    pub fn remote_address(&self) -> Option<SocketAddr> {
        let up = self.established.as_ref()?;
        self.connection(up.connection)?.remote
    }

    /// Our address of it.
    pub fn local_address(&self) -> Option<SocketAddr> {
        let up = self.established.as_ref()?;
        self.connection(up.connection)?.local
    }
}
