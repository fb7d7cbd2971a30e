//! Native BGP and BFD: the sockets, clocks and tasks that drive the machines of `fairway-bgp` and
//! `fairway-bfd`.
//!
//! How many of each: one core task drives the speaker, which owns the RIB and all peers ([`core_task`]); each
//! connection has one reader and one writer that only move bytes ([`connection`]); each listening address has
//! one task ([`listen`]) in each VRF, and the link of an unnumbered neighbour one ([`link`]). BFD has a thread
//! of its own ([`bfd`]), and so have the RPKI caches ([`rpki`]) and the BMP stations ([`bmp`]). They share no lock. Three queues, all bounded: events to the core, bytes to a writer
//! (at most the ones being written and the last words), and the desired state, of which only the latest counts.
//!
//! Refuses to know which route is best, and what a message means. Called by the daemon, which sees a
//! [`fairway_seam::Backend`].

mod addresses;
mod bfd;
mod bmp;
mod clock;
mod connection;
mod connection_keys;
mod core_task;
mod dial;
mod dial_pace;
#[cfg(test)]
mod example;
mod guard;
mod icmpv6;
mod link;
mod link_state;
mod listen;
mod listeners;
mod memory;
mod named_host;
mod native;
mod neighbour;
mod news;
mod rejected_segments;
mod rpki;
mod sockopt;
mod tcp_ao;

pub use bfd::BfdOptions;
pub use listen::Listen;
pub use native::NativeBackend;
