//! FRR as the BGP speaker: the desired state is rendered as FRR configuration, sent to its daemons, and read
//! back.
//!
//! Knows no Kubernetes and no file of Fairway's. Pure but for [`io`].

pub mod application;
pub mod configuration;
pub mod daemon;
pub mod difference;
#[cfg(feature = "io")]
mod file;
#[cfg(feature = "io")]
pub mod io;
pub mod owner;
mod record;
pub mod render;
pub mod status;

#[cfg(test)]
mod model;
