//! Addresses that are on an interface of this machine while it owns them, so that it takes their packets itself
//! (`bind` of an L2Advertisement).
//!
//! A pure machine: what is wanted and what the kernel has with the time in, steps out. An address is added for a few
//! seconds and again before they are over: when this process ends or stops in any way, the kernel removes the address,
//! and does not go on answering beside the next owner. Only addresses that this process has added are touched. Driven
//! by the edge.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Instant;
use fairway_netlink::Machine;
use fairway_netlink::request::Presence;

/// How long the kernel keeps an address that is not added again. It counts whole seconds, and takes up to one more.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3);
/// When it is added again: twice within its lifetime one may be late.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Until what the kernel refused is tried again: the capability may be granted late.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A change for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Add the address for [`LIFETIME`].
    Add { address: IpAddr, index: u32, presence: Presence },
    /// Remove it.
    Remove { address: IpAddr, index: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    index: u32,
    /// When it was added last.
    at: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// What this process has added.
    bound: BTreeMap<IpAddr, Bound>,
    /// What could not be added, and why.
    refused: BTreeMap<IpAddr, String>,
    /// When what the kernel refused is tried again.
    retry_at: BTreeMap<IpAddr, Instant>,
}

impl Bindings {
    /// What to do so that exactly `wanted` are there, each on the interface of that number. The outcome of each step
    /// goes to [`Self::done`].
    pub(crate) fn steps(
        &mut self,
        now: Instant,
        wanted: &BTreeMap<IpAddr, u32>,
        machine: &Machine,
    ) -> Vec<Step> {
        self.forget_what_is_not_ours(now, machine);
        let superfluous =
            self.bound.iter().filter(|(address, it)| wanted.get(*address) != Some(&it.index));
        let mut steps: Vec<Step> = superfluous
            .map(|(address, it)| Step::Remove { address: *address, index: it.index })
            .collect();
        self.retry_at.retain(|address, at| wanted.contains_key(address) && now < *at);
        self.refused.retain(|address, _| self.retry_at.contains_key(address));
        for (address, index) in wanted {
            let (address, index) = (*address, *index);
            match self.bound.get(&address) {
                Some(bound) if bound.index == index => {
                    if now.since(bound.at) >= REFRESH_INTERVAL {
                        steps.push(Step::Add { address, index, presence: Presence::Present });
                    }
                }
                Some(_) => steps.push(Step::Add { address, index, presence: Presence::New }),
                None if self.retry_at.contains_key(&address) => {}
                None => match machine.addresses().find(|it| it.address == address) {
                    Some(foreign) => {
                        let on = machine
                            .link(foreign.index)
                            .map_or("an interface", |it| it.name.as_str());
                        let by = match foreign.has_lifetime {
                            true => {
                                "perhaps by an earlier process, which it would outlive by seconds"
                            }
                            false => "not by this process, and stays as it is",
                        };
                        let text = format!("it is on {on} already, {by}");
                        self.refused.insert(address, text);
                    }
                    None => steps.push(Step::Add { address, index, presence: Presence::New }),
                },
            }
        }
        steps
    }

    /// The kernel has removed what was not renewed in time, and what has no lifetime now was put there by somebody else.
    fn forget_what_is_not_ours(&mut self, now: Instant, machine: &Machine) {
        let is_ours = |address: &IpAddr, it: &Bound| {
            let mut shown =
                machine.addresses_of(it.index).iter().filter(|of| of.address == *address);
            now.since(it.at) < LIFETIME && shown.all(|of| of.has_lifetime)
        };
        self.bound.retain(|address, it| is_ours(address, it));
    }

    /// A step was carried out at `now`, or not for that reason.
    pub(crate) fn done(&mut self, now: Instant, step: Step, outcome: Result<(), String>) {
        match (step, outcome) {
            (Step::Add { address, index, .. }, Ok(())) => {
                self.bound.insert(address, Bound { index, at: now });
            }
            (Step::Add { address, .. }, Err(error)) => {
                self.bound.remove(&address);
                self.refused.insert(address, error);
                self.retry_at.insert(address, now + RETRY_INTERVAL);
            }
            // If it is not there, that is what was wanted.
            (Step::Remove { address, .. }, _) => {
                self.bound.remove(&address);
            }
        }
    }

    /// When [`Self::steps`] is to be called.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let refresh = self.bound.values().map(|it| it.at + REFRESH_INTERVAL);
        refresh.chain(self.retry_at.values().copied()).min()
    }

    /// Whether this process has the address on an interface.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.bound.contains_key(&address)
    }

    /// Whether there is nothing to remove, to renew or to try again.
    pub(crate) fn is_empty(&self) -> bool {
        self.bound.is_empty() && self.refused.is_empty()
    }

    /// What could not be added, and why.
    pub(crate) fn refused(&self) -> &BTreeMap<IpAddr, String> {
        &self.refused
    }
}

#[cfg(test)]
mod tests {
    use fairway_netlink::{Address, Fact};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn seconds(number: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(number)
    }

    /// With addresses of somebody else.
    fn with(addresses: &[(&str, u32)]) -> Machine {
        machine(addresses, false)
    }

    /// With addresses that have a lifetime.
    fn with_ours(addresses: &[(&str, u32)]) -> Machine {
        machine(addresses, true)
    }

