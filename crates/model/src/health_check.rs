//! How a machine finds out whether it serves a Service itself.

use std::net::SocketAddr;
use std::time::Duration;

/// `fairway.dev/health-check` of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// From the end of a check to the next one.
    pub interval: Duration,
    /// A check without an answer for so long has failed.
    pub timeout: Duration,
    /// Checks that fail one after the other until the Service is not served here.
    pub failures: u8,
    /// Checks that succeed one after the other until it is served here again.
    pub successes: u8,
}

impl HealthCheck {
    /// Between checks, where nothing is said.
    pub const INTERVAL: Duration = Duration::from_secs(1);
    /// For an answer, where nothing is said.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// Where nothing is said.
    pub const FAILURES: u8 = 3;
    /// Where nothing is said.
    pub const SUCCESSES: u8 = 2;
}

/// What a check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// Whether a connection is accepted there.
    Tcp(SocketAddr),
    /// Whether a GET request is answered with a status from 200 to 399.
    Http {
        /// Where.
        address: SocketAddr,
        /// Over TLS. The certificate is not verified.
        is_tls: bool,
        /// The path with its query.
        path: String,
    },
}
