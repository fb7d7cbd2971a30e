//! Does the owner of an address really answer for it? Asked now and then by the machine that would own it next.
//!
//! A pure machine: what to check and frames with the time in, questions and findings out. Asks as a host that looks
//! for a free address does, so that nothing is learned from the question. Knows no address of this machine. Driven by
//! the edge.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use fairway_ground::{Instant, MacAddress, Rng};
use fairway_seam::{AddressAnswer, CheckedAddress};

use crate::arp::ArpFrame;
use crate::ndp::{Claim, NeighbourMessage, solicitation};
use crate::responder::{Interfaces, Wanted};
use crate::segment::Segment;

/// Between two checks of an address.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The owner of an address may just have become it.
const FIRST_AFTER: Duration = Duration::from_secs(5);
/// A thousand addresses are not asked for in one moment.
const SPREAD_MILLISECONDS: u64 = 5_000;
/// Questions of a check, and the time for the answer to each.
const QUESTIONS: u32 = 3;
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// A check that fails is repeated before it counts: the owner may have changed meanwhile.
const REPEAT_AFTER: Duration = Duration::from_secs(5);
/// Hardware addresses that are kept of those that answer one check.
const ANSWERS_MAX: usize = 8;

/// An address that another member owns, and this machine next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standby {
    /// That member.
    pub owner: String,
    /// The interfaces on which this machine would answer.
    pub interfaces: Interfaces,
}

/// What is known of a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Owner {
    /// The hardware addresses with which it answers.
    pub(crate) macs: BTreeSet<MacAddress>,
    /// The interfaces of this machine on whose link it is.
    pub(crate) interfaces: BTreeSet<u32>,
}

/// An interface to ask on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: Segment,
    /// Questions for IPv6 addresses come from it; without one there are none.
    pub(crate) link_local: Option<Ipv6Addr>,
}

/// A result that differs from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) address: IpAddr,
    pub(crate) owner: String,
    pub(crate) answer: AddressAnswer,
}

#[derive(Debug)]
enum Phase {
    Waiting,
    /// So many questions were sent, and these hardware addresses answered.
    Asking {
        questions: u32,
        answers: BTreeSet<MacAddress>,
    },
}

