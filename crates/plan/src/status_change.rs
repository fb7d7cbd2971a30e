//! How the addresses of a Service differ from those in its status.
//!
//! The status is what MetalLB or an earlier run assigned, and what clients use. Compares only. Called
//! by `fairway plan` and `fairway check`, so that an operator sees each change before it happens.

use std::fmt;
use std::net::IpAddr;

use fairway_allocator::Outcome;
use fairway_model::Service;

/// Addresses that a Service gets in addition to those in its status, and those of its status that it loses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChange {
    /// New ones.
    pub added: Vec<IpAddr>,
    /// Those that it loses.
    pub lost: Vec<IpAddr>,
    /// The others.
    pub kept: Vec<IpAddr>,
}

impl StatusChange {
    /// `None` if the status has no address, or the same ones in any order.
    pub fn of(service: &Service, outcome: &Outcome) -> Option<Self> {
        let status = &service.status_addresses;
        let (kept, added): (Vec<_>, Vec<_>) =
            outcome.addresses.iter().partition(|address| status.contains(address));
        let lost: Vec<_> = status.iter().copied().filter(|it| !kept.contains(it)).collect();
        if status.is_empty() || (added.is_empty() && lost.is_empty()) {
            return None;
        }
        Some(Self { added, lost, kept })
    }
}

impl fmt::Display for StatusChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, lost, kept } = self;
        match (added.is_empty(), lost.is_empty()) {
            (false, true) => return write!(f, "gets {} beside {}", list(added), list(kept)),
            (false, false) => write!(f, "gets {} in place of {}", list(added), list(lost))?,
            (true, _) => write!(f, "loses {}", list(lost))?,
        }
        if kept.is_empty() { Ok(()) } else { write!(f, " and keeps {}", list(kept)) }
    }
}

fn list(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    texts.join(" and ")
}
