//! Fairway's daemons and command line: the edges around the pure crates.
//!
//! ```text
//!  source (files) ──► resources ─► model ─► allocator ─► plan ─► Backend: sessions or frr
//!  kubernetes (API) ─► cluster ───────────────┘                       │
//!            admin (show, clear, drain), metrics ◄── host ◄───────────┘
//! ```
//!
//! - [`source`]: configuration files, as they change.
//! - [`host`]: what every daemon on a node has: its clock, its disk, what it shows.
//! - [`options`]: how a daemon on a node was asked to run.
//! - `node`: the loop of every daemon on a node, and what it announces.
//! - [`standalone`]: `fairway run`: allocation and announcement in one process, fed from files.
//! - [`kubernetes`]: the connection to an API server; `fairway controller` and `fairway speaker`.
//! - [`admin`]: the sockets that `fairway show` and vtysh talk to.
//! - `node_api`: the same questions over the network, from a controller to the speakers; `http_server` and `tls` below it.
//! - [`metrics`]: what Prometheus and a kubelet may ask.
//! - `service`: what systemd is told: ready, how it is, alive.
//! - [`proxy`]: the service proxy, from files to the kernel.
//! - [`frr_agent`]: how FRR's sockets are reached from another container.
//! - [`cli`], [`telemetry`]: the command line and the log.

pub mod admin;
mod build_info;
pub mod cli;
pub mod frr_agent;
pub mod host;
pub mod http_server;
pub mod ipam;
pub mod kubernetes;
mod members;
pub mod metrics;
mod node;
mod node_api;
pub mod options;
pub mod proxy;
mod service;
pub mod source;
mod spare_memory;
pub mod standalone;
pub mod telemetry;
mod tls;
mod ui;