#[derive(Debug)]
struct Check {
    standby: Standby,
    phase: Phase,
    /// When it goes on, as in the agenda.
    due: Instant,
    /// The last check failed, and is repeated.
    is_repeated: bool,
    /// What counts, and since when.
    result: Option<(AddressAnswer, Instant)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Witness {
    checks: BTreeMap<IpAddr, Check>,
    /// All checks, the next one first: looked at with each frame, however many there are.
    agenda: BTreeSet<(Instant, IpAddr)>,
    owners: BTreeMap<String, Owner>,
    places: BTreeMap<u32, Place>,
    /// Those of one check.
    questions: VecDeque<(u32, Vec<u8>)>,
    /// At most one of each check, taken after all that are due have gone on.
    findings: VecDeque<Finding>,
    rng: Rng,
}

impl Witness {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            checks: BTreeMap::new(),
            agenda: BTreeSet::new(),
            owners: BTreeMap::new(),
            places: BTreeMap::new(),
            questions: VecDeque::new(),
            findings: VecDeque::new(),
            rng: Rng::seeded(seed),
        }
    }

    /// What to check from now on. A new owner has some time before it is asked for.
    pub(crate) fn set_checks(&mut self, now: Instant, standby: BTreeMap<IpAddr, Standby>) {
        self.checks.retain(|address, check| standby.get(address) == Some(&check.standby));
        for (address, standby) in standby {
            let rng = &mut self.rng;
            self.checks.entry(address).or_insert_with(|| {
                let spread = Duration::from_millis(rng.next_u64() % SPREAD_MILLISECONDS);
                let due = now + FIRST_AFTER + spread;
                Check { standby, phase: Phase::Waiting, due, is_repeated: false, result: None }
            });
        }
        self.agenda = self.checks.iter().map(|(address, check)| (check.due, *address)).collect();
    }

    /// The members, by name.
    pub(crate) fn set_owners(&mut self, owners: BTreeMap<String, Owner>) {
        self.owners = owners;
    }

    /// The interfaces on which this machine can ask.
    pub(crate) fn set_places(&mut self, places: Vec<Place>) {
        self.places = places.into_iter().map(|it| (it.segment.index, it)).collect();
    }

    /// The interfaces on which an owner's answer to this machine is to be expected.
    fn places_of(&self, address: IpAddr, standby: &Standby) -> impl Iterator<Item = &Place> {
        let owner = self.owners.get(&standby.owner);
        let interfaces = owner.into_iter().flat_map(|it| &it.interfaces);
        interfaces.filter_map(|index| self.places.get(index)).filter(move |place| {
            let is_named = match &standby.interfaces {
                None => true,
                Some(names) => names.iter().any(|name| place.segment.is_called(name)),
            };
            is_named && (address.is_ipv4() || place.link_local.is_some())
        })
    }

    /// A frame that arrived on an interface.
    pub(crate) fn receive(&mut self, frame: &[u8]) {
        if self.checks.is_empty() {
            return;
        }
        let (address, mac) = match (ArpFrame::parse(frame), NeighbourMessage::parse(frame)) {
            (Some(frame), _) => (IpAddr::V4(frame.sender), frame.sender_mac),
            (None, Some(NeighbourMessage::Advertisement(Claim { target, mac }))) => {
                (target.into(), mac)
            }
            _ => return,
        };
        let Some(Check { phase: Phase::Asking { answers, .. }, .. }) =
            self.checks.get_mut(&address)
        else {
            return;
        };
        let is_own = self.places.values().any(|it| it.segment.mac == mac);
        if mac.is_unicast() && !is_own && answers.len() < ANSWERS_MAX {
            answers.insert(mac);
        }
    }

    /// The next question that is due: the interface, and the frame.
    pub(crate) fn poll_question(&mut self, now: Instant) -> Option<(u32, Vec<u8>)> {
        while self.questions.is_empty()
            && let Some(&(due, address)) = self.agenda.first()
            && due <= now
        {
            self.agenda.pop_first();
            if let Some(mut check) = self.checks.remove(&address) {
                check.due = now + self.go_on(now, address, &mut check);
                self.agenda.insert((check.due, address));
                self.checks.insert(address, check);
            }
        }
        self.questions.pop_front()
    }

    /// The next result that differs from the one before.
    pub(crate) fn poll_finding(&mut self) -> Option<Finding> {
        self.findings.pop_front()
    }

    /// When [`Self::poll_question`] is to be called.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.agenda.first().map(|(due, _)| *due)
    }

    /// Asks once more, or concludes. Returns after which time the check goes on.
    fn go_on(&mut self, now: Instant, address: IpAddr, check: &mut Check) -> Duration {
        let (questions, answers) = match std::mem::replace(&mut check.phase, Phase::Waiting) {
            Phase::Waiting => (0, BTreeSet::new()),
            Phase::Asking { questions, answers } => (questions, answers),
        };
        // Other hosts that answer do so after the first question; the rest are for silence.
        if questions == QUESTIONS || !answers.is_empty() {
            let answer = self.answer(&check.standby, &answers);
            return self.conclude(now, address, check, answer);
        }
        let frames: Vec<(u32, Vec<u8>)> = self
            .places_of(address, &check.standby)
            .filter_map(|place| Some((place.segment.index, question(place, address)?)))
            .collect();
        if frames.is_empty() {
            // It is not on a link of this machine: nothing can be said.
            (check.result, check.is_repeated) = (None, false);
            return CHECK_INTERVAL;
        }
        self.questions.extend(frames);
        check.phase = Phase::Asking { questions: questions.saturating_add(1), answers };
        ANSWER_WITHIN
    }

    fn answer(&self, standby: &Standby, answers: &BTreeSet<MacAddress>) -> AddressAnswer {
        let Some(first) = answers.first() else { return AddressAnswer::Nobody };
        let known = self.owners.get(&standby.owner).map(|it| &it.macs);
        let Some(known) = known.filter(|it| !it.is_empty()) else { return AddressAnswer::Owner };
        match answers.iter().find(|it| !known.contains(it)) {
            Some(other) if answers.iter().any(|it| known.contains(it)) => {
                AddressAnswer::OwnerAnd(*other)
            }
            Some(_) => AddressAnswer::Other(*first),
            None => AddressAnswer::Owner,
        }
    }

    fn conclude(
        &mut self,
        now: Instant,
        address: IpAddr,
        check: &mut Check,
        answer: AddressAnswer,
    ) -> Duration {
        let has_failed = answer != AddressAnswer::Owner;
        if has_failed && !check.is_repeated {
            check.is_repeated = true;
            return REPEAT_AFTER;
        }
        check.is_repeated = false;
        let before = check.result.map(|(answer, _)| answer);
        if before != Some(answer) {
            check.result = Some((answer, now));
            // That the owner answers is news after a failure.
            if has_failed || before.is_some() {
                let owner = check.standby.owner.clone();
                self.findings.push_back(Finding { address, owner, answer });
            }
        }
        CHECK_INTERVAL
    }

    /// What the kernel should hand over for these checks, added to `wanted`.
    pub(crate) fn add_wanted(&self, wanted: &mut BTreeMap<u32, Wanted>) {
        for (address, check) in &self.checks {
            for place in self.places_of(*address, &check.standby) {
                let wanted = wanted.entry(place.segment.index).or_default();
                match address {
                    IpAddr::V4(address) => wanted.ipv4_checked.push(*address),
                    IpAddr::V6(address) => wanted.ipv6_checked.push(*address),
                }
            }
        }
    }

    /// What the checks found.
    pub(crate) fn view(&self, now: Instant) -> BTreeMap<IpAddr, CheckedAddress> {
        let of = |(address, check): (&IpAddr, &Check)| {
            let (answer, since) = check.result?;
            let owner = check.standby.owner.clone();
            Some((*address, CheckedAddress { owner, answer, age: now.since(since) }))
        };
        self.checks.iter().filter_map(of).collect()
    }
}

