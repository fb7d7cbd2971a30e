//! Addresses for Pods: Calico's block IPAM.
//!
//! A pool is cut into blocks of the same size. A node owns some of them, and gives its Pods addresses out of its own; a
//! block is what is written at once, so that no two writers give one address twice. Pure: knows no clock, socket or API
//! server; a store is four calls that somebody else answers.
//!
//! Operations are on [`Addressing`]; [`Collector`] takes back what nobody uses, [`cni`] answers a runtime, [`routes()`] says what
//! routers hear of, and [`replay()`] runs a case of all that in memory. [`RememberedStore`] is what a
//! node knows of a store without a question; the daemon has the stores of the API server and of one machine's disk.

mod addressing;
mod affinity;
mod assign;
mod block;
pub mod calico;
mod census;
mod check;
mod claim;
pub mod cni;
mod collector;
mod error;
mod facts;
mod gateway;
mod handle;
mod memory;
mod moment;
mod ownership;
mod pool;
mod release;
mod remembered;
mod replay;
mod request;
mod routes;
mod search;
mod selector;
mod store;
mod together;
mod usage;
mod walk;

#[cfg(test)]
mod tests;

pub use addressing::Addressing;
pub use affinity::{Affinity, AffinityState};
pub use assign::{Assigned, Order};
pub use block::{
    AssignError, Attributes, Block, BlockSizeError, GATEWAY_HANDLE, HostReserved, Owner, Release,
    ReleaseError, Released, Taken, WINDOWS_RESERVED_HANDLE, is_for_no_pod,
};
pub use census::{Census, PodName, PodState};
pub use check::{Defect, check};
pub use collector::{Collected, Collector};
pub use error::IpamError;
pub use facts::{Config, ConfigError, Facts};
pub use gateway::Edges;
pub use memory::MemoryStore;
pub use moment::{Moment, Seconds};
pub use ownership::Claims;
pub use pool::{ChoiceError, Pool, Request, Use, choose};
pub use release::Freed;
pub use remembered::RememberedStore;
pub use replay::{CaseError, replay};
pub use request::{AddressRequest, FamilyRequest};
pub use routes::{Routes, routes};
pub use search::Scope;
pub use selector::{Selector, SelectorError};
pub use store::{Handle, Key, Object, Selection, Store, StoreError, Version, Versioned};
pub use together::Answered;
pub use usage::{Inspected, Usage, usage};
