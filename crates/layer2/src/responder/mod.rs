//! What is answered, and what is announced, for the addresses that this machine owns on its segments.
//!
//! A pure machine: frames and facts with the time in, frames and conflicts out. Who owns an address is decided
//! elsewhere (`plan`, members). Driven by the edge.

mod announcements;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fairway_ground::{Instant, MacAddress, Rng};
use fairway_seam::{AnsweredAddress, ForeignClaim};

use crate::arp::{ArpFrame, Operation};
use crate::ndp::{Advertisement, Claim, NeighbourMessage, Solicitation};
use crate::segment::Segment;
use announcements::PacedAnnouncements;

/// Between two defences of an address (RFC 5227 §2.4, `DEFEND_INTERVAL`).
pub const DEFEND_INTERVAL: Duration = Duration::from_secs(10);
/// Conflicts that wait for their reader; of an address there is one in [`DEFEND_INTERVAL`].
const CONFLICTS_MAX: usize = 1_024;

/// Interfaces on which an address is answered for; all of them with `None`.
pub type Interfaces = Option<BTreeSet<String>>;

/// How an address is answered for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Where.
    pub interfaces: Interfaces,
    /// This machine is to have the address on an interface, too.
    pub bind: bool,
}

/// A host that is not ours says that it has an address of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub address: IpAddr,
    /// The interface on which that was heard.
    pub interface: String,
    /// Who says so.
    pub mac: MacAddress,
}

/// What happened to an address since this machine owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counters {
    requests: u64,
    responses: u64,
    announcements: u64,
    conflicts: u64,
}

/// What the kernel should hand over on an interface, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Addresses that ARP is answered for.
    pub ipv4: Vec<Ipv4Addr>,
    /// Addresses that solicitations are answered for, each with a group to be in.
    pub ipv6: Vec<Ipv6Addr>,
    /// Addresses of other members, whose answers are looked at.
    pub ipv4_checked: Vec<Ipv4Addr>,
    /// Likewise.
    pub ipv6_checked: Vec<Ipv6Addr>,
}

#[derive(Debug)]
struct Owned {
    terms: Terms,
    since: Instant,
    counters: Counters,
    last_conflict: Option<(Conflict, Instant)>,
    defended: Option<Instant>,
    /// The next owner has announced it, while this machine hands over.
    is_handed_over: bool,
}

impl Owned {
    fn is_answered_on(&self, segment: &Segment) -> bool {
        match &self.terms.interfaces {
            None => true,
            Some(names) => names.iter().any(|name| segment.is_called(name)),
        }
    }
}

#[derive(Debug)]
struct OnSegment {
    segment: Segment,
    announcements: PacedAnnouncements,
}

/// See the module.
#[derive(Debug)]
pub struct Responder {
    segments: BTreeMap<u32, OnSegment>,
    owned: BTreeMap<IpAddr, Owned>,
    /// Hardware addresses of machines with which this one shares addresses: what they say is no conflict.
    members: BTreeSet<MacAddress>,
    conflicts: VecDeque<Conflict>,
    /// Others take over: nothing is announced, and each address is answered for until its next owner does.
    is_handing_over: bool,
    /// Time between announcements when nothing happens.
    refresh: Option<Duration>,
    /// Take-overs so far.
    sequence: u64,
    rng: Rng,
}

impl Responder {
    /// Owns nothing. With `refresh`, addresses are announced again each time that it is over.
    pub fn new(seed: u64, refresh: Option<Duration>) -> Self {
        Self {
            segments: BTreeMap::new(),
            owned: BTreeMap::new(),
            members: BTreeSet::new(),
            conflicts: VecDeque::new(),
            is_handing_over: false,
            refresh,
            sequence: 0,
            rng: Rng::seeded(seed),
        }
    }

