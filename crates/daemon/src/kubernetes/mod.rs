//! The edge to a Kubernetes cluster: the connection to its API server, and the daemons that use it,
//! `fairway controller`, `fairway speaker` and `fairway proxy`.
//!
//! ```text
//!              lists, watches ──► core ──► writes, Lease, Events
//!  API server                                                     API server
//!              Secrets by name ─►  │  ──► sessions, state on disk
//! ```
//!
//! The cores (`cluster`) decide; this module has sockets, clocks and files. Only it uses the crate `kube`.

mod addressing;
mod aggregation;
mod api;
mod controller;
mod event;
mod holds;
mod lease;
mod leaving;
mod metrics_access;
mod page;
mod proxied;
mod reading;
mod reporting;
mod resource;
mod secrets;
mod serving;
mod speaker;
mod user;
mod webhook;
mod writing;

pub(crate) use addressing::{LiveError, LiveObjects};
pub use aggregation::AggregationOptions;
pub use api::{ConnectError, ConnectionOptions};
pub use controller::{ControllerOptions, StartError, run as run_controller};
pub(crate) use proxied::{Proxied, ProxiedOptions};
pub use speaker::{SpeakerError, SpeakerOptions, run as run_speaker};
pub(crate) use user::{NodeQuery, User, UserOptions};
pub use webhook::WebhookOptions;
