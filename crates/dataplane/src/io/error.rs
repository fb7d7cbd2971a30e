//! Why the data path cannot be used.

use std::io;

use super::interface::INTERFACE;
use super::ipvs::IpvsError;

/// Why the data path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataPathError {
    /// IPVS.
    #[error(transparent)]
    Ipvs(#[from] IpvsError),
    /// The packet filter.
    #[error("packet filter: {0}")]
    Filter(io::Error),
    /// Links and addresses.
    #[error("interface {INTERFACE}: {0}")]
    Interface(io::Error),
    /// Somebody else's interface has our name.
    #[error("interface {INTERFACE} is not a dummy: it is not Fairway's; rename it")]
    ForeignInterface,
    /// There is nobody to leave virtual servers to.
    #[error(
        "no other proxy has written its rules yet, and without any the connections of clients whose source address is \
         replaced would break; start kube-proxy, wait until `iptables-save -t nat` shows rules in KUBE-POSTROUTING, and \
         try again; or remove virtual servers as well, without --hand-over"
    )]
    NoSuccessor,
    /// The record.
    #[error("record {path}: {error}")]
    Record {
        /// Where it is.
        path: String,
        /// What is wrong.
        error: io::Error,
    },
}