    fn machine(addresses: &[(&str, u32)], has_lifetime: bool) -> Machine {
        let of = |(address, index): &(&str, u32)| {
            Fact::Address(Address {
                index: *index,
                address: ip(address),
                peer: None,
                prefix_length: 24,
                scope: 0,
                is_tentative: false,
                has_failed_detection: false,
                is_deprecated: has_lifetime,
                has_lifetime,
                is_secondary_or_temporary: false,
                created_centiseconds: 0,
            })
        };
        addresses.iter().map(of).collect()
    }

    fn wanted(addresses: &[(&str, u32)]) -> BTreeMap<IpAddr, u32> {
        addresses.iter().map(|(address, index)| (ip(address), *index)).collect()
    }

    /// The kernel does each step.
    fn act(
        bindings: &mut Bindings,
        now: Instant,
        of: &[(&str, u32)],
        machine: &Machine,
    ) -> Vec<Step> {
        let steps = bindings.steps(now, &wanted(of), machine);
        steps.iter().for_each(|step| bindings.done(now, *step, Ok(())));
        steps
    }

    const VIP: &str = "192.0.2.100";

    #[test]
    fn an_address_is_added_again_before_the_kernel_removes_it() {
        let mut bindings = Bindings::default();
        let add = |presence| vec![Step::Add { address: ip(VIP), index: 2, presence }];
        let nothing = with(&[]);
        assert_eq!(act(&mut bindings, seconds(1), &[(VIP, 2)], &nothing), add(Presence::New));
        assert_eq!(bindings.next_deadline(), Some(seconds(2)));
        let there = with_ours(&[(VIP, 2)]);
        assert_eq!(act(&mut bindings, seconds(1), &[(VIP, 2)], &there), []);
        assert_eq!(act(&mut bindings, seconds(2), &[(VIP, 2)], &there), add(Presence::Present));
        assert!(REFRESH_INTERVAL * 2 < LIFETIME);
    }

    #[test]
    fn what_is_no_longer_owned_is_removed_and_moves_with_its_interface() {
        let mut bindings = Bindings::default();
        act(&mut bindings, seconds(1), &[(VIP, 2)], &with(&[]));
        let moved = act(&mut bindings, seconds(1), &[(VIP, 3)], &with_ours(&[(VIP, 2)]));
        let remove = |index| Step::Remove { address: ip(VIP), index };
        let add = Step::Add { address: ip(VIP), index: 3, presence: Presence::New };
        assert_eq!(moved, [remove(2), add]);
        assert_eq!(act(&mut bindings, seconds(1), &[], &with_ours(&[(VIP, 3)])), [remove(3)]);
        assert!(bindings.is_empty());
        assert_eq!(bindings.next_deadline(), None);
    }

    #[test]
    fn an_address_that_somebody_else_put_there_is_never_touched() {
        let mut bindings = Bindings::default();
        let foreign = with(&[(VIP, 7)]);
        assert_eq!(act(&mut bindings, seconds(1), &[(VIP, 2)], &foreign), []);
        assert!(bindings.refused()[&ip(VIP)].contains("stays as it is"));
        assert_eq!(act(&mut bindings, seconds(2), &[], &foreign), [], "nor removed");
        // Once it is gone.
        assert_eq!(act(&mut bindings, seconds(3), &[(VIP, 2)], &with(&[])).len(), 1);
        assert!(bindings.refused().is_empty());
    }

    #[test]
    fn an_address_that_was_taken_over_by_somebody_else_stays() {
        let mut bindings = Bindings::default();
        act(&mut bindings, seconds(1), &[(VIP, 2)], &with(&[]));
        // `ip address replace` has taken its lifetime away.
        let replaced = with(&[(VIP, 2)]);
        assert_eq!(act(&mut bindings, seconds(2), &[(VIP, 2)], &replaced), []);
        assert!(bindings.refused()[&ip(VIP)].contains("stays as it is"));
        assert_eq!(act(&mut bindings, seconds(3), &[], &replaced), []);
        // The process did not run for longer than the lifetime: what is there now is of somebody else.
        act(&mut bindings, seconds(10), &[(VIP, 2)], &with(&[]));
        let later = with_ours(&[(VIP, 2)]);
        assert_eq!(act(&mut bindings, seconds(20), &[], &later), []);
    }

    #[test]
    fn what_was_refused_and_is_not_wanted_any_more_is_forgotten() {
        let mut bindings = Bindings::default();
        let [step] = bindings.steps(seconds(1), &wanted(&[(VIP, 2)]), &with(&[]))[..] else {
            panic!()
        };
        bindings.done(seconds(1), step, Err("not permitted".to_owned()));
        assert!(!bindings.is_empty());
        assert_eq!(act(&mut bindings, seconds(2), &[], &with(&[])), []);
        assert!(bindings.is_empty());
        assert_eq!(bindings.next_deadline(), None);
    }

    #[test]
    fn what_the_kernel_refuses_is_said_and_tried_again() {
        let mut bindings = Bindings::default();
        let [step] = bindings.steps(seconds(1), &wanted(&[(VIP, 2)]), &with(&[]))[..] else {
            panic!()
        };
        bindings.done(seconds(1), step, Err("not permitted".to_owned()));
        assert_eq!(bindings.refused()[&ip(VIP)], "not permitted");
        assert!(!bindings.has(ip(VIP)));
        assert_eq!(bindings.steps(seconds(2), &wanted(&[(VIP, 2)]), &with(&[])), []);
        assert!(!bindings.refused().is_empty());
        assert_eq!(bindings.next_deadline(), Some(seconds(6)));
        assert_eq!(bindings.steps(seconds(6), &wanted(&[(VIP, 2)]), &with(&[])), [step]);
    }
}
