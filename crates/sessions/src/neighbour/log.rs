//! The log lines about a neighbour: its sessions and attempts, its routes, how near their number is to the
//! maximum, malformed UPDATEs, and routes that outlive a restart.
//!
//! Another part of [`Neighbour`]. Rate-limited where a neighbour could cause a line per message.

use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, info, warn};

use super::{Line, Neighbour};
use fairway_bgp::session::{DownReason, Malformed};
use fairway_bgp::speaker::Report;
use fairway_bgp::wire::Notification;
use fairway_bgp::wire::attribute::Disposition;
use fairway_bgp::wire::notification::cease;
use fairway_ground::{AddressFamily, Allowances, Instant, LocalNextHops, Nlri, PeerKey, nonzero};
use fairway_seam::{RouteChange, SessionView, StalePhase, StaleView};

/// The shortest time between two lines about malformed UPDATEs of one neighbour, each with all bytes.
const MALFORMED_LOG_GAP: Duration = Duration::from_secs(10);

/// Octets of an UPDATE in one line: a line of the log has 4 KiB at most.
const LOGGED_OCTETS_MAX: usize = 1400;

impl Neighbour {
    /// Logs what the speaker reports.
    pub(super) fn log(
        &mut self,
        now: Instant,
        report: Report,
        lines: &mut Allowances<(PeerKey, Line)>,
    ) {
        // Strangers that connect from a listen range share what they may cause.
        let (key, shared) = (self.config.key, self.config.route_key());
        let cause = |kind| if kind == Line::Attempt { shared } else { key };
        let mut may_log = |kind| lines.take(now, (cause(kind), kind));
        match report {
            Report::Up(session) => {
                self.logged_failures.clear();
                let left_out = may_log(Line::Session);
                session.iter().for_each(|session| self.log_up(session, left_out));
            }
            Report::Down(reason) => {
                let left_out = may_log(Line::Session);
                self.log_down(&reason, left_out);
            }
            Report::AttemptFailed(reason) => {
                self.log_failure(&reason, || may_log(Line::Attempt));
            }
            Report::Deconfigured => {
                info!(peer = %self.config.key, name = self.config.name, "peer removed");
            }
            Report::Routes(changes) => self.log_routes(&changes),
            Report::Malformed(malformed) => self.log_malformed(now, &malformed),
            Report::NearMaximum(family, count) => self.log_near_maximum(family, count),
            Report::Stale(stale) => {
                if may_log(Line::Stale).is_some() {
                    self.log_stale(stale);
                }
            }
            Report::NextHops(LocalNextHops { ipv4, ipv6, .. }) => {
                let (peer, name) = (self.config.key, &self.config.name);
                info!(%peer, name, ?ipv4, ?ipv6, "next hops changed");
            }
        }
    }

    /// `left_out`: lines since the last one of its kind, beyond what a neighbour may cause; none if this is another one.
    fn log_up(&self, session: &SessionView, left_out: Option<u64>) {
        let (peer, name) = (self.config.key, &self.config.name);
        let Some(left_out) = left_out else {
            debug!(%peer, name, "session up");
            return;
        };
        let families: Vec<String> = session.families.iter().map(|it| it.to_string()).collect();
        info!(
            %peer,
            name,
            remote_as = %session.remote_asn,
            router_id = %session.remote_router_id,
            families = families.join(", "),
            hold_time_seconds = session.hold_time_seconds,
            lines_left_out = nonzero(left_out),
            "session up"
        );
    }

    fn log_down(&self, reason: &DownReason, left_out: Option<u64>) {
        let (peer, name) = (self.config.key, &self.config.name);
        let Some(left_out) = left_out.map(nonzero) else {
            debug!(%peer, name, %reason, "session down");
            return;
        };
        match reason {
            // We ended it on purpose.
            DownReason::Sent { notification: Notification { code: 6, subcode, .. }, .. }
                if *subcode != cease::BFD_DOWN =>
            {
                info!(%peer, name, %reason, lines_left_out = left_out, "session down");
            }
            DownReason::Left(_) => {
                info!(%peer, name, %reason, lines_left_out = left_out, "session down");
            }
            _ => warn!(%peer, name, %reason, lines_left_out = left_out, "session down"),
        }
    }

