//! Which members are alive, and whether this machine may answer.
//!
//! A pure machine: heartbeats and the time in, heartbeats and answers out. All members compute the same answer
//! from what they hear, with a delay of one interval. Driven by the edge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::{Instant, MacAddress};

use crate::heartbeat::{HEARD_MAX, Heard, Heartbeat, MemberId, Standing};

/// Between heartbeats, with up to [`MESH_MEMBERS`] members.
const INTERVAL: Duration = Duration::from_millis(100);
/// Members up to which [`INTERVAL`] holds: each sends and receives less than five hundred datagrams a second.
const MESH_MEMBERS: u32 = 50;
/// Members that are known at a time: as many nodes as Kubernetes is made for have one segment.
const MEMBERS_MAX: usize = 5_000;
/// How long a machine that has just started waits for others.
const JOIN_LIMIT: Duration = Duration::from_secs(3);
/// How long a machine that leaves waits until all others know.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// From the heartbeat in which the last one knows to the end of our answers: its announcement comes first.
const LEAVE_OVERLAP: Duration = Duration::from_millis(30);
/// How long a member is told which process of it is known here, after a heartbeat of an earlier one.
const CONTESTED_FOR: Duration = Duration::from_secs(1);
/// How long a member that is gone is shown.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// Between heartbeats, where so many members are: longer for many, so that the datagrams of a second are bounded.
pub fn interval(members: usize) -> Duration {
    let members = u32::try_from(members).unwrap_or(u32::MAX);
    INTERVAL.saturating_mul(members.div_ceil(MESH_MEMBERS).max(1))
}

/// Without a heartbeat for this long a member is dead: three are lost, and the fourth is late.
fn dead_after(interval: Duration) -> Duration {
    interval.saturating_mul(7) / 2
}

/// What this machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of its node.
    pub name: String,
    /// This process: higher than that of an earlier one. Milliseconds of Unix time are.
    pub incarnation: u64,
    /// How many other members there should be; `None` while that is not known.
    pub expected: Option<usize>,
}

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

#[derive(Debug)]
struct Peer {
    name: String,
    incarnation: u64,
    sequence: u64,
    standing: Standing,
    /// It has said that it hears this process of ours: what it says is no replay, and the path works both ways.
    is_confirmed: bool,
    /// When we heard it ourselves.
    heard_at: Instant,
    /// The latest that we know it was heard by us, or by one that we hear.
    alive_at: Instant,
    /// When a heartbeat of an earlier process of it arrived: it may be its present one, whose clock went back.
    contested_at: Option<Instant>,
    /// What it said of us in its last heartbeat.
    knows_us_as: Option<Standing>,
    macs: Vec<MacAddress>,
    state: MemberState,
    since: Instant,
}

/// Where this machine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Owns nothing until that time, or until all that it knows are heard.
    Joining {
        until: Instant,
    },
    Active,
    /// Answers until all others know that it leaves, or until that time.
    Leaving {
        until: Instant,
        all_know_at: Option<Instant>,
    },
    /// Owns nothing, and stays to be heard.
    Left,
}

/// See the module.
#[derive(Debug)]
pub struct Membership {
    name: String,
    id: MemberId,
    incarnation: u64,
    sequence: u64,
    expected: Option<usize>,
    macs: Vec<MacAddress>,
    phase: Phase,
    peers: BTreeMap<MemberId, Peer>,
    /// When the next heartbeat is due, and when the last one was.
    due: Instant,
    ticked: Instant,
    /// Where the next list of members begins, when there are more than fit into a heartbeat.
    told_from: usize,
    /// A member that was dead is back: it may have owned what we own.
    has_healed: bool,
    /// When the phase began.
    since: Instant,
}

impl Membership {
    /// A machine that has just started.
    pub fn new(now: Instant, settings: Settings) -> Self {
        let Settings { name, incarnation, expected } = settings;
        Self {
            id: MemberId::of(&name),
            name,
            incarnation,
            sequence: 0,
            expected,
            macs: Vec::new(),
            phase: Phase::Joining { until: now + JOIN_LIMIT },
            peers: BTreeMap::new(),
            due: now,
            ticked: now,
            told_from: 0,
            has_healed: false,
            since: now,
        }
    }

    /// How many other members there should be from now on.
    pub fn expect(&mut self, expected: usize) {
        self.expected = Some(expected);
    }

    /// The hardware addresses with which this machine answers.
    pub fn set_macs(&mut self, macs: Vec<MacAddress>) {
        self.macs = macs;
    }

