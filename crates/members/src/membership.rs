//! Which members are alive, and whether this machine may answer.
//!
//! A pure machine: heartbeats and the time in, heartbeats and answers out. All members compute the same answer
//! from what they hear, with a delay of one interval. Driven by the edge.

mod peer;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::{Abstention, Instant, MacAddress};

use peer::{Judged, Peer};
pub use view::{MemberState, MemberView};

use crate::heartbeat::{Heard, Heartbeat, MemberId, Standing, heard_max};

/// Between heartbeats, with up to [`MESH_MEMBERS`] members.
const INTERVAL: Duration = Duration::from_millis(100);
/// Members up to which [`INTERVAL`] holds: each sends and receives less than five hundred datagrams a second.
const MESH_MEMBERS: u32 = 50;
/// Members that are known at a time: as many nodes as Kubernetes is made for have one segment.
const MEMBERS_MAX: usize = 5_000;
/// How long a machine that has just started waits for others.
const JOIN_LIMIT: Duration = Duration::from_secs(3);
/// How long it waits beyond that until it has told all that it hears that it hears them, where they are so many
/// that this takes several heartbeats.
const TELL_LIMIT: Duration = Duration::from_secs(60);
/// How long a machine that leaves waits until all others know.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// From the heartbeat in which the last one knows to the end of our answers. The next owner of thousands of addresses
/// has to plan them first; what it has announced is not answered any more meanwhile.
const LEAVE_OVERLAP: Duration = Duration::from_millis(150);
/// How long a member is told which process of it is known here, after a heartbeat of an earlier one.
const CONTESTED_FOR: Duration = Duration::from_secs(1);
/// So many heartbeats behind the last one, a heartbeat is not late on its way: its process has gone back in time,
/// as a virtual machine that was reverted.
const SEQUENCE_BACK: u32 = 50;
/// Between announcements because of members that were apart from this one.
const HEAL_INTERVAL: Duration = Duration::from_millis(100);
/// What is believed of the interval of another member.
const INTERVAL_MAX: Duration = Duration::from_secs(20);

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
    /// Random: tells it from another machine of the same name.
    pub instance: u64,
    /// How many other members there should be; `None` while that is not known.
    pub expected: Option<usize>,
    /// Whether it could answer at all; see [`Membership::set_able`].
    pub is_able: bool,
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
    sequence: u32,
    instance: u64,
    expected: Option<usize>,
    is_able: bool,
    macs: Vec<MacAddress>,
    abstentions: BTreeSet<Abstention>,
    phase: Phase,
    /// The heartbeat with which this machine has begun to join.
    joins_from: u32,
    peers: BTreeMap<MemberId, Peer>,
    /// The last heartbeats of members that were forgotten: their repetition is no heartbeat.
    forgotten: BTreeMap<MemberId, (u64, u32)>,
    /// When another machine of our name was heard last.
    namesake_at: Option<Instant>,
    /// When the next heartbeat is due, and when the last one was.
    due: Instant,
    ticked: Instant,
    /// What the last one said of the time to the next one.
    ticked_interval: Duration,
    /// Where the next list of members begins, when there are more than fit into a heartbeat.
    told_from: usize,
    /// A member took us for dead, or did not know us, and may have announced what we own.
    has_healed: bool,
    /// This process was an owner.
    has_owned: bool,
    /// When a heal was reported last.
    healed_at: Instant,
    /// When the phase began.
    since: Instant,
}

