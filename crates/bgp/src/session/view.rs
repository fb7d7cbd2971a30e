//! A neighbour as `show` sees it.

use std::sync::Arc;

use super::connection::Connection;
#[cfg(test)]
use super::connection::ConnectionId;
use super::peer::{Established, Peer};
use crate::rib::{LocRib, PrefixId};
use fairway_ground::{Instant, Nlri, Prefix, RemoteAs};
use fairway_seam::{
    AdvertisedScope, LastMalformed, LastReset, Passage, PathAttributes, PeerRoute, PeerView,
    Recording, SessionState, SessionView, ViewScope,
};

impl Peer {
    /// The state that `show` prints: that of the connection that has come furthest.
    pub fn state(&self) -> SessionState {
        let connections = self.outgoing.iter().chain(&self.incoming);
        let waiting = if self.idle_hold { SessionState::Idle } else { SessionState::Active };
        connections.map(|it| it.state).max().unwrap_or(waiting)
    }

    /// UPDATEs that were given to its connections since the daemon started.
    pub fn updates_sent(&self) -> u64 {
        self.messages.sent.updates
    }

    /// Whether it has no connection and waits for none that it would dial, nor for the end of a
    /// phase.
    pub fn is_at_rest(&self) -> bool {
        self.outgoing.is_none()
            && self.incoming.is_none()
            && self.dial_at.is_none()
            && self.retained.is_none()
            && !self.expects_session()
    }

    /// Since when it has a connection on which it has sent no OPEN; none if it has sent one, has or had a session that
    /// counts, or is kept waiting.
    pub fn silent_since(&self) -> Option<Instant> {
        let is_silent = self.state() == SessionState::OpenSent && self.retained.is_none();
        self.incoming.as_ref().filter(|_| is_silent).map(|it| it.since)
    }

    /// The last messages and events.
    fn recording(&self, now: Instant) -> Recording {
        let (records, overwritten) = self.recorder.records();
        let session = self.established.as_ref().and_then(|up| self.connection(up.connection));
        let remote_asn = session.and_then(|it| Some(it.negotiated.as_ref()?.remote_asn));
        let remote_asn = remote_asn.or(match self.config.remote_as {
            RemoteAs::Asn(asn) => Some(asn),
            RemoteAs::Internal => Some(self.config.local_asn),
            RemoteAs::External => None,
        });
        let local_asn = self.config.local_asn;
        Recording { taken_at: now, local_asn, remote_asn, overwritten, records }
    }

