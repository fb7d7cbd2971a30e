//! A neighbour as `show` sees it.

use super::connection::Connection;
use super::peer::{Established, Peer};
use crate::backend::{AdvertisedRoute, LastReset, PeerView, PerFamily, SessionState, SessionView};
use crate::time::Instant;

impl Peer {
    /// The state that `show` prints: that of the connection that has come furthest.
    pub fn state(&self) -> SessionState {
        let connections = self.outgoing.iter().chain(&self.incoming);
        let waiting = if self.idle_hold { SessionState::Idle } else { SessionState::Active };
        connections.map(|it| it.state).max().unwrap_or(waiting)
    }

    /// Everything about this neighbour at `now`.
    pub fn view(&self, now: Instant) -> PeerView {
        let up = self.established.as_ref();
        let advertised = up.map(advertised).unwrap_or_default();
        let unannounced = up.map(|up| &up.unannounced).into_iter().flatten();
        PeerView {
            config: self.config.clone(),
            state: self.state(),
            session: up.and_then(|up| session(self.connection(up.connection)?, up)),
            since: self.changed_at.map(|at| now.since(at)),
            messages: self.messages,
            connections_established: self.connections_established,
            connections_dropped: self.connections_dropped,
            prefixes_refused: up.map_or(PerFamily::default(), |up| up.prefixes_refused),
            malformed: self.malformed,
            unannounced: unannounced
                .map(|(prefix, reason)| (*prefix, reason.to_string()))
                .collect(),
            advertised,
            last_reset: self.last_reset.as_ref().map(|(at, reason)| LastReset {
                ago: now.since(*at),
                cause: reason.cause(),
                text: reason.to_string(),
            }),
            next_connect_in: self
                .dial_at
                .filter(|_| self.state() < SessionState::OpenSent)
                .map(|at| at.since(now)),
            last_read: self.last_read.map(|at| now.since(at)),
            last_write: self.last_write.map(|at| now.since(at)),
        }
    }
}

fn advertised(up: &Established) -> Vec<AdvertisedRoute> {
    let routes = up.adj_rib_out.advertised().iter();
    routes
        .map(|(prefix, attributes)| AdvertisedRoute {
            prefix: *prefix,
            attributes: attributes.clone(),
        })
        .collect()
}

fn session(connection: &Connection, up: &Established) -> Option<SessionView> {
    let negotiated = connection.negotiated.as_ref()?;
    Some(SessionView {
        local: connection.local?,
        remote: connection.remote?,
        remote_router_id: negotiated.remote_router_id,
        remote_asn: negotiated.remote_asn,
        hold_time_seconds: negotiated.hold_time.seconds(),
        keepalive_interval: connection.keepalive_interval,
        families: negotiated.families,
        capabilities_received: negotiated.capabilities_received.clone(),
        capabilities_sent: negotiated.capabilities_sent.clone(),
        end_of_rib_sent: up.adj_rib_out.end_of_rib_sent(),
        end_of_rib_received: up.end_of_rib_received,
    })
}
