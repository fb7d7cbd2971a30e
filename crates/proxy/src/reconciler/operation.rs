//! One step towards what is wanted, and its result.

use std::fmt;
use std::net::IpAddr;

use super::kernel::{KernelServer, Recorded, ServerSettings};
use crate::wanted::{FilterRule, Hairpin, RealServer, VirtualAddress};

/// What the edge shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Read a virtual server again, since what was done to it did not lead where it should.
    Look(VirtualAddress),
    /// Write into the record that a virtual server is about to be made, or is ours.
    Record(VirtualAddress, Recorded),
    /// Write into the record that it is not ours.
    Forget(VirtualAddress),
    /// Make or replace the rule of an address in the packet filter.
    SetRule(VirtualAddress, FilterRule),
    /// Remove it.
    RemoveRule(VirtualAddress),
    /// Replace the source address where a Pod meets itself.
    AddHairpin(Hairpin),
    /// No longer.
    RemoveHairpin(Hairpin),
    /// Make a virtual server.
    AddServer(VirtualAddress, ServerSettings),
    /// Change its settings. It keeps its real servers and their connections.
    SetServer(VirtualAddress, ServerSettings),
    /// Remove it, with its real servers and their connections.
    RemoveServer(VirtualAddress),
    /// Add a real server of weight 1.
    AddRealServer(VirtualAddress, RealServer),
    /// Change the weight of a real server.
    SetWeight(VirtualAddress, RealServer, u32),
    /// Remove it; its connections end.
    RemoveRealServer(VirtualAddress, RealServer),
    /// Remove what connection tracking knows of flows to a real server that is gone: without it, packets of a protocol
    /// without connections go there for ever.
    EndFlows(VirtualAddress, RealServer),
    /// Put an address on our interface.
    Bind(IpAddr),
    /// Take it away.
    Unbind(IpAddr),
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// What should be made is there already.
    Exists,
    /// What should be changed or removed is not there.
    Missing,
    /// It could not be done, or it is unknown whether it was.
    Failed(String),
    /// What [`Operation::Look`] found.
    Found(Option<KernelServer>),
}

/// The order of operations: filter before service before address, and the reverse for what goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Phase {
    #[default]
    Look,
    Record,
    Confirm,
    Filter,
    Servers,
    RealServers,
    Bind,
    Unbind,
    Drain,
    Flows,
    RemoveServers,
    RemoveRules,
    Forget,
}

impl Phase {
    pub(super) const ALL: [Self; 13] = [
        Self::Look,
        Self::Record,
        Self::Confirm,
        Self::Filter,
        Self::Servers,
        Self::RealServers,
        Self::Bind,
        Self::Unbind,
        Self::Drain,
        Self::Flows,
        Self::RemoveServers,
        Self::RemoveRules,
        Self::Forget,
    ];

    /// The first phase of which something may be needed after all operations of a batch were done, if nothing was before.
    pub(super) fn first_after(self) -> Self {
        match self {
            Self::Record | Self::Confirm | Self::Filter | Self::RealServers | Self::Bind => self,
            Self::Servers => Self::Confirm,
            _ => Self::default(),
        }
    }
}

impl Operation {
    /// The virtual address it is about.
    pub fn virtual_address(&self) -> Option<VirtualAddress> {
        match self {
            Self::Look(at)
            | Self::Record(at, _)
            | Self::Forget(at)
            | Self::SetRule(at, _)
            | Self::RemoveRule(at)
            | Self::AddServer(at, _)
            | Self::SetServer(at, _)
            | Self::RemoveServer(at)
            | Self::AddRealServer(at, _)
            | Self::SetWeight(at, ..)
            | Self::RemoveRealServer(at, _)
            | Self::EndFlows(at, _) => Some(*at),
            Self::AddHairpin(_) | Self::RemoveHairpin(_) | Self::Bind(_) | Self::Unbind(_) => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look(at) => write!(f, "reading virtual server {at}"),
            Self::Record(at, _) => write!(f, "recording virtual server {at}"),
            Self::Forget(at) => write!(f, "removing virtual server {at} from the record"),
            Self::SetRule(at, _) => write!(f, "setting the filter rule of {at}"),
            Self::RemoveRule(at) => write!(f, "removing the filter rule of {at}"),
            Self::AddHairpin(it) | Self::RemoveHairpin(it) => {
                write!(f, "changing the masquerading of Pod {}/{}", it.real_server, it.protocol)
            }
            Self::AddServer(at, _) => write!(f, "adding virtual server {at}"),
            Self::SetServer(at, _) => write!(f, "changing virtual server {at}"),
            Self::RemoveServer(at) => write!(f, "removing virtual server {at}"),
            Self::AddRealServer(at, real) => write!(f, "adding real server {real} to {at}"),
            Self::SetWeight(at, real, weight) => {
                write!(f, "setting the weight of real server {real} of {at} to {weight}")
            }
            Self::RemoveRealServer(at, real) => write!(f, "removing real server {real} of {at}"),
            Self::EndFlows(at, real) => write!(f, "ending flows of {at} to {real}"),
            Self::Bind(address) => write!(f, "adding address {address}"),
            Self::Unbind(address) => write!(f, "removing address {address}"),
        }
    }
}
