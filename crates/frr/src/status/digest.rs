//! What is compared to find out whether something changed: states, sessions, and the prefix counts of each
//! neighbour. Times and counters that run by themselves are excluded.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{AnswerError, Fields, object};
use super::sessions::SUMMARY;

/// FRR's word for a state with a session.
const ESTABLISHED: &str = "Established";

/// The compared values of one neighbour in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Brief {
    state: String,
    why: String,
    established: u64,
    dropped: u64,
    told: u64,
}

/// The compared values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest(BTreeMap<[String; 3], Brief>);

impl Digest {
    /// From the answer to [`SUMMARY`].
    pub fn of(summary: &str) -> Result<Self, AnswerError> {
        let answer = object(SUMMARY, summary)?;
        let mut all = BTreeMap::new();
        for (vrf, instance) in Fields::from(&answer).entries() {
            for (family, said) in Fields::from(instance).entries() {
                for (peer, brief) in Fields::from(said).below("peers").entries() {
                    let key = [vrf, family, peer].map(str::to_owned);
                    all.insert(key, Brief::of(brief.into()));
                }
            }
        }
        Ok(Self(all))
    }
}

/// A session that began or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChange {
    /// The VRF and the neighbour, in FRR's words.
    pub vrf: String,
    /// Its address, or the name of its interface.
    pub peer: String,
    /// Whether it began.
    pub is_up: bool,
}

impl Digest {
    /// The sessions that began and ended since `earlier`, in this order: one that ended and began again does both.
    pub fn sessions_since(&self, earlier: &Self) -> Vec<SessionChange> {
        let (before, now) = (earlier.sessions(), self.sessions());
        let all: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let mut changes = Vec::new();
        for key in all {
            let (before, now) =
                (before.get(key).copied().flatten(), now.get(key).copied().flatten());
            let change =
                |is_up| SessionChange { vrf: key.0.to_owned(), peer: key.1.to_owned(), is_up };
            if before != now {
                changes.extend(before.map(|_| change(false)));
                changes.extend(now.map(|_| change(true)));
            }
        }
        changes
    }

    /// The number of the session of each neighbour that has one.
    fn sessions(&self) -> BTreeMap<(&str, &str), Option<u64>> {
        let mut sessions = BTreeMap::new();
        for ([vrf, _, peer], brief) in &self.0 {
            let number = (brief.state == ESTABLISHED).then_some(brief.established);
            let known: &mut Option<u64> = sessions.entry((&**vrf, &**peer)).or_default();
            *known = number.max(*known);
        }
        sessions
    }
}

impl Brief {
    fn of(brief: Fields<'_>) -> Self {
        let count = |name: &str| brief.number(name).unwrap_or(0);
        let text = |name: &str| brief.text(name).unwrap_or_default().to_owned();
        Self {
            state: text("state"),
            why: text("peerState"),
            established: count("connectionsEstablished"),
            dropped: count("connectionsDropped"),
            told: count("pfxSnt"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(states: &[(&str, &str, u64)]) -> Digest {
        let peers = states.iter().map(|(peer, state, established)| {
            let brief =
                serde_json::json!({ "state": state, "connectionsEstablished": established });
            ((*peer).to_owned(), brief)
        });
        let peers: serde_json::Map<_, _> = peers.collect();
        let summary = serde_json::json!({ "default": { "ipv4Unicast": { "peers": peers } } });
        Digest::of(&summary.to_string()).unwrap()
    }

    #[test]
    fn a_session_that_began_or_ended_is_a_change_and_one_that_was_replaced_is_two() {
        let before =
            digest(&[("a", "Established", 1), ("b", "Active", 0), ("c", "Established", 4)]);
        let now = digest(&[("a", "Active", 1), ("b", "Established", 1), ("c", "Established", 5)]);
        let told = |now: &Digest, before: &Digest| -> Vec<String> {
            let changes = now.sessions_since(before).into_iter();
            changes.map(|it| format!("{} {} {}", it.vrf, it.peer, it.is_up)).collect()
        };
        assert_eq!(
            told(&now, &before),
            ["default a false", "default b true", "default c false", "default c true"]
        );
        assert_eq!(told(&now, &now), [""; 0]);
        assert_eq!(told(&Digest::default(), &now), ["default b false", "default c false"]);
    }
}
