//! What this machine knows of another member.
//!
//! Owned by [`super::Membership`], which decides what follows from it.

use std::collections::BTreeSet;
use std::time::Duration;

use fairway_ground::{Abstention, Instant, MacAddress};

use super::{INTERVAL, MemberState, dead_after};
use crate::heartbeat::Standing;

/// How long a member that is gone is shown.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) incarnation: u64,
    pub(super) sequence: u32,
    /// When the first heartbeat of this process of it arrived.
    pub(super) begun_at: Instant,
    /// Between its heartbeats.
    pub(super) interval: Duration,
    pub(super) standing: Standing,
    /// A heartbeat of ours has said that we hear this process of it.
    pub(super) is_told: bool,
    /// We were an owner since it was one to us the last time, and may have announced what it owns.
    pub(super) is_replaced: bool,
    /// We learned late what it abstains from, and may have announced what it owns.
    pub(super) is_outdated: bool,
    /// It was silent to us since then, or this process of it is new.
    pub(super) is_unknown: bool,
    /// How often it became an owner to us while we were one, and how often we became one to it so.
    pub(super) revivals: u16,
    pub(super) revivals_of_us: u16,
    /// It has said that it hears this process of ours: what it says is no replay, and the path works both ways.
    pub(super) is_confirmed: bool,
    /// When we heard it ourselves.
    pub(super) heard_at: Instant,
    /// The latest that we know it was heard by us, or by one that we hear.
    pub(super) alive_at: Instant,
    /// When a heartbeat of an earlier process of it arrived: it may be its present one, whose clock went back.
    pub(super) contested_at: Option<Instant>,
    /// What it said of us last, since this machine has begun to join.
    pub(super) knows_us_as: Option<Standing>,
    pub(super) macs: Vec<MacAddress>,
    pub(super) abstentions: BTreeSet<Abstention>,
    pub(super) state: MemberState,
    pub(super) since: Instant,
}

impl Peer {
    /// One of which `last` is the last heartbeat that counted, a long time ago.
    pub(super) fn new(now: Instant, name: &str, last: (u64, u32), is_replaced: bool) -> Self {
        let (incarnation, sequence) = last;
        Self {
            name: name.to_owned(),
            incarnation,
            sequence,
            begun_at: now,
            interval: INTERVAL,
            standing: Standing::Joining,
            is_told: false,
            is_replaced,
            is_outdated: false,
            is_unknown: true,
            revivals: 0,
            revivals_of_us: 0,
            is_confirmed: false,
            heard_at: Instant::ZERO,
            alive_at: Instant::ZERO,
            contested_at: None,
            knows_us_as: None,
            macs: Vec::new(),
            abstentions: BTreeSet::new(),
            state: MemberState::Dead,
            since: now,
        }
    }

    /// Whether this machine hears it itself.
    pub(super) fn is_heard(&self, now: Instant) -> bool {
        now.since(self.heard_at) < dead_after(self.interval)
    }

    /// Whether there is nothing more to show of it.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        let is_gone = matches!(self.state, MemberState::Dead | MemberState::Left);
        is_gone && now.since(self.since.max(self.heard_at)) >= FORGET_AFTER
    }

    /// What it is now. `owns`: this machine is an owner.
    pub(super) fn judge(&mut self, now: Instant, owns: bool) -> Judged {
        let mut judged = Judged::default();
        let is_silent = now.since(self.alive_at) >= dead_after(self.interval);
        let state = match (is_silent, self.standing) {
            (true, Standing::Leaving) => MemberState::Left,
            (true, _) if self.state == MemberState::Left => MemberState::Left,
            (true, _) => MemberState::Dead,
            (false, Standing::Leaving) => MemberState::Left,
            (false, Standing::Active) if self.is_confirmed => MemberState::Alive,
            (false, _) => MemberState::Joining,
        };
        // One that has left may come back unheard, and announce what it no longer owns when it is heard.
        self.is_unknown |= is_silent;
        if state != self.state {
            if state == MemberState::Alive {
                judged.was_replaced = std::mem::take(&mut self.is_replaced);
                // A process of it that has ended since cannot tell what it announced.
                judged.has_healed = std::mem::take(&mut self.is_unknown);
            }
            (self.state, self.since) = (state, now);
        }
        judged.was_replaced |= std::mem::take(&mut self.is_outdated);
        if judged.was_replaced {
            self.revivals = self.revivals.wrapping_add(1);
        }
        self.is_replaced |= owns && state != MemberState::Alive;
        judged
    }
}

/// What follows from the state of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Judged {
    /// It may have announced what this machine owns.
    pub(super) has_healed: bool,
    /// This machine may have announced what it owns.
    pub(super) was_replaced: bool,
}