    /// The interfaces on which this machine can answer. What is new on one, or has another hardware address
    /// now, is announced there.
    pub fn set_segments(&mut self, segments: Vec<Segment>) {
        let mut former = std::mem::take(&mut self.segments);
        for segment in segments {
            let index = segment.index;
            let before = former.remove(&index).filter(|it| it.segment.mac == segment.mac);
            let mut next = OnSegment { segment, announcements: PacedAnnouncements::default() };
            let names = before.as_ref().map(|it| it.segment.clone());
            if let Some(before) = before {
                next.announcements = before.announcements;
            }
            for (address, owned) in &self.owned {
                let was_answered = names.as_ref().is_some_and(|it| owned.is_answered_on(it));
                match (was_answered, owned.is_answered_on(&next.segment)) {
                    (false, true) => {
                        self.sequence = self.sequence.saturating_add(1);
                        next.announcements.begin(*address, self.sequence);
                    }
                    (true, false) => next.announcements.end(*address),
                    _ => {}
                }
            }
            self.segments.insert(index, next);
        }
    }

    /// The addresses that this machine owns. One that is new is announced; one that is missing is silent from
    /// now on.
    pub fn set_addresses(&mut self, now: Instant, addresses: BTreeMap<IpAddr, Terms>) {
        let gone: Vec<IpAddr> =
            self.owned.keys().filter(|it| !addresses.contains_key(it)).copied().collect();
        for address in gone {
            self.owned.remove(&address);
            self.segments.values_mut().for_each(|it| it.announcements.end(address));
        }
        for (address, terms) in addresses {
            let before = self.owned.get_mut(&address);
            if before.as_ref().is_some_and(|it| it.terms == terms) {
                continue;
            }
            let is_answered = |owned: Option<&Owned>, it: &OnSegment| {
                owned.is_some_and(|owned| owned.is_answered_on(&it.segment))
            };
            let were: BTreeSet<u32> = self
                .segments
                .iter()
                .filter(|(_, it)| is_answered(before.as_deref(), it))
                .map(|(index, _)| *index)
                .collect();
            let owned = self.owned.entry(address).or_insert_with(|| Owned {
                terms: Terms::default(),
                since: now,
                counters: Counters::default(),
                last_conflict: None,
                defended: None,
                is_handed_over: false,
            });
            owned.terms = terms;
            for (index, on) in &mut self.segments {
                match (were.contains(index), owned.is_answered_on(&on.segment)) {
                    (false, true) => {
                        self.sequence = self.sequence.saturating_add(1);
                        on.announcements.begin(address, self.sequence);
                    }
                    (true, false) => on.announcements.end(address),
                    _ => {}
                }
            }
        }
    }

    /// The hardware addresses of the machines with which this one shares addresses.
    pub fn set_members(&mut self, members: BTreeSet<MacAddress>) {
        self.members = members;
    }

    /// Others take over what this machine owns, or no longer do. Another announcement of this machine would bring
    /// clients back to it after they have heard of the next owner.
    pub fn hand_over(&mut self, is_handing_over: bool) {
        if self.is_handing_over == is_handing_over {
            return;
        }
        self.is_handing_over = is_handing_over;
        self.owned.values_mut().for_each(|it| it.is_handed_over = false);
        if is_handing_over {
            let segments = self.segments.values_mut();
            segments.for_each(|it| it.announcements = PacedAnnouncements::default());
        } else {
            self.announce_all_again();
        }
    }

    /// Announces all addresses again: another machine may have announced them meanwhile.
    pub fn announce_all_again(&mut self) {
        if self.is_handing_over {
            return;
        }
        for (address, owned) in &self.owned {
            for on in self.segments.values_mut().filter(|it| owned.is_answered_on(&it.segment)) {
                self.sequence = self.sequence.saturating_add(1);
                on.announcements.repeat(*address, self.sequence);
            }
        }
    }

