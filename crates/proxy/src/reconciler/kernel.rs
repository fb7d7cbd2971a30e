//! The kernel as it was last seen.
//!
//! Values only: the edge reads them, `reconciler` keeps them up to date with what it does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_model::IpvsScheduler;

use crate::wanted::{FilterRule, Hairpin, RealServer, VirtualAddress, VirtualServer};

/// What a virtual server does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerSettings {
    /// How it chooses a real server.
    pub scheduler: IpvsScheduler,
    /// How long a client stays with its real server.
    pub persistence: Option<Duration>,
}

impl VirtualServer {
    /// Its settings.
    pub fn settings(&self) -> ServerSettings {
        ServerSettings { scheduler: self.scheduler, persistence: self.persistence }
    }
}

/// What the record says of a virtual server. It lives where it does not outlive the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is about to be made like this. One that is there is ours if it is just like this and has no real server yet.
    Intended(ServerSettings),
    /// It is ours.
    Made,
}

/// A virtual server in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelServer {
    /// Its settings; `None` if it has some that Fairway never makes.
    pub settings: Option<ServerSettings>,
    /// Its real servers with their weights. One of weight 0 keeps its connections and gets no new ones.
    pub real_servers: BTreeMap<RealServer, u32>,
}

/// What a node has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kernel {
    /// All virtual servers, ours and those of others.
    pub servers: BTreeMap<VirtualAddress, KernelServer>,
    /// The addresses of our interface.
    pub bound_addresses: BTreeSet<IpAddr>,
    /// The rules in our table of the packet filter.
    pub rules: BTreeMap<VirtualAddress, FilterRule>,
    /// The Pods in our table that may meet themselves.
    pub hairpins: BTreeSet<Hairpin>,
}