/// The frame that asks who has `address`.
fn question(place: &Place, address: IpAddr) -> Option<Vec<u8>> {
    let mac = place.segment.mac;
    match address {
        IpAddr::V4(address) => Some(ArpFrame::probe(mac, address).encode()),
        IpAddr::V6(address) => Some(solicitation(mac, place.link_local?, address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arp::Operation;
    use crate::ndp::Advertisement;

    const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OWNER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const STRANGER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn address() -> IpAddr {
        "192.0.2.10".parse().unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn place() -> Place {
        let segment = Segment {
            index: 7,
            name: "eth0".to_owned(),
            alternative_names: Vec::new(),
            mac: HERE,
            is_router: false,
        };
        Place { segment, link_local: "fe80::1".parse().ok() }
    }

    fn standby(owner: &str) -> Standby {
        Standby { owner: owner.to_owned(), interfaces: None }
    }

    fn witness(address: IpAddr) -> Witness {
        let mut witness = Witness::new(1);
        witness.set_places(vec![place()]);
        let owner = Owner { macs: [OWNER].into(), interfaces: [7].into() };
        witness.set_owners([("b".to_owned(), owner)].into());
        witness.set_checks(Instant::ZERO, [(address, standby("b"))].into());
        witness
    }

    /// Runs until `end`; those of `macs` answer each question.
    fn run(
        witness: &mut Witness,
        end: Instant,
        macs: &[MacAddress],
    ) -> (Vec<AddressAnswer>, usize) {
        let mut asked = 0;
        while let Some(now) = witness.next_deadline().filter(|it| *it <= end) {
            while let Some((index, frame)) = witness.poll_question(now) {
                assert_eq!(index, 7);
                asked += 1;
                for mac in macs {
                    let answer = match ArpFrame::parse(&frame) {
                        Some(question) => {
                            assert!(question.sender.is_unspecified(), "nothing is learned from it");
                            question.answer(*mac).encode()
                        }
                        None => match NeighbourMessage::parse(&frame) {
                            Some(NeighbourMessage::Solicitation(it)) => {
                                Advertisement::answering(&it, *mac, false).encode()
                            }
                            other => panic!("{other:?}"),
                        },
                    };
                    witness.receive(&answer);
                }
            }
        }
        let findings = std::iter::from_fn(|| witness.poll_finding());
        (findings.map(|it| it.answer).collect(), asked)
    }

    #[test]
    fn an_owner_that_answers_is_no_news() {
        for text in ["192.0.2.10", "2001:db8::10"] {
            let mut witness = witness(text.parse().unwrap());
            let (found, asked) = run(&mut witness, at(100), &[OWNER]);
            assert_eq!((found, asked), (vec![], 3), "one question in 30 s and more");
            assert_eq!(witness.view(at(100)).values().next().unwrap().answer, AddressAnswer::Owner);
        }
    }

    #[test]
    fn silence_is_found_once_and_so_is_its_end() {
        let mut witness = witness(address());
        let (found, asked) = run(&mut witness, at(25), &[]);
        assert_eq!(
            (found, asked),
            (vec![AddressAnswer::Nobody], 6),
            "two checks of three questions"
        );
        let (found, _) = run(&mut witness, at(100), &[]);
        assert_eq!(found, []);
        let (found, _) = run(&mut witness, at(200), &[OWNER]);
        assert_eq!(found, [AddressAnswer::Owner]);
    }

    #[test]
    fn another_machine_that_answers_is_found() {
        let mut instead = witness(address());
        assert_eq!(run(&mut instead, at(25), &[STRANGER]).0, [AddressAnswer::Other(STRANGER)]);
        let mut beside = witness(address());
        let (found, _) = run(&mut beside, at(25), &[OWNER, STRANGER]);
        assert_eq!(found, [AddressAnswer::OwnerAnd(STRANGER)]);
    }

    #[test]
    fn a_failure_that_is_over_at_once_is_no_news() {
        let mut witness = witness(address());
        let first = witness.next_deadline().unwrap();
        assert_eq!(run(&mut witness, first + ANSWER_WITHIN * QUESTIONS, &[]).0, []);
        assert_eq!(run(&mut witness, at(100), &[OWNER]).0, []);
    }

    #[test]
    fn a_new_owner_is_asked_for_after_a_while() {
        let mut witness = witness(address());
        run(&mut witness, at(25), &[]);
        witness.set_checks(at(25), [(address(), standby("c"))].into());
        assert_eq!(witness.view(at(25)), BTreeMap::new());
        assert!(witness.next_deadline().unwrap() >= at(30));
        // It is on no link of this machine.
        let (found, asked) = run(&mut witness, at(200), &[OWNER]);
        assert_eq!((found, asked), (vec![], 0));
    }

    #[test]
    fn only_interfaces_of_the_advertisement_are_asked_on() {
        let mut witness = witness(address());
        let elsewhere = Standby { interfaces: Some(["eth1".to_owned()].into()), ..standby("b") };
        witness.set_checks(Instant::ZERO, [(address(), elsewhere)].into());
        assert_eq!(run(&mut witness, at(100), &[]), (vec![], 0));
        let mut wanted = BTreeMap::new();
        witness.add_wanted(&mut wanted);
        assert_eq!(wanted, BTreeMap::new());
    }

    #[test]
    fn what_was_not_asked_is_not_heard() {
        let mut witness = witness(address());
        let v4 = "192.0.2.10".parse().unwrap();
        witness.receive(&ArpFrame::gratuitous(STRANGER, v4, Operation::Reply).encode());
        assert_eq!(run(&mut witness, at(50), &[OWNER]).0, []);
    }
}
