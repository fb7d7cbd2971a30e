//! What the task is told, and what it tells of itself.
//!
//! States, of which the last one counts. Passed between the edge and its task.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::MacAddress;

use crate::witness::Standby;

/// Another member that shares addresses with this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Member {
    /// The hardware addresses with which it answers.
    pub macs: BTreeSet<MacAddress>,
    /// Where it was heard.
    pub address: Option<IpAddr>,
}

/// What the task is told beside addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Orders {
    pub(super) members: BTreeMap<String, Member>,
    pub(super) checks: BTreeMap<IpAddr, Standby>,
    /// Counts the times that all is to be announced again.
    pub(super) announcements: u64,
    pub(super) is_handing_over: bool,
}

/// With what this machine can answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// The hardware addresses of the interfaces that can be answered on, each once.
    pub macs: BTreeSet<MacAddress>,
    /// All names of these interfaces.
    pub interfaces: BTreeSet<String>,
    /// There is such an interface, and the right to open packet sockets.
    pub can_answer: bool,
}