    /// A heartbeat that was sealed with one of our keys. Returns whether it is news: of another member, and no
    /// repetition.
    pub fn receive(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        self.notice_stall(now);
        let id = MemberId::of(&heartbeat.name);
        if id == self.id || (!self.peers.contains_key(&id) && self.peers.len() >= MEMBERS_MAX) {
            return false;
        }
        let peer = self.peers.entry(id).or_insert_with(|| Peer {
            name: heartbeat.name.clone(),
            incarnation: 0,
            sequence: 0,
            standing: Standing::Joining,
            is_confirmed: false,
            heard_at: Instant::ZERO,
            alive_at: Instant::ZERO,
            contested_at: None,
            knows_us_as: None,
            macs: Vec::new(),
            state: MemberState::Dead,
            since: now,
        });
        let order = (heartbeat.incarnation, heartbeat.sequence);
        if order <= (peer.incarnation, peer.sequence) {
            if heartbeat.incarnation < peer.incarnation {
                peer.contested_at = Some(now);
            }
            return false;
        }
        if heartbeat.incarnation != peer.incarnation {
            (peer.is_confirmed, peer.knows_us_as) = (false, None);
        }
        (peer.incarnation, peer.sequence) = order;
        let of_us = heartbeat.heard.iter().find(|it| it.member == self.id);
        if let Some(heard) = of_us.filter(|it| it.incarnation > self.incarnation) {
            // Our clock was ahead before this process began: the others ignore what comes from the past.
            self.incarnation = heard.incarnation.saturating_add(1);
            self.due = now;
        }
        let of_us = of_us.filter(|it| it.incarnation == self.incarnation);
        peer.is_confirmed |= of_us.is_some();
        // A member of many tells of us only now and then.
        peer.knows_us_as = of_us.map(|it| it.standing).or(peer.knows_us_as);
        peer.standing = heartbeat.standing;
        peer.macs.clone_from(&heartbeat.macs);
        peer.heard_at = now;
        peer.alive_at = now;
        if peer.is_confirmed {
            heartbeat.heard.iter().for_each(|it| self.vouched(now, it));
        }
        self.judge(now);
        true
    }

    /// A member says that it has heard another one.
    fn vouched(&mut self, now: Instant, heard: &Heard) {
        let Some(peer) = self.peers.get_mut(&heard.member) else { return };
        let age = Duration::from_millis(heard.age_milliseconds.into());
        let at = Instant::ZERO + now.since(Instant::ZERO + age);
        if heard.incarnation == peer.incarnation && at > peer.alive_at {
            peer.alive_at = at;
            peer.standing = heard.standing;
        }
    }

    /// The heartbeat to send to all others, when one is due.
    pub fn tick(&mut self, now: Instant) -> Option<Heartbeat> {
        self.notice_stall(now);
        self.judge(now);
        if now < self.due {
            return None;
        }
        self.ticked = now;
        self.due = now + self.interval();
        self.sequence = self.sequence.saturating_add(1);
        Some(Heartbeat {
            name: self.name.clone(),
            incarnation: self.incarnation,
            sequence: self.sequence,
            standing: self.standing(),
            macs: self.macs.clone(),
            heard: self.heard(now),
        })
    }

    /// When [`Self::tick`] is to be called.
    pub fn next_deadline(&self) -> Instant {
        let dead_after = dead_after(self.interval());
        let is_present = |it: &&Peer| matches!(it.state, MemberState::Alive | MemberState::Joining);
        let deaths = self.peers.values().filter(is_present);
        let deaths = deaths.map(|it| it.alive_at + dead_after);
        let phase = match self.phase {
            Phase::Joining { until } => Some(until),
            Phase::Leaving { until, all_know_at } => {
                Some(all_know_at.map_or(until, |at| at + LEAVE_OVERLAP))
            }
            Phase::Active | Phase::Left => None,
        };
        deaths.chain(phase).chain([self.due]).min().unwrap_or(self.due)
    }

    fn interval(&self) -> Duration {
        let present = self.peers.values().filter(|it| it.state != MemberState::Dead).count();
        interval(present.max(self.expected.unwrap_or(0)).saturating_add(1))
    }

    fn standing(&self) -> Standing {
        match self.phase {
            Phase::Joining { .. } => Standing::Joining,
            Phase::Active => Standing::Active,
            Phase::Leaving { .. } | Phase::Left => Standing::Leaving,
        }
    }

    /// Those that we have heard ourselves, and those that should know what we know of them; of many a part, and the
    /// next part the next time.
    fn heard(&mut self, now: Instant) -> Vec<Heard> {
        let all: Vec<Heard> = self
            .peers
            .iter()
            .filter(|(_, it)| {
                let is_contested = it.contested_at.is_some_and(|at| now.since(at) < CONTESTED_FOR);
                is_contested || (it.state != MemberState::Dead && it.heard_at > Instant::ZERO)
            })
            .map(|(member, it)| Heard {
                member: *member,
                incarnation: it.incarnation,
                age_milliseconds: u16::try_from(now.since(it.heard_at).as_millis())
                    .unwrap_or(u16::MAX),
                standing: it.standing,
            })
            .collect();
        if all.len() <= HEARD_MAX {
            return all;
        }
        let from = self.told_from.checked_rem(all.len()).unwrap_or(0);
        self.told_from = from.saturating_add(HEARD_MAX);
        all.iter().cycle().skip(from).take(HEARD_MAX).copied().collect()
    }

