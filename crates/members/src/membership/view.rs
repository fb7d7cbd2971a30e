//! What can be seen of the members: for `show members`, the log, and those that send and answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::{Abstention, Instant, MacAddress};

use super::peer::Peer;
use super::{Membership, Phase};
use crate::heartbeat::Standing;

/// How long two machines have one name after the last heartbeat of the other one.
pub(super) const NAMESAKE_FOR: Duration = Duration::from_secs(5);
/// A member that is heard and does not hear this machine for so long is reported.
const DEAF_AFTER: Duration = Duration::from_secs(2);

/// What is known of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It owns what is its own.
    Alive,
    /// It is heard, and owns nothing yet: it joins, or does not hear us.
    Joining,
    /// It leaves, and others own what was its own.
    Left,
    /// It was not heard for too long.
    Dead,
}

impl MemberState {
    /// As shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Joining => "suspect",
            Self::Left => "left",
            Self::Dead => "dead",
        }
    }
}

/// A member, for `show members`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// The name of its node.
    pub name: String,
    /// What is known of it.
    pub state: MemberState,
    /// Since when.
    pub since: Instant,
}

impl Membership {
    /// The members that this machine hears.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        let is_present = |it: &&Peer| it.state != MemberState::Dead;
        self.peers.values().filter(is_present).map(|it| it.name.as_str())
    }

    /// Whether others own what was our own.
    pub fn has_left(&self) -> bool {
        self.phase == Phase::Left
    }

    /// Whether another machine has the name of this one.
    pub fn has_namesake(&self, now: Instant) -> bool {
        self.namesake_at.is_some_and(|at| now.since(at) < NAMESAKE_FOR)
    }

    /// Owners that this machine hears, and that do not hear it. One that joins among many takes its time to tell all.
    pub fn deaf(&self, now: Instant) -> BTreeSet<&str> {
        let is_deaf = |it: &&Peer| {
            let is_owner = it.standing == Standing::Active && !it.is_confirmed;
            is_owner && it.is_heard(now) && now.since(it.begun_at) >= DEAF_AFTER
        };
        self.peers.values().filter(is_deaf).map(|it| it.name.as_str()).collect()
    }

    /// The hardware addresses of the other members, by name.
    pub fn macs(&self) -> BTreeMap<&str, BTreeSet<MacAddress>> {
        let of = |it: &Peer| it.macs.iter().copied().collect();
        self.peers.values().map(|it| (it.name.as_str(), of(it))).collect()
    }

    /// What members are no candidates for, by name; this machine among them. Those that abstain from nothing are not
    /// there.
    pub fn abstentions(&self) -> BTreeMap<&str, &BTreeSet<Abstention>> {
        let own = (self.name.as_str(), &self.abstentions);
        let others = self.peers.values().map(|it| (it.name.as_str(), &it.abstentions));
        others.chain([own]).filter(|(_, it)| !it.is_empty()).collect()
    }

    /// This machine, as it sees itself.
    pub fn own_view(&self) -> MemberView {
        let state = match self.phase {
            Phase::Joining { .. } => MemberState::Joining,
            Phase::Active => MemberState::Alive,
            Phase::Leaving { .. } | Phase::Left => MemberState::Left,
        };
        MemberView { name: self.name.clone(), state, since: self.since }
    }

    /// All other members, by name.
    pub fn view(&self) -> Vec<MemberView> {
        let view =
            |it: &Peer| MemberView { name: it.name.clone(), state: it.state, since: it.since };
        let mut all: Vec<MemberView> = self.peers.values().map(view).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}
