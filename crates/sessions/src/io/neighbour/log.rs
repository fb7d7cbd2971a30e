//! What the log says of what a neighbour announces: its routes, how near they are to too many, what
//! was malformed, and which of them outlive a restart.
//!
//! Another part of [`Neighbour`]. Bounded where a neighbour could write as fast as it likes.

use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, info, warn};

use super::Neighbour;
use crate::backend::{StalePhase, ViewScope};
use crate::bgp::Malformed;
use crate::time::Instant;
use crate::types::{AddressFamily, Nlri, RouteChange};
use crate::wire::attribute::Disposition;

/// How often malformed UPDATEs of one neighbour are worth a line with all their bytes.
const MALFORMED_LOG_GAP: Duration = Duration::from_secs(10);

impl Neighbour {
    /// Says what becomes of the routes of a neighbour that restarts.
    pub(super) fn log_stale(&mut self, now: Instant) {
        let phase = self.peer.stale_phase();
        if phase == std::mem::replace(&mut self.logged_stale, phase) {
            return;
        }
        let view = self.peer.view(now, ViewScope::SESSIONS);
        let (peer, name) = (view.config.key, view.config.name);
        let Some(stale) = view.stale else {
            info!(%peer, name, "no route of it is stale any more");
            return;
        };
        let (ipv4, ipv6) = (stale.routes.ipv4, stale.routes.ipv6);
        // The phase began a moment ago: 119.9 s are the 120 s that the neighbour asked for.
        let seconds = stale.removed_in.saturating_add(Duration::from_millis(500)).as_secs();
        match stale.phase {
            StalePhase::Away => info!(
                %peer, name, ipv4, ipv6, seconds,
                "its routes stay for that long, stale, for it to come back"
            ),
            StalePhase::LongLived => warn!(
                %peer, name, ipv4, ipv6, seconds,
                "it is away for longer than a restart takes: its routes are the last resort now"
            ),
            StalePhase::Back => info!(
                %peer, name, ipv4, ipv6, seconds,
                "it is back: what it does not say again goes with its End-of-RIB marker"
            ),
        }
    }

    pub(super) fn log_routes(&self, changes: &[RouteChange]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return; // A table may be large.
        }
        let config = self.peer.config();
        let (peer, name) = (config.key, &config.name);
        for RouteChange { nlri: Nlri { prefix, path_id }, attributes } in changes {
            match attributes {
                Some(attributes) => {
                    let (next_hop, as_path) = (attributes.next_hop, &attributes.as_path);
                    debug!(%peer, name, %prefix, %path_id, %next_hop, %as_path, "route learned");
                }
                None => debug!(%peer, name, %prefix, %path_id, "route gone"),
            }
        }
    }

    pub(super) fn log_near_maximum(&self, family: AddressFamily, count: u32) {
        let config = self.peer.config();
        let limit = config.import.maximum.map(|maximum| maximum.limit);
        warn!(
            peer = %config.key, name = config.name, %family, count, limit,
            "the neighbour announces nearly as many prefixes as it may (toReceive.maxPrefixes); \
             one over the limit ends the session"
        );
    }

    pub(super) fn log_malformed(&mut self, now: Instant, malformed: &Malformed) {
        let config = self.peer.config();
        let (peer, name) = (config.key, &config.name);
        self.malformed_unlogged = self.malformed_unlogged.saturating_add(1);
        // No neighbour writes our log as fast as it likes.
        if self.malformed_logged_at.is_some_and(|at| now.since(at) < MALFORMED_LOG_GAP) {
            debug!(%peer, name, %malformed, "malformed UPDATE");
            return;
        }
        let updates = self.malformed_unlogged;
        // All of the last one (RFC 7606 §6); its prefixes are in there.
        let bytes = format!("{:x}", Bytes::copy_from_slice(&malformed.body));
        if malformed.disposition() == Some(Disposition::Discard) {
            info!(%peer, name, %malformed, updates, bytes, "malformed UPDATEs");
        } else {
            warn!(%peer, name, %malformed, updates, bytes, "malformed UPDATEs");
        }
        self.malformed_logged_at = Some(now);
        self.malformed_unlogged = 0;
    }
}
