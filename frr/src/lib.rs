//! FRR as the one who speaks BGP: what should be is rendered in its words, told to its daemons, and
//! read back.
//!
//! Knows no Kubernetes and no file of Fairway's. Pure but for [`io`].

#[cfg(feature = "io")]
pub mod io;
pub mod render;
pub mod status;
