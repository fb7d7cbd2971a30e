//! The sockets: the only part of the crate that knows the system.

mod conntrack;
mod data_path;
mod ipvs;
mod nftables;
mod record;
mod socket;
mod sysctl;

pub use data_path::{DataPath, DataPathError, FilterOptions, INTERFACE};
pub use ipvs::{Ipvs, IpvsError};
pub use nftables::Nftables;
pub use record::{Earlier, Record};
pub use sysctl::{Sysctl, SysctlChange, sysctls};
