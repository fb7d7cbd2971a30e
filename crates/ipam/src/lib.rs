//! Addresses for Pods: Calico's block IPAM.
//!
//! A pool is cut into blocks of the same size. A node owns some of them, and gives its Pods addresses out of its own; a
//! block is what is written at once, so that no two writers give one address twice. Pure: knows no store, clock, socket or
//! API server.
//!
//! Here so far: the block, pools with their selectors, and which pools a request may have addresses from. What is to come:
//! affinities, assigning and releasing over a store, the collector, CNI.

mod block;
mod pool;
mod selector;

#[cfg(test)]
mod tests;

pub use block::{
    AssignError, Attributes, Block, BlockSizeError, HostReserved, Owner, Release, ReleaseError,
    Released, Seconds,
};
pub use pool::{ChoiceError, Pool, Request, Use, choose};
pub use selector::{Selector, SelectorError};