    /// A frame that arrived on interface `index`. Returns the frames to send there.
    pub fn receive(&mut self, now: Instant, index: u32, frame: &[u8]) -> Vec<Vec<u8>> {
        if let Some(frame) = ArpFrame::parse(frame) {
            return self.receive_arp(now, index, &frame);
        }
        match NeighbourMessage::parse(frame) {
            Some(NeighbourMessage::Solicitation(solicitation)) => {
                self.receive_solicitation(now, index, &solicitation)
            }
            Some(NeighbourMessage::Advertisement(Claim { target, mac })) => {
                self.hear_claim(now, index, target.into(), mac).into_iter().collect()
            }
            None => Vec::new(),
        }
    }

    fn receive_arp(&mut self, now: Instant, index: u32, frame: &ArpFrame) -> Vec<Vec<u8>> {
        let Some(mac) = self.segments.get(&index).map(|it| it.segment.mac) else {
            return Vec::new();
        };
        let is_to_us = frame.destination == MacAddress::BROADCAST || frame.destination == mac;
        if !is_to_us || !frame.sender_mac.is_unicast() || self.is_own(frame.sender_mac) {
            return Vec::new();
        }
        let mut frames = Vec::new();
        frames.extend(self.hear_claim(now, index, frame.sender.into(), frame.sender_mac));
        // Who asks for its own address asks nothing.
        let is_question = frame.operation == Operation::Request && frame.sender != frame.target;
        if is_question && self.count_question(index, frame.target.into()) {
            frames.push(frame.answer(mac).encode());
        }
        frames
    }

    fn receive_solicitation(
        &mut self,
        now: Instant,
        index: u32,
        solicitation: &Solicitation,
    ) -> Vec<Vec<u8>> {
        let Some(on) = self.segments.get(&index) else { return Vec::new() };
        let (mac, is_router) = (on.segment.mac, on.segment.is_router);
        let to = solicitation.destination_mac;
        let is_to_us = !to.is_unicast() || to == mac;
        if !is_to_us || self.is_own(solicitation.source_mac) {
            return Vec::new();
        }
        let mut frames = Vec::new();
        let source = solicitation.source;
        if !source.is_unspecified() {
            frames.extend(self.hear_claim(now, index, source.into(), solicitation.source_mac));
        }
        if self.count_question(index, solicitation.target.into()) {
            frames.push(Advertisement::answering(solicitation, mac, is_router).encode());
        }
        frames
    }

    fn is_own(&self, mac: MacAddress) -> bool {
        self.segments.values().any(|it| it.segment.mac == mac)
    }

    /// Whether a question for `address` on this interface is ours to answer.
    fn count_question(&mut self, index: u32, address: IpAddr) -> bool {
        let Some(on) = self.segments.get(&index) else { return false };
        let Some(owned) = self.owned.get_mut(&address) else { return false };
        if owned.is_handed_over || !owned.is_answered_on(&on.segment) {
            return false;
        }
        owned.counters.requests = owned.counters.requests.saturating_add(1);
        owned.counters.responses = owned.counters.responses.saturating_add(1);
        true
    }

    /// `mac` says that it has `address`. If it is ours on this interface, and nobody of ours says so: a
    /// conflict, and the frame that defends the address, at most once in [`DEFEND_INTERVAL`].
    fn hear_claim(
        &mut self,
        now: Instant,
        index: u32,
        address: IpAddr,
        mac: MacAddress,
    ) -> Option<Vec<u8>> {
        if self.is_own(mac) {
            return None;
        }
        if self.is_handing_over {
            // The next owner may be one whose hardware address is not known here yet.
            if let Some(owned) = self.owned.get_mut(&address) {
                owned.is_handed_over = true;
            }
            return None;
        }
        if self.members.contains(&mac) {
            return None;
        }
        let on = self.segments.get(&index)?;
        let owned = self.owned.get_mut(&address).filter(|it| it.is_answered_on(&on.segment))?;
        owned.counters.conflicts = owned.counters.conflicts.saturating_add(1);
        let conflict = Conflict { address, interface: on.segment.name.clone(), mac };
        owned.last_conflict = Some((conflict.clone(), now));
        if owned.defended.is_some_and(|before| now.since(before) < DEFEND_INTERVAL) {
            return None;
        }
        owned.defended = Some(now);
        if self.conflicts.len() < CONFLICTS_MAX {
            self.conflicts.push_back(conflict);
        }
        owned.counters.announcements = owned.counters.announcements.saturating_add(1);
        announcement(&on.segment, address).into_iter().next()
    }

