//! The last event of each session, Service and address of the segment: made from facts that have a time, so that there is
//! something to read when somebody begins to watch, and nothing to keep before.

use fairway_node::drain::DrainStatus;
use fairway_node::history::ServiceHistory;
use fairway_seam::PeerView;
use serde::{Deserialize, Serialize};

use super::EventLog;
use super::sessions::about;
use crate::Snapshot;
use crate::neighbor::is_established;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// When, in Unix time; exact to a second.
    pub at_epoch_seconds: u64,
    /// What it is about, as in `neighbor 192.0.2.1`, `service shop/web`.
    pub about: String,
    /// What happened, as the end of a sentence that begins with it.
    pub what: String,
    /// Somebody should look at it.
    pub is_warning: bool,
}

/// The latest first.
pub(super) fn rows(snapshot: &Snapshot<'_>) -> Vec<EventRow> {
    let mut rows: Vec<EventRow> = Vec::new();
    rows.extend(snapshot.bgp.peers.iter().filter_map(|peer| of_session(snapshot, peer)));
    for (name, outcome) in snapshot.outcomes.iter() {
        let Some(history) = snapshot.history.of(name) else { continue };
        rows.extend(of_service(name.to_string(), history, outcome.is_pending()));
    }
    rows.extend(of_segment(snapshot));
    rows.extend(of_drain(snapshot));
    rows.sort_by(|one, other| {
        let key = |it: &EventRow| std::cmp::Reverse(it.at_epoch_seconds);
        key(one).cmp(&key(other)).then_with(|| one.about.cmp(&other.about))
    });
    rows.truncate(EventLog::EVENTS_MAX);
    rows
}

fn of_session(snapshot: &Snapshot<'_>, peer: &PeerView) -> Option<EventRow> {
    let at_epoch_seconds = snapshot.now_epoch_seconds.saturating_sub(peer.since?.as_secs());
    let is_warning = !is_established(peer);
    let what = match (&peer.last_reset, is_warning) {
        (_, false) => "session Established".to_owned(),
        (Some(reset), true) => {
            // An attempt that fails afterwards is no event of its own.
            let why = reset.text.split("; since then: ").next().unwrap_or_default();
            format!("session down: {why}")
        }
        (None, true) => "session down".to_owned(),
    };
    let about = about(&peer.config.key.to_string(), &peer.config.name);
    Some(EventRow { at_epoch_seconds, about, what, is_warning })
}

/// What changed last of it: its addresses, or what is announced.
fn of_service(name: String, history: &ServiceHistory, is_pending: bool) -> Option<EventRow> {
    let addresses = history.addresses.last.as_ref().map(|it| it.at_epoch_seconds);
    let routes = history.routes.last.as_ref().map(|it| it.at_epoch_seconds);
    let at_epoch_seconds = addresses.max(routes)?;
    let now: Vec<String> = history.addresses.now().iter().map(ToString::to_string).collect();
    let announced = history.routes.now().len();
    let what = match (is_pending, routes >= addresses, announced) {
        (true, ..) => "has no address".to_owned(),
        (false, true, 0) => format!("{}: no longer announced", now.join(", ")),
        (false, true, _) => format!("{} announced", now.join(", ")),
        (false, false, _) => format!("has {}", now.join(", ")),
    };
    let is_warning = is_pending || (routes >= addresses && announced == 0);
    Some(EventRow { at_epoch_seconds, about: format!("service {name}"), what, is_warning })
}

fn of_segment<'a>(snapshot: &'a Snapshot<'a>) -> impl Iterator<Item = EventRow> + 'a {
    let addresses = snapshot.layer2.into_iter().flat_map(|it| &it.addresses);
    addresses.map(|(address, answered)| EventRow {
        at_epoch_seconds: snapshot.now_epoch_seconds.saturating_sub(answered.age.as_secs()),
        about: format!("address {address}"),
        what: match answered.interfaces.as_slice() {
            [] => "owned by this node, on no interface".to_owned(),
            some => format!("answered for on {}", some.join(", ")),
        },
        is_warning: answered.interfaces.is_empty(),
    })
}

fn of_drain(snapshot: &Snapshot<'_>) -> Option<EventRow> {
    let (DrainStatus::Draining { since_epoch_seconds, .. }
    | DrainStatus::Drained { since_epoch_seconds }) = snapshot.drain
    else {
        return None;
    };
    Some(EventRow {
        at_epoch_seconds: since_epoch_seconds,
        about: format!("node {}", snapshot.node.name),
        what: snapshot.drain.to_string(),
        is_warning: true,
    })
}
