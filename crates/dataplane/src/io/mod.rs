//! The sockets: the only part of the crate that knows the system.

mod ipvs;
mod nftables;
mod socket;

pub use ipvs::{Ipvs, IpvsError};
pub use nftables::Nftables;
