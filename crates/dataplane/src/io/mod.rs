//! The sockets: the only part of the crate that knows the system.

mod cleanup;
mod conntrack;
mod data_path;
mod error;
mod interface;
mod ipvs;
mod kube_proxy;
mod nftables;
mod record;
mod settings;
mod socket;
mod sysctl;

pub use cleanup::{Cleaned, clean_up};
pub use data_path::{DataPath, FilterOptions};
pub use error::DataPathError;
pub use interface::{INTERFACE, node_addresses};
pub use ipvs::{Ipvs, IpvsError};
pub use kube_proxy::{
    KUBE_PROXY_INTERFACE, KUBE_PROXY_TABLE, kube_proxy_addresses, remove_chains, remove_kube_proxy,
};
pub use nftables::{FilterWatch, Nftables};
pub use record::{Earlier, Record};
pub use settings::{Changed, SettingsRecord};
pub use sysctl::{Sysctl, sysctls};
