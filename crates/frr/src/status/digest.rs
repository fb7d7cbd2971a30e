//! What is compared to find out whether something changed: states, sessions, and the prefix counts of each
//! neighbour. Times and counters that run by themselves are excluded.

use std::collections::BTreeMap;

use super::answer::{AnswerError, Fields, object};
use super::sessions::SUMMARY;

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
