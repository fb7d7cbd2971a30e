//! What the service proxy does to the kernel, as messages and over sockets.
//!
//! The pure half encodes requests and decodes answers ([`ipvs`], [`nftables`]); the edge (`io`) has the sockets. Knows neither what is
//! wanted nor in which order: `fairway-proxy` decides that.

#[cfg(feature = "io")]
mod conntrack;
#[cfg(feature = "io")]
mod io;
pub mod ipvs;
mod message;
pub mod nftables;

#[cfg(feature = "io")]
pub use io::{
    Changed, Cleaned, DataPath, DataPathError, Earlier, FilterOptions, FilterWatch, INTERFACE,
    Ipvs, IpvsError, KUBE_PROXY_INTERFACE, KUBE_PROXY_TABLE, Nftables, Record, SettingsRecord,
    Sysctl, clean_up, kube_proxy_addresses, node_addresses, remove_chains, remove_kube_proxy,
    sysctls,
};