    /// Each connection, its state, and whether its TCP is up: for the rules of the simulator.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> Vec<(ConnectionId, SessionState, bool)> {
        let connections = self.outgoing.iter().chain(&self.incoming);
        connections.map(|it| (it.id, it.state, it.is_connected())).collect()
    }

    /// The routes of `scope` that it has been told, in the order of prefixes.
    pub fn advertised(&self, rib: &LocRib, scope: AdvertisedScope) -> Vec<PeerRoute> {
        let up = self.established.as_ref();
        up.map(|up| routes(up.outbound.advertised(rib, scope), |_| false)).unwrap_or_default()
    }

    /// What becomes of received routes to these prefixes.
    pub fn passages(&self, rib: &LocRib, prefixes: &[Prefix]) -> Vec<(Prefix, Passage)> {
        let Some(up) = &self.established else { return Vec::new() };
        let passage = |prefix: &Prefix| {
            let passage = up.outbound.exporter.passage(*prefix, rib.routes_to(*prefix)?)?;
            Some((*prefix, passage))
        };
        prefixes.iter().filter_map(passage).collect()
    }

    /// Whether a change of this prefix waits to be sent to it.
    pub fn awaits(&self, prefix: PrefixId) -> bool {
        self.established.as_ref().is_some_and(|up| up.outbound.adj_rib_out.awaits(prefix))
    }

    /// How many changes wait to be sent to it.
    pub fn waiting_count(&self) -> usize {
        self.established.as_ref().map_or(0, |up| up.outbound.adj_rib_out.waiting_count())
    }

    /// What `scope` asks about this neighbour at `now`, but for the routes that it has been told.
    pub fn view(&self, now: Instant, scope: ViewScope) -> PeerView {
        let up = self.established.as_ref();
        // Of a session, or what it left behind.
        let inbound = self.inbound();
        let unannounced = up.map(|up| &up.outbound.unannounced).into_iter().flatten();
        PeerView {
            passages: Vec::new(),
            stall: None,
            recording: (scope.recording == Some(self.config.key))
                .then(|| self.recording(now).into()),
            config: self.config.clone(),
            state: self.state(),
            session: up.and_then(|up| session(self.connection(up.connection)?, up)),
            since: self.changed_at.map(|at| now.since(at)),
            messages: self.messages,
            connections_established: self.connections_established,
            connections_dropped: self.connections_dropped,
            panics: self.panics,
            limit_exceeded: self.limit_exceeded,
            attribute_bytes: inbound.map_or(0, |it| it.adj_rib_in.attribute_bytes()),
            prefixes_accepted: inbound.map(|it| it.adj_rib_in.counts()).unwrap_or_default(),
            prefixes_refused: up.map(|up| up.inbound.prefixes_refused).unwrap_or_default(),
            refusals: up.map(|up| up.inbound.refusals()).unwrap_or_default(),
            malformed: self.malformed,
            last_malformed: self.last_malformed.as_ref().map(|(at, malformed)| LastMalformed {
                ago: now.since(*at),
                text: malformed.to_string(),
                body: malformed.body.clone(),
            }),
            unannounced: unannounced
                .map(|(prefix, reason)| (*prefix, reason.to_string()))
                .collect(),
            prefixes_advertised: up.map(|up| up.outbound.adj_rib_out.counts()).unwrap_or_default(),
            // Known to the writer.
            is_being_told: false,
            // [`Peer::advertised`] knows.
            advertised: Vec::new(),
            received: inbound
                .filter(|_| scope.received)
                .map(|it| {
                    let received = it.adj_rib_in.routes();
                    let received = received.map(|(nlri, it)| (nlri, Arc::clone(it)));
                    let mut received: Vec<_> = received.collect();
                    received.sort_unstable_by_key(|(nlri, _)| *nlri);
                    routes(received, |nlri| it.is_stale(nlri))
                })
                .unwrap_or_default(),
            refused: up.filter(|_| scope.refused).map(|up| up.inbound.refused.view()),
            last_reset: last_reset(self, now),
            // Known to the listeners.
            not_accepted: None,
            set_aside: self.set_aside.clone(),
            liveness: self.liveness,
            liveness_since: self.liveness_at.map(|at| now.since(at)),
            waits_for_bfd: self.waits_for_bfd() && up.is_none() && !self.is_down(),
            // Known to BFD's view.
            bfd_path: None,
            stale: inbound.and_then(|it| it.stale_view(now)),
            next_connect_in: self
                .dial_at
                .filter(|_| self.is_dialled() && self.state() < SessionState::OpenSent)
                .map(|at| at.since(now)),
            last_read: self.last_read.map(|at| now.since(at)),
            last_write: self.last_write.map(|at| now.since(at)),
        }
    }
}

/// Why there is no session, or was none: what ended the last one, and the failures of attempts since then.
fn last_reset(peer: &Peer, now: Instant) -> Option<LastReset> {
    let (at, reason) = peer.last_reset.as_ref().or(peer.last_attempt.as_ref())?;
    let since = peer.last_attempt.as_ref().filter(|_| peer.last_reset.is_some());
    let text = match since {
        Some((_, attempt)) => format!("{reason}; since then: {attempt}"),
        None => reason.to_string(),
    };
    Some(LastReset { ago: now.since(*at), cause: reason.cause(), text })
}

fn routes(
    table: impl IntoIterator<Item = (Nlri, Arc<PathAttributes>)>,
    is_stale: impl Fn(Nlri) -> bool,
) -> Vec<PeerRoute> {
    let route = |(nlri, attributes): (Nlri, Arc<PathAttributes>)| PeerRoute {
        prefix: nlri.prefix,
        path_id: nlri.path_id,
        attributes,
        stale: is_stale(nlri),
    };
    table.into_iter().map(route).collect()
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
        end_of_rib_sent: up.outbound.adj_rib_out.end_of_rib_sent(),
        end_of_rib_received: up.inbound.end_of_rib_received,
    })
}
