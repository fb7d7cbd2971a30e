//! Whether anything is other than it was: states, sessions, and how many prefixes each neighbour was
//! told. Times and counters that run by themselves are not in it.

use std::collections::BTreeMap;

use super::answer::{AnswerError, Fields, object};
use super::sessions::SUMMARY;

/// What is compared of one neighbour of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Brief {
    state: String,
    why: String,
    established: u64,
    dropped: u64,
    told: u64,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest(BTreeMap<[String; 3], Brief>);

impl Digest {
    /// Of the answer to [`SUMMARY`].
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