    fn log_failure(&mut self, reason: &DownReason, may_log: impl FnOnce() -> Option<u64>) {
        let config = &self.config;
        let reason = reason.to_string();
        // A neighbour of a range is forgotten when it leaves: it could fill the log with one line.
        let is_news = !config.is_dynamic() && self.logged_failures.is_news(&reason);
        let Some(left_out) = is_news.then(may_log).flatten() else {
            debug!(peer = %config.key, name = config.name, reason, "no session");
            return;
        };
        warn!(
            peer = %config.key, name = config.name, reason, lines_left_out = nonzero(left_out),
            "no session; trying again (each reason is logged once)"
        );
        self.logged_failures.note(reason);
    }

    /// Logs what becomes of the routes of a neighbour that restarts.
    fn log_stale(&self, stale: Option<StaleView>) {
        let (peer, name) = (self.config.key, &self.config.name);
        let Some(stale) = stale else {
            info!(%peer, name, "no stale routes left");
            return;
        };
        let (ipv4, ipv6) = (stale.routes.ipv4, stale.routes.ipv6);
        // The phase began a moment ago: 119.9 s are the 120 s that the neighbour requested.
        let seconds = stale.removed_in.saturating_add(Duration::from_millis(500)).as_secs();
        match stale.phase {
            StalePhase::Away => info!(
                %peer, name, ipv4, ipv6, seconds,
                "neighbor restarting: its routes are kept as stale for this time"
            ),
            StalePhase::LongLived => warn!(
                %peer, name, ipv4, ipv6, seconds,
                "neighbor still away after its restart time: its routes stay as long-lived stale"
            ),
            StalePhase::Back => info!(
                %peer, name, ipv4, ipv6, seconds,
                "neighbor is back: routes that it does not send again are removed at its End-of-RIB"
            ),
        }
    }

    fn log_routes(&self, changes: &[RouteChange]) {
        let config = &self.config;
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

    fn log_near_maximum(&self, family: AddressFamily, count: u32) {
        let config = &self.config;
        let limit = config.import.maximum.map(|maximum| maximum.limit);
        warn!(
            peer = %config.key, name = config.name, %family, count, limit,
            "the neighbor announces nearly as many prefixes as allowed (toReceive.maxPrefixes); the \
             session ends when it exceeds the limit"
        );
    }

    fn log_malformed(&mut self, now: Instant, malformed: &Malformed) {
        let config = &self.config;
        let (peer, name) = (config.key, &config.name);
        self.malformed_unlogged = self.malformed_unlogged.saturating_add(1);
        // A neighbour must not fill the log.
        if self.malformed_logged_at.is_some_and(|at| now.since(at) < MALFORMED_LOG_GAP) {
            debug!(%peer, name, %malformed, "malformed UPDATE");
            return;
        }
        let updates = self.malformed_unlogged;
        // All of the last one (RFC 7606 §6), with its prefixes.
        let mut parts = malformed
            .body
            .chunks(LOGGED_OCTETS_MAX)
            .map(|it| format!("{:x}", Bytes::copy_from_slice(it)));
        let bytes = parts.next().unwrap_or_default();
        if malformed.disposition() == Some(Disposition::Discard) {
            info!(%peer, name, %malformed, updates, bytes, "malformed UPDATEs");
        } else {
            warn!(%peer, name, %malformed, updates, bytes, "malformed UPDATEs");
        }
        for bytes in parts {
            info!(%peer, name, bytes, "malformed UPDATE, continued");
        }
        self.malformed_logged_at = Some(now);
        self.malformed_unlogged = 0;
    }
}