impl Membership {
    /// A machine that has just started.
    pub fn new(now: Instant, settings: Settings) -> Self {
        let Settings { name, incarnation, instance, expected, is_able } = settings;
        Self {
            id: MemberId::of(&name),
            name,
            incarnation,
            sequence: 0,
            instance,
            expected,
            is_able,
            macs: Vec::new(),
            abstentions: BTreeSet::new(),
            phase: Phase::Joining { until: now + JOIN_LIMIT },
            joins_from: 0,
            peers: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            namesake_at: None,
            due: now,
            ticked: now,
            ticked_interval: INTERVAL,
            told_from: 0,
            has_healed: false,
            has_owned: false,
            healed_at: Instant::ZERO,
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

    /// What this machine is no candidate for, which the others are told at once. Not more than
    /// [`crate::heartbeat::ABSTENTIONS_MAX`]: a machine with more is not able to own anything.
    pub fn abstain(&mut self, now: Instant, abstentions: &BTreeSet<Abstention>) {
        if self.abstentions != *abstentions {
            self.abstentions.clone_from(abstentions);
            self.due = now;
        }
    }

    /// A heartbeat that was sealed with one of our keys. Returns whether it is news: of another member, and no
    /// repetition.
    pub fn receive(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        self.notice_stall(now);
        let id = MemberId::of(&heartbeat.name);
        if id == self.id {
            if heartbeat.instance != self.instance {
                self.namesake_at = Some(now);
            }
            return false;
        }
        if !self.peers.contains_key(&id) && self.peers.len() >= MEMBERS_MAX {
            return false;
        }
        let peer = self.peers.entry(id).or_insert_with(|| {
            let last = self.forgotten.remove(&id).unwrap_or_default();
            Peer::new(now, &heartbeat.name, last, self.has_owned)
        });
        let order = (heartbeat.incarnation, heartbeat.sequence);
        if order <= (peer.incarnation, peer.sequence) {
            let is_back = heartbeat.sequence.saturating_add(SEQUENCE_BACK) < peer.sequence;
            if heartbeat.incarnation < peer.incarnation || is_back {
                peer.contested_at = Some(now);
            }
            return false;
        }
        if heartbeat.incarnation != peer.incarnation {
            peer.begun_at = now;
            (peer.is_confirmed, peer.is_told) = (false, false);
            (peer.knows_us_as, peer.revivals_of_us, peer.is_unknown) = (None, 0, true);
        }
        let abstentions: BTreeSet<Abstention> = heartbeat.abstentions.iter().copied().collect();
        let is_next = order == (peer.incarnation, peer.sequence.saturating_add(1));
        if peer.abstentions != abstentions {
            // While others vouched for it, or one heartbeat was lost, we may have owned and announced what it owns
            // since it abstains no longer.
            peer.is_outdated |= !is_next && self.has_owned;
            peer.abstentions = abstentions;
        }
        (peer.incarnation, peer.sequence) = order;
        let interval = Duration::from_millis(heartbeat.interval_milliseconds.into());
        peer.interval = interval.clamp(INTERVAL, INTERVAL_MAX);
        let of_us = heartbeat.heard.iter().find(|it| it.member == self.id);
        let ours = (self.incarnation, self.sequence);
        if let Some(heard) = of_us.filter(|it| (it.incarnation, it.sequence) > ours) {
            // Our clock was ahead before this process began, or this process has gone back in time: the others
            // ignore what comes from the past.
            self.incarnation = heard.incarnation.saturating_add(1);
            (self.sequence, self.joins_from) = (0, 0);
            self.due = now;
        }
        let of_us = of_us.filter(|it| it.incarnation == self.incarnation);
        peer.is_confirmed |= of_us.is_some();
        if let Some(of_us) = of_us {
            self.has_healed |= peer.revivals_of_us != of_us.revivals;
            peer.revivals_of_us = of_us.revivals;
        }
        // A member of many tells of us only now and then.
        let of_us = of_us.filter(|it| it.sequence >= self.joins_from);
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
        self.ticked_interval = self.interval();
        self.due = now + self.ticked_interval;
        match self.sequence.checked_add(1) {
            Some(next) => self.sequence = next,
            // After thirteen years.
            None => {
                self.incarnation = self.incarnation.saturating_add(1);
                (self.sequence, self.joins_from) = (1, 0);
            }
        }
        Some(Heartbeat {
            name: self.name.clone(),
            incarnation: self.incarnation,
            sequence: self.sequence,
            instance: self.instance,
            interval_milliseconds: u16::try_from(self.ticked_interval.as_millis())
                .unwrap_or(u16::MAX),
            standing: self.standing(),
            macs: self.macs.clone(),
            heard: self.heard(now),
            abstentions: self.abstentions.iter().copied().collect(),
        })
    }

    /// When [`Self::tick`] is to be called.
    pub fn next_deadline(&self) -> Instant {
        let is_present = |it: &&Peer| matches!(it.state, MemberState::Alive | MemberState::Joining);
        let deaths = self.peers.values().filter(is_present);
        let deaths = deaths.map(|it| it.alive_at + dead_after(it.interval));
        let phase = match self.phase {
            // What it waits for beyond that comes with a heartbeat.
            Phase::Joining { until } => Some(until).filter(|it| self.is_able && *it > self.ticked),
            Phase::Leaving { until, all_know_at } => {
                Some(all_know_at.map_or(until, |at| at + LEAVE_OVERLAP))
            }
            Phase::Active | Phase::Left => None,
        };
        let healed = self.has_healed.then(|| self.healed_at + HEAL_INTERVAL);
        deaths.chain(phase).chain(healed).chain([self.due]).min().unwrap_or(self.due)
    }

    /// Between our heartbeats, by the number of those that are heard or should be.
    fn interval(&self) -> Duration {
        let is_heard = |it: &&Peer| match it.state {
            MemberState::Alive | MemberState::Joining => true,
            MemberState::Left => it.is_heard(self.ticked),
            MemberState::Dead => false,
        };
        let present = self.peers.values().filter(is_heard).count();
        interval(present.max(self.expected.unwrap_or(0)).saturating_add(1))
    }

    fn standing(&self) -> Standing {
        match self.phase {
            Phase::Joining { .. } => Standing::Joining,
            Phase::Active => Standing::Active,
            Phase::Leaving { .. } | Phase::Left => Standing::Leaving,
        }
    }

    /// Those that we have heard ourselves, and those that should know what we know of them. Of many a part, first
    /// those that were not told yet, and the next part the next time.
    fn heard(&mut self, now: Instant) -> Vec<Heard> {
        let is_to_be_told = |it: &Peer| {
            let is_contested = it.contested_at.is_some_and(|at| now.since(at) < CONTESTED_FOR);
            is_contested || (it.state != MemberState::Dead && it.heard_at > Instant::ZERO)
        };
        let told = self.peers.iter().filter(|(_, it)| is_to_be_told(it));
        let mut all: Vec<MemberId> = told.map(|(member, _)| *member).collect();
        let heard_max = heard_max(self.abstentions.len());
        if all.len() > heard_max {
            let from = self.told_from.checked_rem(all.len()).unwrap_or(0);
            self.told_from = from.saturating_add(heard_max);
            all.rotate_left(from);
            all.sort_by_key(|it| self.peers.get(it).is_some_and(|it| it.is_told));
            all.truncate(heard_max);
        }
        let mut heard = Vec::new();
        for member in all {
            let Some(it) = self.peers.get_mut(&member) else { continue };
            it.is_told = true;
            heard.push(Heard {
                member,
                incarnation: it.incarnation,
                sequence: it.sequence,
                age_milliseconds: u16::try_from(now.since(it.heard_at).as_millis())
                    .unwrap_or(u16::MAX),
                standing: it.standing,
                revivals: it.revivals,
            });
        }
        heard
    }

    /// A process that did not run for as long as makes a member dead may have been replaced: it owns nothing
    /// until it has heard the others again.
    fn notice_stall(&mut self, now: Instant) {
        let stall = now.since(self.ticked);
        if stall < dead_after(self.ticked_interval) {
            return;
        }
        self.ticked = now;
        self.due = now;
        // What waits in the socket was said before.
        self.joins_from = self.sequence.saturating_add(1);
        // They have to say again what they know of us.
        self.peers.values_mut().for_each(|it| it.knows_us_as = None);
        let heard_by = now + dead_after(self.interval());
        match self.phase {
            Phase::Active => self.enter(now, Phase::Joining { until: heard_by }),
            Phase::Joining { until } => self.phase = Phase::Joining { until: until.max(heard_by) },
            Phase::Leaving { .. } | Phase::Left => {}
        }
    }

    /// Who is what now.
    fn judge(&mut self, now: Instant) {
        let owns = matches!(self.phase, Phase::Active | Phase::Leaving { .. });
        for peer in self.peers.values_mut() {
            let Judged { has_healed, was_replaced } = peer.judge(now, owns);
            self.has_healed |= has_healed;
            if was_replaced {
                // It announces its addresses once it knows that they are no longer ours.
                self.due = now;
            }
        }
        self.forget(now);
        let present = || self.peers.values().filter(|it| it.is_heard(now));
        let all_know = |as_what: &[Standing]| {
            let known = |it: &Peer| it.knows_us_as.is_some_and(|it| as_what.contains(&it));
            present().all(known)
        };
        let count = present().count();
        let next = match self.phase {
            Phase::Joining { until } => {
                let anything = [Standing::Joining, Standing::Active, Standing::Leaving];
                let is_whole = self.expected.is_some_and(|it| count >= it) && all_know(&anything);
                let has_told = now >= until + TELL_LIMIT || present().all(|it| it.is_told);
                let is_over = has_told && (is_whole || now >= until);
                if is_over && self.is_able { Phase::Active } else { self.phase }
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

    fn forget(&mut self, now: Instant) {
        let gone: Vec<MemberId> =
            self.peers.iter().filter(|(_, it)| it.is_gone(now)).map(|(id, _)| *id).collect();
        for id in gone {
            let Some(peer) = self.peers.remove(&id) else { continue };
            if self.forgotten.len() >= MEMBERS_MAX {
                self.forgotten.pop_first();
            }
            self.forgotten.insert(id, (peer.incarnation, peer.sequence));
        }
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        if std::mem::discriminant(&self.phase) != std::mem::discriminant(&phase) {
            self.since = now;
        }
        self.phase = phase;
        self.has_owned |= phase == Phase::Active;
    }

    /// Whether this machine could answer for an address at all: it has an interface to answer on, and knows what it
    /// would answer for. While it could not, it joins and the others own what would be its own.
    pub fn set_able(&mut self, now: Instant, is_able: bool) {
        if self.is_able == is_able {
            return;
        }
        self.is_able = is_able;
        if !is_able && self.phase == Phase::Active {
            self.enter(now, Phase::Joining { until: now });
        }
        self.due = now;
        self.judge(now);
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

    /// This machine is in service again after [`Self::leave`].
    pub fn come_back(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Leaving { .. } | Phase::Left) {
            let until = Phase::Joining { until: now };
            self.enter(now, if self.is_able { Phase::Active } else { until });
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

    /// Until when this machine may answer if it does not run again before: others take it for dead then. In the past
    /// while it owns nothing because it does not know.
    pub fn answers_until(&self) -> Instant {
        match self.phase {
            Phase::Joining { .. } => Instant::ZERO,
            _ => self.ticked + dead_after(self.ticked_interval),
        }
    }

    /// Whether a member has come to know this machine as an owner since the last call: it may have announced what
    /// this machine owns. Once for all members that do so within [`HEAL_INTERVAL`].
    pub fn take_healed(&mut self, now: Instant) -> bool {
        // One that leaves would bring clients back.
        if matches!(self.phase, Phase::Leaving { .. } | Phase::Left) {
            self.has_healed = false;
        }
        if !self.has_healed || now < self.healed_at + HEAL_INTERVAL {
            return false;
        }
        (self.has_healed, self.healed_at) = (false, now);
        true
    }
}
