//! The edge: FRR's sockets and the clock.

pub mod vty;
