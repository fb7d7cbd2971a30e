//! Carries out what [`Bindings`] decides: the kernel's addresses change at the request of this module alone.
//!
//! Owned by the task; what it has added is removed with it.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use fairway_ground::Instant;
use fairway_netlink::{Address, Machine, Requests};
use nix::libc;
use tracing::{info, warn};

use crate::binding::{Bindings, LIFETIME, Step};

/// See the module.
#[derive(Debug)]
pub(super) struct Bound {
    bindings: Bindings,
    requests: Option<Requests>,
    followed_at: Instant,
    /// What the log says of addresses that could not be added.
    said: BTreeMap<IpAddr, String>,
}

impl Default for Bound {
    fn default() -> Self {
        let (bindings, said) = (Bindings::default(), BTreeMap::new());
        Self { bindings, requests: None, followed_at: Instant::ZERO, said }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.follow(self.followed_at, BTreeMap::new(), &Machine::default());
    }
}

impl Bound {
    /// Has the kernel have exactly `wanted`, each on the interface of that number.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        wanted: BTreeMap<IpAddr, u32>,
        machine: &Machine,
    ) {
        self.followed_at = now;
        for step in self.bindings.steps(now, &wanted, machine) {
            let outcome = self.carry_out(step).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => format!("{error} (the capability NET_ADMIN is missing)"),
                Some(libc::EACCES) => format!("{error} (IPv6 is off there: disable_ipv6)"),
                _ => error.to_string(),
            });
            self.bindings.done(now, step, outcome);
        }
        let refused = self.bindings.refused();
        let new: Vec<_> =
            refused.iter().filter(|(it, why)| self.said.get(*it) != Some(*why)).collect();
        if let Some(((address, reason), others)) = new.split_first() {
            let others = others.len();
            warn!(%address, reason, others, "cannot have an address on an interface");
        }
        if refused.is_empty() && !self.said.is_empty() {
            info!("all addresses are on their interfaces");
        }
        self.said.clone_from(self.bindings.refused());
    }

    fn carry_out(&mut self, step: Step) -> io::Result<()> {
        let requests = match &mut self.requests {
            Some(requests) => requests,
            none => none.insert(Requests::open()?),
        };
        let lifetime_seconds = u32::try_from(LIFETIME.as_secs()).unwrap_or(u32::MAX);
        match step {
            Step::Add { address, index, presence } => {
                requests.add_address(index, address, lifetime_seconds, presence)
            }
            Step::Remove { address, index } => requests.remove_address(index, address),
        }
    }

    /// When [`Self::follow`] is to be called.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.bindings.next_deadline()
    }

    /// Whether there is nothing to remove, to renew or to try again.
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    /// Whether this process has added it.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.bindings.has(address)
    }

    /// Why an address is not on its interface.
    pub(super) fn refused(&self) -> &BTreeMap<IpAddr, String> {
        self.bindings.refused()
    }
}

/// Of the interfaces that an address is answered on, the one that has its network, else the first.
pub(super) fn interface_for(machine: &Machine, address: IpAddr, on: &[u32]) -> Option<u32> {
    let has_network = |index: &&u32| {
        let mut networks = machine.addresses_of(**index).iter().filter_map(Address::network);
        networks.any(|it| it.prefix_len() < it.max_prefix_len() && it.contains(&address))
    };
    on.iter().find(has_network).or(on.first()).copied()
}
