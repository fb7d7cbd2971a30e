//! Between a container runtime and the daemon of its node: calls that are asked at once ([`plugin`]), and those that wait until
//! somebody can ask ([`spool`]).
//!
//! Knows no address and no block: what a call comes to is for the daemon.

pub mod plugin;
pub mod spool;

/// Where the daemon listens, if nothing else is said.
pub const SOCKET: &str = "/run/fairway-cni/cni.sock";
/// Where calls wait, if nothing else is said: beside the state of other plugins, which outlives a reboot.
pub const SPOOL: &str = "/var/lib/cni/fairway";
