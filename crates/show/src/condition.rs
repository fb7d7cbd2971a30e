//! Is the daemon ready, and its status line. Pure: facts in, an answer out.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_ground::printable;
use fairway_plan::NodePlan;
use fairway_seam::{BgpView, PeerView, SessionState};

/// How long the daemon waits for a neighbour without a session, after all sources have been read. Units that
/// start after this one, and need to be reachable, should not wait for a router that is off.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How many neighbours are named, to keep the line short.
const NAMES_MAX: usize = 3;

/// The facts.
#[derive(Debug)]
pub struct Facts<'a> {
    /// How long ago all sources had been read for the first time.
    pub since_sources: Option<Duration>,
    /// The plan for them.
    pub plan: &'a NodePlan,
    /// The sessions.
    pub view: &'a BgpView,
    /// Objects, or parts of them, that are faulty.
    pub faults: usize,
    /// The drain state as text, unless the node is in service.
    pub drain: Option<String>,
}

/// The result.
#[derive(Debug, PartialEq, Eq)]
pub struct Condition {
    /// The first routes are advertised, except to neighbours that are not expected soon.
    pub is_ready: bool,
    /// The status line.
    pub text: String,
}

/// What follows from `facts`.
pub fn condition(facts: &Facts<'_>) -> Condition {
    let Some(since_sources) = facts.since_sources else {
        return Condition { is_ready: false, text: "reading the configuration".to_owned() };
    };
    let by_key: BTreeMap<_, _> = facts.view.peers.iter().map(|it| (it.config.key, it)).collect();
    // A listen range is not a neighbour, and a peer that is shut down is not expected.
    let awaited = facts.plan.peers.iter().filter(|it| !it.key.is_range() && it.shutdown.is_none());
    let (mut missing, mut set_aside) = (Vec::new(), Vec::new());
    for config in awaited {
        let name = in_one_line(&config.name);
        let peer = by_key.get(&config.key).copied();
        if peer.is_some_and(|peer| peer.set_aside.is_some()) {
            set_aside.push(name);
        } else if let Some(why) = lacks(peer) {
            missing.push(format!("{name} ({why})"));
        }
    }
    let is_ready = facts.plan.routes.is_empty() || missing.is_empty() || since_sources >= PATIENCE;
    Condition { is_ready, text: text(facts, missing, set_aside) }
}

/// Why a neighbour has not got all routes.
fn lacks(peer: Option<&PeerView>) -> Option<&'static str> {
    let Some(peer) = peer else { return Some(SessionState::Idle.name()) };
    match &peer.session {
        Some(session) if peer.state == SessionState::Established => {
            let is_told = session.families.iter().all(|it| *session.end_of_rib_sent.of(it));
            (!is_told).then_some("not all routes sent yet")
        }
        _ => Some(peer.state.name()),
    }
}

fn text(facts: &Facts<'_>, missing: Vec<String>, set_aside: Vec<String>) -> String {
    let peers = &facts.view.peers;
    let is_up = |it: &&PeerView| it.state == SessionState::Established;
    let up = peers.iter().filter(is_up).count();
    let routes: u64 = peers
        .iter()
        .filter(is_up)
        .map(|it| u64::from(it.prefixes_advertised.ipv4) + u64::from(it.prefixes_advertised.ipv6))
        .fold(0, u64::saturating_add);
    let mut parts = vec![match peers.len() {
        0 => "no neighbors".to_owned(),
        all => format!(
            "{up} of {} Established, {} announced",
            counted(count(all), "neighbor"),
            counted(routes, "route")
        ),
    }];
    parts.extend(facts.drain.clone());
    if !missing.is_empty() {
        parts.push(format!("waiting for {}", listed(missing)));
    }
    if !set_aside.is_empty() {
        let verb = if set_aside.len() == 1 { "is" } else { "are" };
        parts.push(format!("{} {verb} set aside", listed(set_aside)));
    }
    let faults = facts.faults.saturating_add(facts.view.faults.len());
    if faults > 0 {
        parts.push(format!("{}: fairway show config", counted(count(faults), "fault")));
    }
    parts.join("; ")
}

/// The first few, and the number of the others.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A number with its noun.
fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// A number with a comma for each thousand.
fn grouped(number: u64) -> String {
    match number.checked_div(1000) {
        None | Some(0) => number.to_string(),
        Some(thousands) => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}

/// A line break would start another assignment for the service manager.
fn in_one_line(name: &str) -> String {
    printable(name).into_owned()
}

#[cfg(test)]
mod tests;