    /// A process that did not run for as long as makes a member dead may have been replaced: it owns nothing
    /// until it has heard the others again, and takes nobody for dead meanwhile.
    fn notice_stall(&mut self, now: Instant) {
        let stall = now.since(self.ticked);
        if stall < dead_after(self.interval()) {
            return;
        }
        self.ticked = now;
        self.due = now;
        for peer in self.peers.values_mut().filter(|it| it.state != MemberState::Dead) {
            peer.alive_at = peer.alive_at.max(now);
            // It has to say again what it knows of us.
            peer.knows_us_as = None;
        }
        if self.phase == Phase::Active {
            let until = now + dead_after(self.interval());
            self.enter(now, Phase::Joining { until });
        }
    }

    /// Who is what now.
    fn judge(&mut self, now: Instant) {
        let dead_after = dead_after(self.interval());
        for peer in self.peers.values_mut() {
            let is_silent = now.since(peer.alive_at) >= dead_after;
            let state = match (is_silent, peer.standing) {
                (true, Standing::Leaving) => MemberState::Left,
                (true, _) if peer.state == MemberState::Left => MemberState::Left,
                (true, _) => MemberState::Dead,
                (false, Standing::Leaving) => MemberState::Left,
                (false, Standing::Active) if peer.is_confirmed => MemberState::Alive,
                (false, _) => MemberState::Joining,
            };
            if state != peer.state {
                self.has_healed |= peer.state == MemberState::Dead && state == MemberState::Alive;
                (peer.state, peer.since) = (state, now);
            }
        }
        self.peers.retain(|_, it| {
            let is_gone = matches!(it.state, MemberState::Dead | MemberState::Left);
            !is_gone || now.since(it.since.max(it.heard_at)) < FORGET_AFTER
        });
        let present = || self.peers.values().filter(|it| now.since(it.heard_at) < dead_after);
        let all_know = |as_what: &[Standing]| {
            let known = |it: &Peer| it.knows_us_as.is_some_and(|it| as_what.contains(&it));
            present().all(known)
        };
        let count = present().count();
        let next = match self.phase {
            Phase::Joining { until } => {
                let anything = [Standing::Joining, Standing::Active, Standing::Leaving];
                let is_whole = self.expected.is_some_and(|it| count >= it) && all_know(&anything);
                if is_whole || now >= until { Phase::Active } else { self.phase }
            }
            Phase::Leaving { until, all_know_at } => {
                let all_know_at = all_know_at.or(all_know(&[Standing::Leaving]).then_some(now));
                let is_over = all_know_at.is_some_and(|at| now.since(at) >= LEAVE_OVERLAP);
                if is_over || now >= until {
                    Phase::Left
                } else {
                    Phase::Leaving { until, all_know_at }
                }
            }
            phase => phase,
        };
        self.enter(now, next);
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        if std::mem::discriminant(&self.phase) != std::mem::discriminant(&phase) {
            self.since = now;
        }
        self.phase = phase;
    }

    /// This machine is about to end, or is drained. It owns what is its own until the others know.
    pub fn leave(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Active) {
            self.enter(now, Phase::Leaving { until: now + LEAVE_LIMIT, all_know_at: None });
            self.due = now;
        } else if matches!(self.phase, Phase::Joining { .. }) {
            self.enter(now, Phase::Left);
            self.due = now;
        }
    }

    /// Whether others own what was our own.
    pub fn has_left(&self) -> bool {
        self.phase == Phase::Left
    }

    /// This machine is in service again after [`Self::leave`].
    pub fn come_back(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Leaving { .. } | Phase::Left) {
            self.enter(now, Phase::Active);
            self.due = now;
        }
    }

    /// The members that own addresses, this one among them if it does; `None` while this machine owns nothing
    /// because it does not know.
    pub fn owners(&self) -> Option<BTreeSet<&str>> {
        let owns = match self.phase {
            Phase::Joining { .. } => return None,
            Phase::Active | Phase::Leaving { .. } => Some(self.name.as_str()),
            Phase::Left => None,
        };
        let alive = self.peers.values().filter(|it| it.state == MemberState::Alive);
        Some(alive.map(|it| it.name.as_str()).chain(owns).collect())
    }

    /// Until when this machine may answer if it does not run again before: others take it for dead then.
    pub fn answers_until(&self) -> Instant {
        self.ticked + dead_after(self.interval())
    }

    /// Whether a member that was dead is alive since the last call: it may have announced what we own.
    pub fn take_healed(&mut self) -> bool {
        std::mem::take(&mut self.has_healed)
    }

    /// The hardware addresses of the other members.
    pub fn macs(&self) -> BTreeSet<MacAddress> {
        self.peers.values().flat_map(|it| &it.macs).copied().collect()
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

#[cfg(test)]
mod tests;
