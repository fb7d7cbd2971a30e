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
//! - [`plan`]: what this node announces, and why not.
//! - [`drain`]: whether this node is in service or being drained.
//! - [`history`]: the last change of each Service.
//! - [`controller`], [`speaker`]: allocation of addresses, and their announcement.
//! - [`cluster`]: both for Kubernetes, without the connection to the API server.
//! - [`host`]: what every daemon on a node has: clock, state directory, drain state, what it shows.
//! - [`kubernetes`]: the connection to the API server, and the loops of the two daemons.
//! - [`standalone`]: both in one process, fed from files.
//! - `service`: notifications to systemd: readiness, status, watchdog.
//! - [`metrics`]: the HTTP endpoints for Prometheus and the kubelet.
//! - [`admin`]: the admin socket that `fairway show` connects to, and what it prints.
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
