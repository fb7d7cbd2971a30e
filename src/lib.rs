//! Fairway: a BGP-first routing daemon and load balancer.
//!
//! ```text
//!  source (files) ─► resources (parse) ─► model (index)
//!                                            │
//!                      ┌─────────────────────┴───────┐
//!                 allocator ─► assignments ─► plan ─► Backend (native sessions)
//! ```
//!
//! - [`resources`]: what users may write, and its parsing into values that cannot be wrong.
//! - [`source`]: where resources come from; nothing else knows.
//! - [`model`]: facts about the cluster, and the index that holds them.
//! - [`allocator`]: which Service has which address.
//! - [`plan`]: what this node should do about it.
//! - [`drain`]: whether this node is in service, or about to leave.
//! - [`history`]: what changed last of each Service.
//! - [`controller`], [`speaker`]: who gives addresses, who announces them.
//! - [`cluster`]: both for Kubernetes, without the connection to it.
//! - [`host`]: what every daemon on a node has: its clock, its disk, what it shows.
//! - [`kubernetes`]: the connection, and the two daemons on either side of it.
//! - [`standalone`]: both in one process, fed from files.
//! - `service`: what systemd is told: ready, how it is, alive.
//! - [`metrics`]: what Prometheus and a kubelet may ask.
//! - [`admin`]: the socket that `fairway show` talks to, and what it prints.
//! - [`cli`]: the command line.
//!
//! `model`, `allocator`, `plan`, `drain`, `history`, `cluster` and `resources` are pure: no clock,
//! socket, file, environment or runtime. `tests/tidy.rs` keeps them so. The feature `daemon`, on by
//! default, is everything but `model`, `allocator`, `plan`, `drain`, `cluster` and `resources`.

#[cfg(feature = "daemon")]
pub mod admin;
pub mod allocator;
#[cfg(feature = "daemon")]
pub mod cli;
pub mod cluster;
mod columns;
#[cfg(feature = "daemon")]
pub mod controller;
pub mod drain;
#[cfg(feature = "daemon")]
pub mod frr_agent;
#[cfg(feature = "daemon")]
pub mod history;
#[cfg(feature = "daemon")]
pub mod host;
#[cfg(feature = "daemon")]
pub mod kubernetes;
#[cfg(feature = "daemon")]
pub mod metrics;
pub mod model;
pub mod plan;
pub mod resources;
#[cfg(feature = "daemon")]
mod service;
#[cfg(feature = "daemon")]
pub mod source;
#[cfg(feature = "daemon")]
pub mod speaker;
#[cfg(feature = "daemon")]
pub mod standalone;
#[cfg(feature = "daemon")]
pub mod telemetry;
pub(crate) mod utc;