    /// The next conflict that was found and defended against.
    pub fn poll_conflict(&mut self) -> Option<Conflict> {
        self.conflicts.pop_front()
    }

    /// The next announcement that is due: the interface, and its frames.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(u32, Vec<Vec<u8>>)> {
        for (index, on) in &mut self.segments {
            let Some(address) = on.announcements.poll(now, &mut self.rng, self.refresh) else {
                continue;
            };
            if let Some(owned) = self.owned.get_mut(&address) {
                owned.counters.announcements = owned.counters.announcements.saturating_add(1);
            }
            return Some((*index, announcement(&on.segment, address)));
        }
        None
    }

    /// When [`Self::poll_transmit`] is to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.segments.values().filter_map(|it| it.announcements.next_deadline()).min()
    }

    /// What the kernel should hand over on each interface.
    pub fn wanted(&self) -> BTreeMap<u32, Wanted> {
        let of = |on: &OnSegment| {
            let mut wanted = Wanted::default();
            for (address, _) in self.owned.iter().filter(|(_, it)| it.is_answered_on(&on.segment)) {
                match address {
                    IpAddr::V4(address) => wanted.ipv4.push(*address),
                    IpAddr::V6(address) => wanted.ipv6.push(*address),
                }
            }
            wanted
        };
        self.segments.iter().map(|(index, on)| (*index, of(on))).collect()
    }

    /// The addresses to have on an interface, each with the interfaces that it is answered on. One that its next owner
    /// has announced is not among them.
    pub fn to_bind(&self) -> impl Iterator<Item = (IpAddr, Vec<u32>)> {
        let bound = self.owned.iter().filter(|(_, it)| it.terms.bind && !it.is_handed_over);
        bound.map(|(address, owned)| {
            let on = self.segments.iter().filter(|(_, it)| owned.is_answered_on(&it.segment));
            (*address, on.map(|(index, _)| *index).collect())
        })
    }

    /// Every address that this machine owns, and where it answers for it.
    pub fn view(&self, now: Instant) -> BTreeMap<IpAddr, AnsweredAddress> {
        let of = |owned: &Owned| {
            let segments = self.segments.values().map(|it| &it.segment);
            let answering = segments.filter(|it| owned.is_answered_on(it));
            let mut interfaces: Vec<String> = answering.map(|it| it.name.clone()).collect();
            interfaces.sort_unstable();
            let last_conflict = owned.last_conflict.as_ref().map(|(conflict, at)| ForeignClaim {
                mac: conflict.mac,
                interface: conflict.interface.clone(),
                age: now.since(*at),
            });
            let Counters { requests, responses, announcements, conflicts } = owned.counters;
            AnsweredAddress {
                interfaces,
                age: now.since(owned.since),
                requests,
                responses,
                announcements,
                conflicts,
                last_conflict,
                // The kernel's addresses are the edge's.
                is_bound: false,
                why_not_bound: None,
            }
        };
        self.owned.iter().map(|(address, owned)| (*address, of(owned))).collect()
    }
}

/// The frames that announce an address: of ARP both a request and a reply, since hosts differ in which of them
/// they learn from.
fn announcement(segment: &Segment, address: IpAddr) -> Vec<Vec<u8>> {
    let Segment { mac, is_router, .. } = *segment;
    match address {
        IpAddr::V4(address) => [Operation::Request, Operation::Reply]
            .map(|operation| ArpFrame::gratuitous(mac, address, operation).encode())
            .to_vec(),
        IpAddr::V6(address) => {
            vec![Advertisement { address, mac, is_router, asker: None }.encode()]
        }
    }
}
