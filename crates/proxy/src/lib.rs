//! The service proxy: how the packets to a Service reach its Pods.
//!
//! ```text
//!  Services, EndpointSlices, Node, options ─► endpoints ─► part (of one Service) ─► planner ─► Wanted
//! ```
//!
//! Answers which virtual servers, filter rules, addresses and health checks a node has, as kube-proxy's IPVS mode
//! does; where it differs, `Ours:` says why. Pure: knows no kernel, clock, file or API server. `fairway proxy plan`
//! prints what it wants.

mod delivered;
mod endpoints;
mod part;
mod place;
mod planner;
mod reconciler;
pub mod report;
mod wanted;

#[cfg(test)]
mod tests;

pub use delivered::Delivered;
pub use place::Place;
pub use planner::{Conflict, Planner, Touched};
pub use reconciler::{
    Kernel, KernelServer, Operation, Outcome, RealServerPlace, Reconciler, ReconcilerOptions,
    Recorded, ServerSettings,
};
pub use wanted::{
    Entry, FilterRule, Hairpin, Masquerade, NoEndpoints, RealServer, VirtualAddress, VirtualServer,
    Wanted,
};
