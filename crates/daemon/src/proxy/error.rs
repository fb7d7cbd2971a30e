//! Why the proxy cannot start, or ends.

use fairway_dataplane::DataPathError;

use crate::admin::SocketError;
use crate::kubernetes::ConnectError;
use crate::source::FileSourceError;

/// Why the proxy cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A path that cannot be read or watched.
    #[error(transparent)]
    Source(#[from] FileSourceError),
    /// No API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The kernel.
    #[error(transparent)]
    DataPath(#[from] DataPathError),
    /// Another proxy.
    #[error(
        "{0}; start with --take-over kube-proxy, which waits until kube-proxy is removed from this node; or remove it and \
         what it has left (kube-proxy --cleanup removes all virtual servers, also those of other programs)"
    )]
    AnotherProxy(String),
    /// Another one of ours.
    #[error("another fairway proxy runs on this node")]
    InUse,
    /// The run directory.
    #[error("run directory {path}: {error}")]
    RunDirectory {
        /// Where it is.
        path: String,
        /// What is wrong.
        error: std::io::Error,
    },
    /// The socket of `fairway show proxy`.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Threads.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// Signals.
    #[error("cannot handle signals: {0}")]
    Signals(std::io::Error),
}
