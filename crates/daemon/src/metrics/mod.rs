//! The HTTP endpoints of a daemon for Prometheus and the kubelet: `/metrics`, `/healthz` and `/readyz`.
//!
//! ```text
//!  GET /metrics ─► server ─► Collect: asks the loop (and the BGP core) how they are ─► page
//! ```
//!
//! An edge. Nothing is counted twice: the page is written from the answers of the loops at that moment, so
//! metrics cost nothing between requests. The names are MetalLB's for all that it has, and `fairway_*` for
//! the rest; [`FAMILIES`] has them all. The loops of `fairway run`, `fairway speaker`, `fairway
//! controller` and `fairway proxy` start a [`Server`] each and update their [`ClientCounters`].

mod bfd;
mod bgp;
mod client;
mod controller;
mod families;
mod node;
mod page;
mod pod_addresses;
mod pod_pools;
mod process;
mod proxy;
mod secure;
mod server;

use std::pin::Pin;

pub use bgp::PeerLabel;
pub use client::{ApiVerb, ClientCounters};
pub use controller::{ControllerFacts, ControllerMetrics, ControllerQuestion, ControllerQuestions};
pub use families::{FAMILIES, Shown};
pub use node::NodeMetrics;
pub use page::{Family, Page, Type};
pub use pod_addresses::{PodAddressCounters, PoolShare};
pub use pod_pools::{PodPoolCounters, PoolFill};
pub use proxy::{ProxyFacts, ProxyMetrics, ProxyQuestion, ProxyQuestions, Rounds, ServiceTraffic};
pub use secure::{Access, Certificate, Judged, SecureOptions, Secured, Verdict};
pub use server::Server;

/// The result of [`Collect::collect`]: whether the daemon answered.
pub type Collected<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// The source of a daemon's metrics.
pub trait Collect: Send + Sync + 'static {
    /// Asks the daemon for its state and writes the page; `false` when it has ended.
    fn collect<'a>(&'a self, page: &'a mut Page) -> Collected<'a>;

    /// Asks whether every part that must not hang answers; `false` when it has ended.
    fn is_alive(&self) -> Collected<'_>;

    /// Why the daemon is not ready although everything has been read.
    fn unready(&self) -> Option<String> {
        None
    }

    /// The option that names the port.
    fn listen_option(&self) -> &'static str {
        "--metrics-listen"
    }

    /// What is at a path of the daemon's own.
    fn text_at(&self, _path: &str) -> Option<&'static str> {
        None
    }
}
