//! FRR's vty sockets, so that vtysh and the exporters for FRR work with Fairway.
//!
//! ```text
//!  bgpd.vty ┐            line                 Question                      Reply
//!  bfdd.vty ├─► socket ────────► commands ───────────────► reply ◄─ Snapshot ────► socket
//!  zebra.vty┘                    (grammar)                 (`show` renders)
//! ```
//!
//! Read-only: commands other than `show`, and those that FRR has and Fairway does not, get FRR's own refusal.
//! Everything but `socket` is pure. The text is FRR's, rendered by the code of `fairway show`.

mod commands;
mod grammar;
mod reply;
mod search;
mod socket;
mod vrf;

#[cfg(test)]
mod tests;

pub use socket::Sockets;

/// A daemon of FRR that Fairway stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Bgpd,
    Bfdd,
    Zebra,
}

impl Daemon {
    const ALL: [Self; 3] = [Self::Bgpd, Self::Bfdd, Self::Zebra];

    /// The socket's name in its folder.
    fn file_name(self) -> &'static str {
        match self {
            Self::Bgpd => "bgpd.vty",
            Self::Bfdd => "bfdd.vty",
            Self::Zebra => "zebra.vty",
        }
    }

    /// Its name in refusals.
    fn tag(self) -> &'static str {
        match self {
            Self::Bgpd => "BGP",
            Self::Bfdd => "BFD",
            Self::Zebra => "ZEBRA",
        }
    }
}
