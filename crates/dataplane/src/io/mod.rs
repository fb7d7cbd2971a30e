//! The sockets: the only part of the crate that knows the system.

mod cleanup;
mod conntrack;
mod data_path;
mod ipvs;
mod nftables;
mod record;
mod settings;
mod socket;
mod sysctl;

pub use cleanup::{Cleaned, clean_up};
pub use data_path::{
    DataPath, DataPathError, FilterOptions, INTERFACE, KUBE_PROXY_INTERFACE, KUBE_PROXY_TABLE,
};
pub use ipvs::{Ipvs, IpvsError};
pub use nftables::{FilterWatch, Nftables};
pub use record::{Earlier, Record};
pub use settings::{Changed, SettingsRecord};
pub use sysctl::{Sysctl, sysctls};
